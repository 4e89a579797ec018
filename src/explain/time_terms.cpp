// Terms of the step's time and of the pipeline's bubble.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "term_builder.hpp"

namespace shardplan::explain {

void TermBuilder::add_pipeline_and_time() {
  const TimeEstimate& time = estimate.time;
  const schedule::Shape& shape = w.spec.shape;
  const double ranks = static_cast<double>(w.stages.size());
  const double through = schedule::microbatches_per_chunk(shape);
  const Sym m = terms.input("m", "microbatches of a step", through, sources::run_file);
  const double host_s = run.training.stack.timing.host_per_microbatch_s;

  Sym compute_sum, recompute_sum, exposed_sum, bubble_sum;
  const Sym makespan = leaf("makespan", "time.makespan", "the pipeline, first op to last", "s", w.simulated.makespan,
                            sources::simulated);
  for (std::size_t i = 0; i < w.stages.size(); ++i) {
    const int stage = static_cast<int>(i);
    const Stage& numbers = w.stages[i];
    Sym forward, backward;
    for (const ChunkTerms& chunk : stages[i].chunks) {
      for (const Group& group : chunk.groups) {
        forward += Sym(static_cast<double>(group.count)) * group.unit->forward;
        backward += Sym(static_cast<double>(group.count)) * group.unit->backward;
      }
    }
    const UnitTime& unit = numbers.total.time;
    const Sym f =
        add_checked("F", at_stage("time.forward", stage), fmt::format("stage {}: forward, one microbatch", stage), "s",
                    forward, unit.forward_s, sources::timing);
    const Sym g =
        add_checked("B", at_stage("time.backward", stage), fmt::format("stage {}: backward, one microbatch", stage),
                    "s", backward, unit.backward_s, sources::timing);
    Sym per_microbatch = f + g;
    const double chunks = schedule::chunks_per_rank(shape);
    if (host_s > 0) {
      per_microbatch +=
          Sym(chunks) * terms.input("host", "host work of a microbatch", host_s, "configs/timing/constants.json", "s");
    }
    compute_sum += add_checked("compute", at_stage("time.compute", stage), fmt::format("stage {}: compute", stage), "s",
                               m * per_microbatch, through * (unit.forward_s + unit.backward_s + chunks * host_s),
                               sources::timing);
    recompute_sum +=
        leaf("recompute", at_stage("time.recompute", stage), fmt::format("stage {}: forward passes again", stage), "s",
             through * unit.recompute_s, sources::timing);
    const double waits = through * (numbers.total.forward_exposed_s + numbers.total.backward_exposed_s);
    const Sym layers =
        leaf("in_layers", at_stage("time.communication_exposed.layers", stage),
             fmt::format("stage {}: collectives of layers that passes wait for", stage), "s", waits, sources::timing);
    const Sym sends = leaf("sends", at_stage("time.communication_exposed.sends", stage),
                           fmt::format("stage {}: time blocked sending to neighbours", stage), "s",
                           w.simulated.exposed_p2p[i], sources::simulated);
    exposed_sum +=
        add("exposed", at_stage("time.communication_exposed", stage),
            fmt::format("stage {}: communication that it waits for", stage), "s", layers + sends, sources::timing);
    bubble_sum += leaf("bubble", at_stage("time.bubble", stage), fmt::format("stage {}: waits for other stages", stage),
                       "s", std::max(0.0, w.simulated.idle[i] - w.simulated.exposed_p2p[i]), sources::simulated);
  }
  const Sym p = ranks > 1 ? terms.input("p", "pipeline stages", ranks, sources::run_file) : Sym(1.0);
  const auto mean = [&](std::string_view symbol, std::string_view address, std::string_view meaning, Sym formula,
                        double value, std::string_view source) {
    return add_checked(symbol, std::string(address), meaning, "s", formula, value, source);
  };
  double data_exposed = 0;
  for (const Stage& stage : w.stages) data_exposed = std::max(data_exposed, stage.data_exposed_s);
  const Sym data = leaf("data", "time.communication_exposed.data",
                        "data-parallel traffic that the slowest stage waits for", "s", data_exposed, sources::timing);
  const Sym compute = mean("compute", "time.compute", "matrix products, attention and the rest, mean over stages",
                           compute_sum / p, time.compute_s, sources::timing);
  const Sym recompute = mean("recompute", "time.recompute", "forward passes again, mean over stages", recompute_sum / p,
                             time.recompute_s, sources::timing);
  const Sym exposed = mean("communication", "time.communication_exposed", "communication that nothing hides",
                           exposed_sum / p + data, time.communication_exposed_s, sources::timing);
  const Sym bubble = mean("bubble", "time.bubble", "waiting for other stages, mean over stages", bubble_sum / p,
                          time.bubble_s, sources::simulated);
  const Sym optimizer = leaf("optimizer", "time.optimizer", "the optimizer's step: bytes that it moves over bandwidth",
                             "s", time.optimizer_s, sources::timing);
  const Sym offload = leaf("offload", "time.offload", "offloading that nothing hides", "s", time.offload_s,
                           "arXiv:2101.06840 section 4; PCIe, host and NVMe bandwidths of the cluster");
  add("step", "time.step", "one optimizer step", "s", compute + recompute + exposed + bubble + optimizer + offload,
      sources::sum);

  const Sym gemm =
      leaf("gemm", "time.gemm", "matrix products, of compute and recompute", "s", time.gemm_s, sources::timing);
  const Sym attention = leaf("attention", "time.attention", "attention, of compute and recompute", "s",
                             time.attention_s, sources::timing);
  mean("rest", "time.other_compute", "norms, activations and what else moves bytes",
       max(Sym(0.0), compute + recompute - gemm - attention), time.other_compute_s, sources::timing);
  constexpr std::array<std::string_view, 8> groups = {"tensor", "pipeline",    "data",      "context",
                                                      "expert", "expert_data", "embedding", "expert_tensor"};
  for (std::size_t i = 0; i < groups.size(); ++i) {
    leaf(groups[i], fmt::format("time.exposed.{}", groups[i]),
         fmt::format("exposed communication, {} groups", groups[i]), "s", time.exposed_by_group_s[i], sources::timing);
  }
  for (const auto& [word, value] :
       {std::pair<std::string_view, double>{"low", time.band_low_s}, {"high", time.band_high_s}}) {
    const double share = time.step_s > 0 ? std::fabs(value / time.step_s - 1) : 0.0;
    leaf(word, fmt::format("time.band_{}", word),
         fmt::format("four of five steps lie {} this; {:.0f}% from the estimate", word == "low" ? "above" : "below",
                     share * 100),
         "s", value, "docs/validation.md");
  }

  const Sym fraction = makespan.value() > 0 ? bubble / makespan : Sym(0.0);
  add_checked("bubble_fraction", "pipeline.bubble_fraction", "waiting over the pipeline's makespan", "fraction",
              fraction, estimate.pipeline.bubble_fraction,
              "arXiv:2104.04473 section 2.2; simulated with this run's times");
  const double count = static_cast<double>(run.microbatches());
  const Sym all = terms.input("m", "microbatches of a step", count, sources::run_file);
  const Sym ranks_in_line = terms.input("p", "pipeline stages", ranks, sources::run_file);
  const double v = run.parallel.virtual_pipeline;
  const Sym chunks = v > 1 ? terms.input("v", "model chunks of a rank", v, sources::run_file) : Sym(1.0);
  Sym ideal(estimate.pipeline.ideal_bubble_fraction);
  const Sym closed = run.parallel.schedule == ScheduleKind::naive
                         ? (ranks_in_line - 1.0) / ranks_in_line
                         : (ranks_in_line - 1.0) / (chunks * all + ranks_in_line - 1.0);
  if (std::fabs(closed.value() - ideal.value()) <= 1e-12) ideal = Sym(ideal.value(), closed.node());
  add("ideal", "pipeline.ideal_bubble_fraction", "with equal stages, F:B:W = 1:1:1 and no communication", "fraction",
      ideal, "arXiv:2104.04473 section 2.2; arXiv:1811.06965 section 2.3");
  leaf("m", "pipeline.num_microbatches", "microbatches of a step: gbs/(mbs x data)", "", count, sources::run_file);
}

void TermBuilder::add_throughput() {
  const ThroughputEstimate& t = estimate.throughput;
  const Term* const step_term = terms.find("time.step");
  const Sym step = terms.expressions().symbol({"step", step_term->meaning, "s", "time.step", "", step_term->value});
  const Sym gbs = terms.input("gbs", "sequences of a step (training.global_batch_size)",
                              static_cast<double>(run.training.global_batch_size), sources::run_file);
  const Sym s = terms.input("s", "tokens of a sequence (training.seq_length)",
                            static_cast<double>(run.training.seq_length), sources::run_file);
  const Sym gpus = terms.input("G", "GPUs (num_gpus)", run.num_gpus, sources::run_file);
  const Sym tokens = add_checked("tokens", "throughput.tokens_per_s", "tokens a second", "tokens/s", gbs * s / step,
                                 t.tokens_per_s, "arXiv:2104.04473 section 5.1");
  const Sym rate = add_checked("rate", "throughput.tokens_per_s_per_gpu", "tokens a second and GPU", "tokens/s",
                               tokens / gpus, t.tokens_per_s_per_gpu, "tokens_per_s over num_gpus");
  add_checked("samples", "throughput.samples_per_s", "sequences a second", "1/s", gbs / step, t.samples_per_s,
              "global batch over step");
  // FLOP of a token, kind by kind of layer, over the whole, uncut model.
  Sym total, score;
  LayerOptions o = whole_model_options(run.model);
  o.base_trains = !run.training.peft.active();
  o.adapted = run.training.peft.active() ? run.training.peft.targets : 0;
  o.attention = run.training.attention;
  for (std::size_t i = 0; i < run.model.kinds.size(); ++i) {
    const LayerKind& kind = run.model.kinds[i];
    const double layers =
        static_cast<double>(std::count(run.model.layer_kinds.begin(), run.model.layer_kinds.end(), i));
    Symbols<double> v = whole_model_symbols(run.model, kind, s.value());
    v.r = run.training.peft.rank;
    OperatorList<Sym> list;
    layer_operators(symbols(v, sources::config), o, kind, 1, 1, list);
    Sym flop, scores;
    for (const Operator<Sym>& op : list.operators) {
      flop += op.forward_flop + op.input_gradient_flop + op.weight_gradient_flop;
      scores += 3.0 * op.score_flop;
    }
    const std::string tail = run.model.kinds.size() > 1 ? fmt::format("_{}", i) : std::string();
    const Sym one = add("layer", fmt::format("throughput.layer{}", tail),
                        "FLOP of one layer and token, forward and backward", "FLOP", flop / s, sources::palm);
    const Sym one_score = add("layer_score", fmt::format("throughput.layer_score{}", tail),
                              "of it, attention scores in full", "FLOP", scores / s, sources::palm);
    total += Sym(layers) * one;
    score += Sym(layers) * one_score;
  }
  Symbols<double> v = whole_model_symbols(run.model, run.model.kinds.front(), s.value());
  v.r = run.training.peft.rank;
  LayerOptions end_options = whole_model_options(run.model);
  end_options.adapted = run.training.peft.active() ? run.training.peft.targets : 0;
  OperatorList<Sym> ends;
  head_operators(symbols(v, sources::config), end_options, run.model, LossBytes{}, !run.training.peft.active(), false,
                 ends);
  Sym head;
  for (const Operator<Sym>& op : ends.operators) {
    head += op.forward_flop + op.input_gradient_flop + op.weight_gradient_flop;
  }
  total += add("head", "throughput.head", "FLOP of the head and one token", "FLOP", head / s, sources::palm);
  const Sym flop = add_checked("FLOP", "throughput.model_flop_per_token", "FLOP of a token, scores in full", "FLOP",
                               total, t.model_flop_per_token, sources::palm);
  add_checked("score", "throughput.score_flop_per_token", "of it, attention scores in full", "FLOP", score,
              t.score_flop_per_token, sources::palm);
  const Sym peak = leaf("peak", "throughput.peak", "dense rate of the GPU in the compute precision", "FLOP/s",
                        t.peak_flop_per_s, "shardplan list gpus");
  const Sym model_rate = add_checked("model_rate", "throughput.model", "model FLOP a second and GPU", "FLOP/s",
                                     rate * flop, t.model_flop_per_s_per_gpu, sources::palm);
  const Sym hardware = [&] {
    const double extra = rate.value() > 0 ? t.hardware_flop_per_s_per_gpu / rate.value() - flop.value() : 0.0;
    const Sym more =
        leaf("more", "throughput.recomputed_flop_per_token", "FLOP of a token: recomputation, padded vocabulary",
             "FLOP", std::fabs(extra) < 1e-9 * flop.value() ? 0.0 : extra, sources::palm);
    return add_checked("hardware_rate", "throughput.hardware", "FLOP a second and GPU with recomputation", "FLOP/s",
                       rate * (flop + more), t.hardware_flop_per_s_per_gpu, sources::palm);
  }();
  if (t.peak_flop_per_s > 0) {
    const auto share = [&](std::string_view word, std::string_view meaning, Sym formula, double value,
                           std::string_view source) {
      add_checked(word, fmt::format("throughput.{}", word), meaning, "fraction", formula, value, source);
    };
    share("mfu", "model FLOP over the peak, scores in full", model_rate / peak, t.mfu, sources::palm);
    share("hfu", "with recomputation", hardware / peak, t.hfu, sources::palm);
    const double causal = rate.value() > 0 ? t.mfu_causal * t.peak_flop_per_s / rate.value() : 0.0;
    const Sym half = leaf("causal", "throughput.causal_flop_per_token", "FLOP of a token, scores under the causal mask",
                          "FLOP", causal, "Megatron-LM num_floating_point_operations; sliding windows exact");
    share("mfu_causal", "with half of the scores", rate * half / peak, t.mfu_causal, sources::palm);
    const Sym active = terms.input("N_active", "parameters that a token passes",
                                   static_cast<double>(estimate.model.active_parameters), sources::config);
    share("mfu_6n", "by 6 FLOP a parameter and token", 6.0 * active * rate / peak, t.mfu_6n,
          "arXiv:2001.08361 section 2.1");
  }
  const Sym hours = add_checked("hours", "throughput.gpu_hours_per_1e12_tokens", "GPU hours for 10^12 tokens", "h",
                                1e12 / rate / 3600.0, t.gpu_hours_per_1e12_tokens, "10^12 over the rate");
  if (t.has_price) {
    const Sym price = terms.input("price", "of a GPU hour", run.cluster.price_per_gpu_hour, "the cluster file");
    add_checked("cost", "throughput.price_per_1e12_tokens", "price of 10^12 tokens", "", hours * price,
                t.price_per_1e12_tokens, "the cluster's price");
  }
}

void TermBuilder::add_model() {
  const ParametersByPart& parts = estimate.model.by_part;
  const auto exact = [](std::int64_t value) { return static_cast<double>(value); };
  std::array<Sym, part_count> sums;
  const LayerOptions options = whole_model_options(run.model);
  const auto add_list = [&](const OperatorList<Sym>& list, double count) {
    for (const Operator<Sym>& op : list.operators)
      sums[static_cast<std::size_t>(op.part)] += Sym(count) * op.parameters;
  };
  for (std::size_t i = 0; i < run.model.kinds.size(); ++i) {
    const LayerKind& kind = run.model.kinds[i];
    OperatorList<Sym> list;
    layer_operators(symbols(whole_model_symbols(run.model, kind, 1), sources::config), options, kind, 1, 1, list);
    add_list(list, static_cast<double>(std::count(run.model.layer_kinds.begin(), run.model.layer_kinds.end(), i)));
  }
  const Symbols<Sym> v = symbols(whole_model_symbols(run.model, run.model.kinds.front(), 1), sources::config);
  OperatorList<Sym> ends;
  embedding_operators(v, options, run.model, true, ends);
  final_norm_operators(v, options, run.model, ends);
  head_operators(v, options, run.model, LossBytes{}, true, run.model.tied_embeddings, ends);
  add_list(ends, 1);
  const std::array<std::pair<std::string_view, std::int64_t>, part_count> rows = {{{"embedding", parts.embedding},
                                                                                   {"attention", parts.attention},
                                                                                   {"mlp", parts.mlp},
                                                                                   {"experts", parts.experts},
                                                                                   {"router", parts.router},
                                                                                   {"norm", parts.norm},
                                                                                   {"head", parts.head}}};
  Sym total;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    total +=
        add_checked(rows[i].first, fmt::format("model.parameters_by_part.{}", rows[i].first),
                    fmt::format("parameters: {}", rows[i].first), "", sums[i], exact(rows[i].second), sources::config);
  }
  const Sym adapters = leaf("adapters", "model.parameters_by_part.adapters", "low-rank adapters", "",
                            exact(parts.adapters), "arXiv:2106.09685 section 4.1: r (in + out) a matrix");
  const double of_model = exact(estimate.model.parameters);
  add_checked("parameters", "model.parameters", "of the published model: unpadded, tied once", "",
              std::fabs(total.value() - of_model) < 0.5 ? total : total + adapters, of_model, sources::config);
  leaf("active", "model.active_parameters", "parameters that a token passes", "",
       exact(estimate.model.active_parameters), sources::config);
  leaf("trainable", "model.trainable_parameters", "parameters that train", "",
       exact(estimate.model.trainable_parameters), sources::config);
  leaf("vocab", "model.padded_vocab_size", "rows of the vocabulary with padding", "",
       exact(estimate.model.padded_vocab_size), "make_vocab_size_divisible_by x t (Megatron-LM)");
}

}  // namespace shardplan::explain
