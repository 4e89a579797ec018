// Cards of a GPU's memory.
#include <algorithm>

#include "shardplan/physics/ends.hpp"
#include "states.hpp"

namespace shardplan::explain {

void model_states(Card& c) {
  const bool own = c.stated();
  const bool adapted = own && c.run().training.peft.active();
  const StateRule rule = own ? c.workspace().rule : StateRule{};
  const StateElements<Sym> elements =
      own ? whole_model(c) : StateElements<Sym>{c.symbol("P", "parameters", 7e9, {}, Domain::positive)};
  const StateSums<Sym> sums =
      states_of(rule, width_symbols(c, rule), own ? *c.workspace().optimizer : adam(), elements, shared_by(1.0));
  const Sym total = sums.parameters + sums.gradients + sums.optimizer;
  if (!own) c.numbers("7B");
  const double P = elements.trained.value();
  c.title("memory of a model's states, before anything is sharded");
  c.collected(total, "B", gb(total.value()),
              P > 0 ? fmt::format("{} x {:.4g} B", short_number(P), total.value() / P) : std::string());
  c.note(adapted ? "adapters" : "mixed precision, Adam");
  const auto part = [](Sym bytes) { return fmt::format("{:.4g}", bytes.value() / 1e9); };
  const std::string moments = rule.moment_bytes == 8 && !adapted
                                  ? fmt::format("m {} + v {}", part(sums.moments / 2.0), part(sums.moments / 2.0))
                                  : fmt::format("moments {}", part(sums.moments));
  c.remark("parts", fmt::format("weights {} + gradients {} + master {} + {} GB", part(sums.parameters),
                                part(sums.gradients), part(sums.optimizer - sums.moments), moments));
  const auto other = [P](double bytes) { return fmt::format("{:.4g}", P * bytes / 1e9); };
  if (P > 0) {
    c.remark("others", fmt::format("megatron 18 B (fp32 gradients): {} GB | fp32 4+4+8: {} | pure bf16 2+2+4: {} | ddp "
                                   "under autocast 16 + 2 of copies: {} | 8-bit Adam 2+2+4+2.03: {}",
                                   other(18), other(16), other(8), other(18), other(10.03125)));
  }
  c.beware(
      "not \"the memory needed\": activations, logits, buffers and the context come on top. LLaMA-7B has 6,738,415,616 "
      "parameters: 107.8 GB = 100.4 GiB. Weights are an eighth (2 of 16 B, not 1/4), optimizer states six times them "
      "(not 2-3)");
  c.source("Rajbhandari et al. 2019 (1910.02054) 3.1; Micikevicius et al. 2017 (1710.03740)");
  c.next("shardplan estimate RUN.json --explain optim");
}

namespace {

/// The layer that most layers of the model are like.
const Term* layer_term(Card& c, std::string_view field) {
  for (const char* const kind : {"dense", "moe"}) {
    if (const Term* const term = c.terms().find(fmt::format("layers.{}.{}", kind, field))) return term;
  }
  return nullptr;
}

}  // namespace

void activations(Card& c) {
  const Term* const kept = layer_term(c, "kept");
  if (kept == nullptr) return;
  const Sym formula = c.adopt(kept->formula);
  c.title("what one layer keeps for backward, one microbatch, under the run's kernels and recomputation");
  c.collected(formula, "B", fmt::format("{:.2f} MiB a layer", formula.value() / 1048576));
  const Estimate& e = c.estimate();
  const std::size_t stage = static_cast<std::size_t>(e.peak_stage);
  c.remark("stage", fmt::format("{} layers x {} in flight and what stands at the ends = {} on stage {}",
                                e.stages[stage].layers, e.stages[stage].in_flight_microbatches,
                                gib(static_cast<double>(e.stages[stage].moments[1].activations)), stage));
  const Run& run = c.run();
  const double s = static_cast<double>(run.training.seq_length), b = static_cast<double>(run.training.micro_batch_size);
  const double h = static_cast<double>(run.model.hidden_size),
               a = static_cast<double>(run.model.layer(0).attention.heads);
  const double paper = (34 * s * b * h + 5 * a * s * s * b) / run.parallel.tensor;
  c.beware(
      fmt::format("34sbh + 5as2b (GPT, dropout, eager attention) over t says {:.0f} MiB: {:.1f}x what this run keeps. "
                  "Without dropout, with flash and grouped queries the terms are others",
                  paper / 1048576, paper / formula.value()));
  c.source("Korthikanti et al. 2022 (2205.05198) 4; PyTorch autograd, measured to the byte");
  c.next(fmt::format("shardplan estimate RUN.json --explain {}", kept->address));
}

void checkpointing(Card& c) {
  const Run& run = c.run();
  const Estimate& e = c.estimate();
  const std::size_t stage = static_cast<std::size_t>(e.peak_stage);
  const Term* const input = layer_term(c, "checkpoint");
  const Term* const all = layer_term(c, "saved");
  if (input == nullptr || all == nullptr) return;
  const Sym L = c.count("L", "layers of the stage", e.stages[stage].layers);
  const Sym live =
      c.count("live", "microbatches in flight", static_cast<double>(e.stages[stage].in_flight_microbatches));
  const Sym X = c.symbol("X", "a layer's input, 2sbh/t", input->value, "B");
  const Sym A = c.symbol("A", "all that a layer keeps", all->value, "B");
  c.title("full recomputation keeps each layer's input and makes one layer's activations again at a time");
  c.result(L * live * X, "B", gib(L.value() * live.value() * X.value()),
           fmt::format("L live X, and once A = {:.0f} MiB", A.value() / 1048576));
  c.note(fmt::format("full recompute, was {}", gib(L.value() * live.value() * A.value())));
  const auto every = [&](double k) { return (L.value() / k) * live.value() * X.value() + k * A.value(); };
  double best = 1;
  for (int k = 2; k <= static_cast<int>(L.value()); ++k) {
    if (every(k) < every(best)) best = k;
  }
  c.remark("every k", fmt::format("(L/k) live X + kA: k = 1 {}, k = 2 {}, least at k = {:.0f} {}", gib(every(1)),
                                  gib(every(2)), best, gib(every(best))));
  Run full = run;
  full.training.recompute = {RecomputeMode::full, 0, 0};
  Run none = run;
  none.training.recompute = {};
  Run selective = run;
  selective.training.recompute = {RecomputeMode::selective, 0, 0};
  EstimateWorkspace w;
  Estimate with, without, core;
  estimate(full, w, with);
  estimate(selective, w, core);
  estimate(none, w, without);
  c.remark("selective", fmt::format("the attention core alone: {} -> {} on stage {}{}",
                                    gib(static_cast<double>(without.stages[stage].moments[1].activations)),
                                    gib(static_cast<double>(core.stages[stage].moments[1].activations)), stage,
                                    run.training.attention == AttentionKernel::eager ? "" : "; flash keeps no scores"));
  c.remark("time", fmt::format("step {:.2f} -> {:.2f} s (+{:.1f}%) under full", without.time.step_s, with.time.step_s,
                               100 * (with.time.step_s / without.time.step_s - 1)));
  c.remark("sqrt(L)", "Chen et al.: 64 layers keep 8 inputs and make 8 layers again: 16 layers' worth");
  c.beware(
      "frameworks keep each layer's input: L, not sqrt(L). \"33%\" is a forward in three of FLOP; TP repeats its "
      "exchange; frozen weights make it 2 of 4: 50%");
  c.source("Chen et al. 2016 (1604.06174); Korthikanti et al. 2022 (2205.05198) 5; measured");
  c.next("shardplan estimate RUN.json --recompute full");
}

void logits(Card& c) {
  const Run& run = c.run();
  const Term* const term = c.terms().find("memory.transient.logits_and_loss");
  const double tokens =
      static_cast<double>(run.training.seq_length * run.training.micro_batch_size) / run.parallel.context;
  const double logits = tokens * static_cast<double>(run.padded_vocab()) / run.parallel.tensor;
  const Sym peak =
      term == nullptr ? c.symbol("loss", "held apart from the loss' own kernel", 0, "B") : c.adopt(term->formula);
  c.title("what the loss holds at its largest moment");
  c.collected(peak, "B", gib(peak.value()));
  c.note(fmt::format("loss {}", name(run.training.loss)));
  const auto other = [&](LossKind loss, std::string_view unit = {}) {
    const double bytes = loss_bytes(loss, 1, 2, false).peak_per_logit;
    return fmt::format("{} {:.0f}{} {}", name(loss), bytes, unit, gib(bytes * logits));
  };
  c.remark("losses",
           fmt::format("{} | {} | {} | {} | {} | "
                       "liger fuses head and loss: a chunk's, and 2Vh if the head trains",
                       other(LossKind::hf, " B a logit"), other(LossKind::logits16, ":"),
                       other(LossKind::megatron, ":"), other(LossKind::te, ":"), other(LossKind::compiled, ":")));
  c.beware(
      "on top of activations, on the last stage only; the peak of small models with large vocabularies. Keeping the "
      "logits in the loop adds 4 bytes each at every later moment");
  c.source("PyTorch autograd, measured (docs/run.md, loss)");
  c.next("shardplan estimate RUN.json --loss liger");
}

void transients(Card& c) {
  const Estimate& e = c.estimate();
  const std::string when(name(e.stages.back().peak_moment));
  const std::string address = fmt::format("memory.transient.{}@{}", when, e.stages.back().stage);
  const Term* const term = c.terms().find(address);
  if (term == nullptr) return;
  const Sym formula = c.adopt(
      term->formula.node() == nullptr ? c.symbol("transient", "bytes at the peak", term->value, "B") : term->formula);
  const bool at_loss = e.stages.back().peak_moment == Moment::loss;
  c.result(formula, "B", gib(formula.value()), at_loss ? "the most that loss and head hold, and workspaces" : "");
  c.title(fmt::format("what the last stage holds for a while at its peak, {}", when));
  std::string moments;
  for (std::size_t i = 0; i < moment_count; ++i) {
    if (!e.stages.back().has_moment[i]) continue;
    moments += fmt::format("{}{} {}", moments.empty() ? "" : " | ", name(static_cast<Moment>(i)),
                           gib(static_cast<double>(e.stages.back().moments[i].transient)));
  }
  c.remark("moments", moments);
  c.beware("a step's peak is its largest moment, not a sum: logits are gone when backward ends");
  c.source("PyTorch autograd, measured; docs/validation.md");
  c.next("shardplan estimate RUN.json --explain trans");
}

void reserved(Card& c) {
  const Estimate& e = c.estimate();
  const StageEstimate& stage = e.stages[static_cast<std::size_t>(e.binding_stage)];
  const Term* const term = c.terms().find("memory.reserved");
  if (term == nullptr) return;
  const Sym framework =
      c.symbol("framework", "CUDA context and NCCL", static_cast<double>(stage.peak().framework), "B");
  const Sym shown = c.adopt(term->formula) + framework;
  c.title("what nvidia-smi shows against what tensors take");
  c.result(shown, "B", gib(shown.value()));
  c.remark("band", fmt::format("{} to {} with the framework's {}",
                               gib(static_cast<double>(stage.reserved_low_bytes + stage.peak().framework)),
                               gib(static_cast<double>(stage.reserved_high_bytes + stage.peak().framework)),
                               gib(framework.value())));
  c.beware(
      "max_memory_allocated is not what decides: the allocator's cache and what lies outside it must fit as well. "
      "expandable_segments lowers the band, it does not remove it");
  c.source("PyTorch CUDACachingAllocator; Bekman, ml-engineering; measured runs");
  c.next("shardplan estimate RUN.json --detail");
}

}  // namespace shardplan::explain
