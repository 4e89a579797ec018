#include "shardplan/physics/parameters.hpp"

#include <cmath>

#include "shardplan/physics/layer_inputs.hpp"

namespace shardplan {
namespace {

std::int64_t count(double value) noexcept { return std::llround(value); }

/// Adds `times` the weights of a list, by part.
void add_parts(const OperatorList<double>& list, double times, ParametersByPart& parts) noexcept {
  for (const Operator<double>& op : list.operators) {
    const std::int64_t n = count(times * op.parameters);
    switch (op.part) {
      case Part::embedding: parts.embedding += n; break;
      case Part::attention: parts.attention += n; break;
      case Part::mlp: parts.mlp += n; break;
      case Part::experts: parts.experts += n; break;
      case Part::router: parts.router += n; break;
      case Part::norm: parts.norm += n; break;
      case Part::head: parts.head += n; break;
    }
  }
}

}  // namespace

ModelCounts count_parameters(const Model& model) noexcept {
  ModelCounts counts;
  const LayerOptions options = whole_model_options(model);
  std::int64_t idle = 0;  // experts that a token does not visit
  for (std::size_t i = 0; i < model.kinds.size(); ++i) {
    std::int64_t layers = 0;
    for (const std::uint8_t kind : model.layer_kinds) layers += kind == i ? 1 : 0;
    const LayerKind& kind = model.kinds[i];
    OperatorList<double> list;
    layer_operators(whole_model_symbols(model, kind, 1), options, kind, 1, 1, list);
    const std::int64_t before = counts.by_part.experts;
    add_parts(list, static_cast<double>(layers), counts.by_part);
    if (kind.mlp.kind == MlpKind::moe && kind.mlp.experts > 0) {
      const std::int64_t experts = counts.by_part.experts - before;
      idle += experts / kind.mlp.experts * (kind.mlp.experts - kind.mlp.top_k);
    }
  }
  if (!model.kinds.empty()) {
    const Symbols<double> v = whole_model_symbols(model, model.kinds.front(), 1);
    OperatorList<double> ends;
    embedding_operators(v, options, model, true, ends);
    final_norm_operators(v, options, model, ends);
    head_operators(v, options, model, LossBytes{}, true, model.tied_embeddings, ends);
    add_parts(ends, 1, counts.by_part);
  }
  counts.parameters = counts.by_part.total();
  counts.active_parameters = counts.parameters - idle;
  counts.trainable_parameters = counts.parameters;
  counts.padded_vocab_size = model.vocab_size;
  return counts;
}

double layer_parameters(const Model& model, const LayerKind& kind) noexcept {
  OperatorList<double> list;
  layer_operators(whole_model_symbols(model, kind, 1), whole_model_options(model), kind, 1, 1, list);
  double total = 0;
  for (const Operator<double>& op : list.operators) total += op.parameters;
  return total;
}

}  // namespace shardplan
