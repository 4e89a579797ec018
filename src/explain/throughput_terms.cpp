// Terms of throughput, of the FLOP behind it, and of the model's parameters.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "shardplan/physics/frameworks/facts.hpp"
#include "term_builder.hpp"

namespace shardplan::explain {
namespace {

Sym flop_of(const OperatorList<Sym>& list) {
  Sym flop;
  for (const Operator<Sym>& op : list.operators) {
    flop += op.forward_flop + op.input_gradient_flop + op.weight_gradient_flop;
  }
  return flop;
}

Sym scores_of(const OperatorList<Sym>& list) {
  Sym scores;
  for (const Operator<Sym>& op : list.operators) scores += 3.0 * op.score_flop;
  return scores;
}

/// What of a layer's forward FLOP runs again, as fold_flop has it.
Sym rerun_of(const OperatorList<Sym>& text, const OperatorList<double>& numbers, const Recompute& recompute) {
  Sym flop;
  int product = 0;
  const Operator<double>* number = numbers.operators.begin();
  for (const Operator<Sym>& op : text.operators) {
    bool again = is_recomputed(*number++, recompute);
    if (recompute.of_layers()) {
      const bool by_operator = recompute.mode == RecomputeMode::ops;
      again = !by_operator || (op.kind == OperatorKind::gemm && product++ % 2 == 1);
    }
    if (again) flop += op.forward_flop;
  }
  return flop;
}

/// Of all layers, those that are recomputed: full:N runs the first N of each chunk again.
double recomputed_share(const Run& run) {
  const Recompute& recompute = run.training.recompute;
  if (recompute.mode != RecomputeMode::first_n) return 1;
  double layers = 0;
  for (const int of_chunk : run.parallel.layers_per_chunk) layers += std::min(of_chunk, recompute.n);
  return layers / static_cast<double>(run.model.layers());
}

}  // namespace

/// FLOP of a token, kind by kind of layer, over the whole, uncut model.
TermBuilder::TokenTerms TermBuilder::token_terms(Sym s) {
  TokenTerms sum;
  LayerOptions o = whole_model_options(run.model);
  o.base_trains = !run.training.peft.active();
  o.adapted = run.training.peft.active() ? run.training.peft.targets : 0;
  o.attention = run.training.attention;
  const auto layer_of = [&](const std::string& tail, const OperatorList<Sym>& list, const Symbols<Sym>& v) {
    const Sym flop = add("layer", "throughput.layer" + tail, "FLOP of one layer and token, forward and backward",
                         "FLOP", flop_of(list) / s, sources::palm);
    const Sym score = add("layer_score", "throughput.layer_score" + tail, "of it, attention scores in full", "FLOP",
                          scores_of(list) / s, sources::palm);
    const Sym seen = v.keys.value() > 0 ? score * v.keys_causal / v.keys : Sym();
    const Sym causal = score.value() == 0 ? flop : flop - score + seen;
    return std::array<Sym, 3>{flop, score, causal};
  };
  for (std::size_t i = 0; i < run.model.kinds.size(); ++i) {
    const LayerKind& kind = run.model.kinds[i];
    const Sym layers(static_cast<double>(std::count(run.model.layer_kinds.begin(), run.model.layer_kinds.end(), i)));
    Symbols<double> numbers = whole_model_symbols(run.model, kind, s.value());
    numbers.r = run.training.peft.rank;
    const Symbols<Sym> v = symbols(numbers, sources::config);
    OperatorList<Sym> list;
    OperatorList<double> list_numbers;
    layer_operators(v, o, kind, 1, 1, list);
    layer_operators(numbers, o, kind, 1, 1, list_numbers);
    const std::string tail = run.model.kinds.size() > 1 ? fmt::format("_{}", i) : std::string();
    const auto [flop, score, causal] = layer_of(tail, list, v);
    sum.total += layers * flop;
    sum.score += layers * score;
    sum.causal += layers * causal;
    const Sym again = rerun_of(list, list_numbers, run.training.recompute);
    if (again.value() > 0) {
      sum.more += layers * Sym(recomputed_share(run)) *
                  add("again", "throughput.layer_again" + tail, "FLOP of one layer and token that run again", "FLOP",
                      again / s, sources::palm);
    }
  }
  Symbols<double> numbers = whole_model_symbols(run.model, run.model.kinds.front(), s.value());
  numbers.r = run.training.peft.rank;
  LayerOptions end_options = whole_model_options(run.model);
  end_options.adapted = run.training.peft.active() ? run.training.peft.targets : 0;
  OperatorList<Sym> ends;
  head_operators(symbols(numbers, sources::config), end_options, run.model, LossBytes{}, !run.training.peft.active(),
                 false, ends);
  const Sym head =
      add("head", "throughput.head", "FLOP of the head and one token", "FLOP", flop_of(ends) / s, sources::palm);
  sum.total += head;
  sum.causal += head;
  const double rows = static_cast<double>(run.model.vocab_size), padded = static_cast<double>(run.padded_vocab());
  if (padded != rows) {
    sum.more += head * (of("padded", "model.padded_vocab_size") /
                            terms.input("vocab", "tokens of the vocabulary", rows, sources::config) -
                        1.0);
  }
  if (run.model.mtp_layers > 0 && facts_of(run.training.framework).trains_mtp) {
    const LayerKind& last = run.model.layer(run.model.layers() - 1);
    const Symbols<Sym> v = symbols(whole_model_symbols(run.model, last, s.value()), sources::config);
    OperatorList<Sym> block;
    layer_operators(v, whole_model_options(run.model), last, 1, 1, block);
    const auto [flop, score, causal] = layer_of("_mtp", block, v);
    const double times = static_cast<double>(run.model.mtp_layers);
    const Sym modules =
        times == 1 ? Sym(1.0) : terms.input("mtp_layers", "multi-token prediction modules", times, sources::config);
    const Sym projection = 12.0 * v.h * v.h;
    sum.total += modules * (flop + projection + head);
    sum.causal += modules * (causal + projection + head);
    sum.score += modules * score;
  }
  return sum;
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
  const TokenTerms token = token_terms(s);
  const Sym flop = derived("FLOP", "throughput.model_flop_per_token", "FLOP of a token, scores in full", "FLOP",
                           token.total, t.model_flop_per_token, sources::palm);
  derived("score", "throughput.score_flop_per_token", "of it, attention scores in full", "FLOP", token.score,
          t.score_flop_per_token, sources::palm);
  const Sym peak = leaf("peak", "throughput.peak", "dense rate of the GPU in the compute precision", "FLOP/s",
                        t.peak_flop_per_s, "shardplan list gpus");
  const Sym model_rate = add_checked("model_rate", "throughput.model", "model FLOP a second and GPU", "FLOP/s",
                                     rate * flop, t.model_flop_per_s_per_gpu, sources::palm);
  const Sym more =
      add("more", "throughput.recomputed_flop_per_token",
          "FLOP of a token: what runs again, and the rows that pad the vocabulary", "FLOP", token.more, sources::palm);
  const Sym hardware = derived("hardware_rate", "throughput.hardware", "FLOP a second and GPU with recomputation",
                               "FLOP/s", rate * (flop + more), t.hardware_flop_per_s_per_gpu, sources::palm);
  if (t.peak_flop_per_s > 0) {
    const auto share = [&](std::string_view word, std::string_view meaning, Sym formula, double value,
                           std::string_view source) {
      add_checked(word, fmt::format("throughput.{}", word), meaning, "fraction", formula, value, source);
    };
    share("mfu", "model FLOP over the peak, scores in full", model_rate / peak, t.mfu, sources::palm);
    share("hfu", "with recomputation", hardware / peak, t.hfu, sources::palm);
    const Sym half =
        add("causal_FLOP", "throughput.causal_flop_per_token", "FLOP of a token, scores under the causal mask", "FLOP",
            token.causal, "Megatron-LM num_floating_point_operations; sliding windows exact");
    share("mfu_causal", "with half of the scores", rate * half / peak, t.mfu_causal, sources::palm);
    const Sym active = of("N_active", "model.active_parameters");
    share("mfu_6n", "by 6 FLOP a parameter and token", 6.0 * active * rate / peak, t.mfu_6n,
          "arXiv:2001.08361 section 2.1");
  }
  const Sym hours = add_checked("hours", "throughput.gpu_hours_per_1e12_tokens", "GPU hours for 10^12 tokens", "h",
                                1e12 / rate / 3600.0, t.gpu_hours_per_1e12_tokens, "10^12 over the rate");
  if (t.has_price) {
    const Sym price =
        terms.input("price_per_gpu_hour", "of a GPU hour", run.cluster.price_per_gpu_hour, "the cluster file");
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
  Sym idle;  // experts that a token does not visit
  for (std::size_t i = 0; i < run.model.kinds.size(); ++i) {
    const LayerKind& kind = run.model.kinds[i];
    const Symbols<Sym> v = symbols(whole_model_symbols(run.model, kind, 1), sources::config);
    OperatorList<Sym> list;
    layer_operators(v, options, kind, 1, 1, list);
    const double layers =
        static_cast<double>(std::count(run.model.layer_kinds.begin(), run.model.layer_kinds.end(), i));
    add_list(list, layers);
    if (kind.mlp.kind != MlpKind::moe || kind.mlp.experts <= 0) continue;
    for (const Operator<Sym>& op : list.operators) {
      if (op.part == Part::experts) idle += Sym(layers) * op.parameters / v.E * (v.E - v.k_top);
    }
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
  const Sym parameters =
      add_checked("parameters", "model.parameters", "of the published model: unpadded, tied once", "",
                  std::fabs(total.value() - of_model) < 0.5 ? total : total + adapters, of_model, sources::config);
  const Sym visits = idle.value() == 0
                         ? parameters
                         : parameters - add("idle", "model.idle_parameters", "experts that a token does not visit", "",
                                            idle, sources::config);
  derived("active", "model.active_parameters", "parameters that a token passes", "", visits,
          exact(estimate.model.active_parameters), sources::config);
  const double trainable = exact(estimate.model.trainable_parameters);
  add_checked("trainable", "model.trainable_parameters", "parameters that train", "",
              trainable == adapters.value() && trainable > 0 ? adapters : parameters, trainable, sources::config);
  leaf("vocab", "model.padded_vocab_size", "rows of the vocabulary with padding", "",
       exact(estimate.model.padded_vocab_size), "make_vocab_size_divisible_by x t (Megatron-LM)");
}

}  // namespace shardplan::explain
