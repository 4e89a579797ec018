// Parameters of the whole, uncut model, as formulas over numbers or text (trace.hpp). parameters.hpp has them as
// counts.
#pragma once

#include <array>

#include "shardplan/core/run.hpp"
#include "shardplan/physics/ends.hpp"
#include "shardplan/physics/layer.hpp"
#include "shardplan/physics/layer_inputs.hpp"
#include "shardplan/physics/trace.hpp"

namespace shardplan {

/// Layers of a kind.
inline double layers_of_kind(const Model& model, std::size_t kind) noexcept {
  double layers = 0;
  for (const std::uint8_t each : model.layer_kinds) layers += each == kind ? 1 : 0;
  return layers;
}

/// Elements by part of the model. Whole numbers: each operator's are rounded.
template <class N>
struct ModelPartsOf {
  std::array<N, part_count> parts{};
  N idle{};  ///< of experts that a token does not visit

  N total() const {
    N sum = 0.0;
    for (const N& part : parts) sum += part;
    return sum;
  }
};

/// Adds `times` the weights of a list, by part.
template <class N>
void add_parts(const OperatorList<N>& list, N times, std::array<N, part_count>& parts) {
  for (const Operator<N>& op : list.operators) parts[static_cast<std::size_t>(op.part)] += round(times * op.parameters);
}

/// The model as published: no padding, tied embeddings once, no multi-token-prediction layers.
template <class Trace, class N = NumberOf<Trace>>
ModelPartsOf<N> model_parts(const Trace& trace, const Model& model) {
  ModelPartsOf<N> out;
  const LayerOptions options = whole_model_options(model);
  for (std::size_t i = 0; i < model.kinds.size(); ++i) {
    const LayerKind& kind = model.kinds[i];
    const Symbols<N> v = trace.symbols(whole_model_symbols(model, kind, 1));
    OperatorList<N> list;
    layer_operators(v, options, kind, 1, 1, list);
    std::array<N, part_count> parts{};
    add_parts(list, N(layers_of_kind(model, i)), parts);
    for (std::size_t p = 0; p < part_count; ++p) out.parts[p] += parts[p];
    if (kind.mlp.kind != MlpKind::moe || kind.mlp.experts <= 0) continue;
    out.idle += parts[static_cast<std::size_t>(Part::experts)] / v.E * (v.E - v.k_top);
  }
  if (model.kinds.empty()) return out;
  const Symbols<N> v = trace.symbols(whole_model_symbols(model, model.kinds.front(), 1));
  OperatorList<N> ends;
  embedding_operators(v, options, model, true, ends);
  final_norm_operators(v, options, model, ends);
  head_operators(v, options, model, LossBytes{}, true, model.tied_embeddings, ends);
  add_parts(ends, N(1.0), out.parts);
  return out;
}

/// Low-rank adapters of the run.
template <class Trace, class N = NumberOf<Trace>>
N model_adapters(const Trace& trace, const Run& run) {
  if (!run.training.peft.active()) return 0.0;
  const Model& model = run.model;
  LayerOptions o = whole_model_options(model);
  o.base_trains = false;
  o.adapted = run.training.peft.targets;
  o.dora = run.training.peft.method == PeftMethod::dora;
  const auto with_rank = [&](const LayerKind& kind) {
    Symbols<double> v = whole_model_symbols(model, kind, 1);
    v.r = run.training.peft.rank;
    return trace.symbols(v);
  };
  N total = 0.0;
  for (std::size_t i = 0; i < model.kinds.size(); ++i) {
    const N layers = layers_of_kind(model, i);
    OperatorList<N> list;
    layer_operators(with_rank(model.kinds[i]), o, model.kinds[i], 1, 1, list);
    for (const Operator<N>& op : list.operators) total += layers * op.adapter_parameters;
  }
  OperatorList<N> ends;
  embedding_operators(with_rank(model.kinds.front()), o, model, false, ends);
  head_operators(with_rank(model.kinds.front()), o, model, LossBytes{}, false, false, ends);
  for (const Operator<N>& op : ends.operators) total += op.adapter_parameters;
  return total;
}

}  // namespace shardplan
