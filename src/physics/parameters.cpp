#include "shardplan/physics/parameters.hpp"

#include <cmath>

#include "shardplan/physics/parameter_formulas.hpp"

namespace shardplan {

ModelCounts count_parameters(const Model& model) noexcept {
  const ModelPartsOf<double> parts = model_parts(NoTrace{}, model);
  const auto of = [&parts](Part part) { return std::llround(parts.parts[static_cast<std::size_t>(part)]); };
  ModelCounts counts;
  counts.by_part = {of(Part::embedding), of(Part::attention), of(Part::mlp),  of(Part::experts),
                    of(Part::router),    of(Part::norm),      of(Part::head), 0};
  counts.parameters = counts.by_part.total();
  counts.active_parameters = counts.parameters - std::llround(parts.idle);
  counts.trainable_parameters = counts.parameters;
  counts.padded_vocab_size = model.vocab_size;
  return counts;
}

std::int64_t count_adapters(const Run& run) noexcept { return std::llround(model_adapters(NoTrace{}, run)); }

double layer_parameters(const Model& model, const LayerKind& kind) noexcept {
  OperatorList<double> list;
  layer_operators(whole_model_symbols(model, kind, 1), whole_model_options(model), kind, 1, 1, list);
  double total = 0;
  for (const Operator<double>& op : list.operators) total += op.parameters;
  return total;
}

}  // namespace shardplan
