// Terms of throughput, of the FLOP behind it, and of the model's parameters.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "term_builder.hpp"

namespace shardplan::explain {

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
