// FLOP of a token through the whole model, tokens per second, and MFU in the conventions that people quote. Formulas
// over numbers or text (physics/trace.hpp); throughput.cpp has them over double.
#pragma once

#include <algorithm>
#include <string>

#include "shardplan/physics/fold_formulas.hpp"
#include "shardplan/physics/parameter_formulas.hpp"
#include "shardplan/plan/mtp_formulas.hpp"
#include "shardplan/plan/step_time_names.hpp"
#include "shardplan/plan/throughput_names.hpp"

namespace shardplan {

/// FLOP of one token through the whole model.
template <class N>
struct TokenFlopOf {
  N total{};  ///< matrix products forward and backward, scores in full, unpadded vocabulary
  N score{};
  N causal{};  ///< the same with the keys that a causal query sees
  N again{};
  N padding{};  ///< of the padded vocabulary rows
};

/// Of the layers, those that run again: full:N recomputes the first N of each chunk.
inline double recomputed_share(const Run& run) noexcept {
  const Recompute& recompute = run.training.recompute;
  if (recompute.mode != RecomputeMode::first_n || run.model.layers() == 0) return 1;
  double layers = 0;
  for (const int of_chunk : run.parallel.layers_per_chunk) layers += std::min(of_chunk, recompute.n);
  return layers / static_cast<double>(run.model.layers());
}

/// A step of one kind of layer: "throughput.layer_1" where a model has several.
template <class Trace, class N = NumberOf<Trace>>
N kind_step(const Trace& trace, StepName name, const Model& model, std::size_t kind, N formula) {
  if constexpr (Trace::records) {
    const std::string address =
        std::string(name.field) + (model.kinds.size() > 1 ? "_" + std::to_string(kind) : std::string());
    name.field = address;
    return trace.step(name, formula);
  } else {
    return trace.step(name, formula);
  }
}

/// Both passes of a list, each token's share.
template <class N>
N both_passes(const UnitFlopOf<N>& unit, N tokens) {
  return (unit.forward + (unit.input_gradient + unit.weight_gradient)) / tokens;
}

template <class Trace, class N = NumberOf<Trace>>
void add_layer_flop(const Trace& trace, const Run& run, std::size_t i, N s, TokenFlopOf<N>& flop) {
  const Model& model = run.model;
  const Training& training = run.training;
  const LayerKind& kind = model.kinds[i];
  Symbols<double> numbers = whole_model_symbols(model, kind, value_of(s));
  numbers.r = training.peft.rank;
  const Symbols<N> v = trace.symbols(numbers);
  LayerOptions o = whole_model_options(model);
  o.base_trains = !training.peft.active();
  o.adapted = training.peft.active() ? training.peft.targets : 0;
  o.attention = training.attention;
  OperatorList<N> list;
  layer_operators(v, o, kind, 1, 1, list);
  const UnitFlopOf<N> unit = unit_flop(list, training.recompute, training.recompute.of_layers());
  const N layers = layers_of_kind(model, i);
  const N both = kind_step(trace, throughput_names::layer, model, i, both_passes(unit, s));
  const N score = kind_step(trace, throughput_names::layer_score, model, i, 3.0 * unit.score / s);
  const N again = kind_step(trace, throughput_names::layer_again, model, i, unit.recompute / s);
  flop.total += layers * both;
  flop.score += layers * score;
  flop.causal += layers * (both - score + score * v.keys_causal / v.keys);
  flop.again += layers * trace.degree(throughput_names::recomputed_share, recomputed_share(run)) * again;
}

/// FLOP of the head and one token; returns it.
template <class Trace, class N = NumberOf<Trace>>
N head_flop(const Trace& trace, const Run& run, N s) {
  const Model& model = run.model;
  const Peft& peft = run.training.peft;
  Symbols<double> numbers = whole_model_symbols(model, model.kinds.front(), value_of(s));
  numbers.r = peft.rank;
  LayerOptions o = whole_model_options(model);
  o.adapted = peft.active() ? peft.targets : 0;
  OperatorList<N> ends;
  head_operators(trace.symbols(numbers), o, model, LossBytes{}, !peft.active(), false, ends);
  const UnitFlopOf<N> unit = unit_flop(ends, Recompute{}, false);
  return trace.of_run().step(throughput_names::head, both_passes(unit, s));
}

/// Multi-token-prediction modules: each one more block, its projection, one more pass of the head.
template <class Trace, class N = NumberOf<Trace>>
void add_mtp_flop(const Trace& trace, const Run& run, N s, N head, TokenFlopOf<N>& flop) {
  const Model& model = run.model;
  const LayerKind& last = model.layer(model.layers() - 1);
  const Symbols<N> v = trace.symbols(whole_model_symbols(model, last, value_of(s)));
  OperatorList<N> list;
  layer_operators(v, whole_model_options(model), last, 1, 1, list);
  list.operators.add(mtp_projection(v));
  const UnitFlopOf<N> unit = unit_flop(list, Recompute{}, false);
  const N module = trace.step(throughput_names::module, both_passes(unit, s));
  const N score = trace.step(throughput_names::module_score, 3.0 * unit.score / s);
  const double count = static_cast<double>(model.mtp_layers);
  const N modules = count > 1 ? trace.config(throughput_names::mtp_layers, count) : N(1.0);
  flop.total += modules * (module + head);
  flop.causal += modules * (module - score + score * v.keys_causal / v.keys + head);
  flop.score += modules * score;
}

/// The vocabulary with the rows that pad it.
template <class Trace, class N = NumberOf<Trace>>
N padded_vocabulary(const Trace& trace, const Run& run) {
  using std::ceil;
  const N rows = trace.config(throughput_names::vocabulary, static_cast<double>(run.model.vocab_size));
  const N multiple = trace.degree(throughput_names::vocab_multiple, static_cast<double>(run.training.vocab_multiple)) *
                     trace.degree(throughput_names::tensor, run.parallel.tensor);
  return trace.step(throughput_names::padded_vocabulary, ceil(rows / multiple) * multiple);
}

template <class Trace, class N = NumberOf<Trace>>
TokenFlopOf<N> token_flop(const Trace& trace, const Run& run, N s) {
  TokenFlopOf<N> flop;
  const Trace here = trace.in("throughput");
  for (std::size_t i = 0; i < run.model.kinds.size(); ++i) add_layer_flop(here, run, i, s, flop);
  const N head = head_flop(here, run, s);
  flop.total += head;
  flop.causal += head;
  const N rows = trace.config(throughput_names::vocabulary, static_cast<double>(run.model.vocab_size));
  const N padded = padded_vocabulary(trace, run);
  if (value_of(padded) != value_of(rows)) flop.padding = head * (padded / rows - 1.0);
  if (trains_mtp(run)) add_mtp_flop(here, run, s, head, flop);
  flop.total = trace.figure(throughput_names::total_flop, flop.total);
  flop.score = trace.figure(throughput_names::score_flop, flop.score);
  flop.causal = trace.step(throughput_names::causal_flop, flop.causal);
  flop.again = trace.step(throughput_names::again_flop, flop.again);
  flop.padding = trace.step(throughput_names::padding_flop, flop.padding);
  if (Trace::records) trace.figure(throughput_names::more_flop, flop.again + flop.padding);
  return flop;
}

/// Shares of the GPU's peak. `active`: parameters that a token passes.
template <class Trace, class N = NumberOf<Trace>>
void fold_utilisation(const Trace& trace, const TokenFlopOf<N>& flop, N rate, N peak, N active, N model_rate,
                      N hardware_rate, ThroughputEstimate& t) {
  t.mfu = value_of(trace.figure(throughput_names::mfu, model_rate / peak));
  t.hfu = value_of(trace.figure(throughput_names::hfu, hardware_rate / peak));
  t.mfu_causal = value_of(trace.figure(throughput_names::mfu_causal, rate * flop.causal / peak));
  t.mfu_6n = value_of(trace.figure(throughput_names::mfu_6n, rate * 6.0 * active / peak));
}

/// estimate_throughput of workspace.hpp.
template <class Trace, class N = NumberOf<Trace>>
void fold_throughput(const Trace& trace, const Run& run, Estimate& out) {
  ThroughputEstimate& t = out.throughput;
  t = ThroughputEstimate{};
  const N s = trace.run(throughput_names::tokens, static_cast<double>(run.training.seq_length));
  const N sequences = trace.run(throughput_names::sequences, static_cast<double>(run.training.global_batch_size));
  const N step = trace.known(step_names::step, N(out.time.step_s));
  const TokenFlopOf<N> flop = token_flop(trace, run, s);
  t.model_flop_per_token = value_of(flop.total);
  t.score_flop_per_token = value_of(flop.score);
  t.peak_flop_per_s = run.cluster.gpu.peak(run.training.precision);
  const N peak =
      trace.figure(throughput_names::peak, trace.gpu(timing_names::peak(run.training.precision), t.peak_flop_per_s));
  if (value_of(step) <= 0) return;
  const auto put = [&trace](const StepName& name, N formula, double& to) {
    const N figure = trace.figure(name, formula);
    to = value_of(figure);
    return figure;
  };
  const N tokens = put(throughput_names::tokens_rate, sequences * s / step, t.tokens_per_s);
  const N rate =
      put(throughput_names::gpu_rate, tokens / trace.run(throughput_names::gpus, run.num_gpus), t.tokens_per_s_per_gpu);
  put(throughput_names::sample_rate, sequences / step, t.samples_per_s);
  const N model_rate = put(throughput_names::model_rate, rate * flop.total, t.model_flop_per_s_per_gpu);
  const N hardware_rate = put(throughput_names::hardware_rate, rate * (flop.total + flop.padding + flop.again),
                              t.hardware_flop_per_s_per_gpu);
  if (t.peak_flop_per_s > 0) {
    const N active = trace.known(throughput_names::active, N(static_cast<double>(out.model.active_parameters)));
    fold_utilisation(trace, flop, rate, peak, active, model_rate, hardware_rate, t);
  }
  const N hours = put(throughput_names::gpu_hours, 1e12 / rate / 3600.0, t.gpu_hours_per_1e12_tokens);
  t.has_price = run.cluster.has_price;
  if (t.has_price) {
    put(throughput_names::cost, hours * trace.cluster(throughput_names::price, run.cluster.price_per_gpu_hour),
        t.price_per_1e12_tokens);
  }
}

}  // namespace shardplan
