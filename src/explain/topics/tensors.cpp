#include "tensors.hpp"

#include <numeric>

#include "shardplan/physics/layer.hpp"
#include "shardplan/physics/layer_inputs.hpp"
#include "shardplan/physics/parameters.hpp"

namespace shardplan::explain {
namespace {

double sum_of(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

std::vector<double> layer_tensors(const Model& model, const LayerKind& kind, const Peft& peft) {
  Symbols<double> v = whole_model_symbols(model, kind, 1);
  LayerOptions o = whole_model_options(model);
  if (peft.active()) {
    o.base_trains = false;
    o.adapted = peft.targets;
    v.r = peft.rank;
  }
  OperatorList<double> list;
  layer_operators(v, o, kind, 1, 1, list);
  std::vector<double> sizes;
  for (const Operator<double>& op : list.operators) {
    const auto copies = static_cast<std::size_t>(std::max(1.0, op.matrices));
    for (std::size_t copy = 0; copy < copies; ++copy) {
      for (std::uint8_t i = 0; i < op.named; ++i) {
        const double rows = op.named_rows[i];
        if (!peft.active()) {
          sizes.push_back(rows * op.cols);
        } else if ((op.adapted & (1U << i)) != 0) {
          sizes.insert(sizes.end(), {v.r * op.cols, v.r * rows});
        }
      }
      if (peft.active() && (op.adapted & adapts_whole_product) != 0) {
        sizes.insert(sizes.end(), {v.r * op.cols, v.r * op.rows});
      }
    }
    if (!peft.active() && op.named == 0 && op.parameters > 0) sizes.push_back(op.parameters);
    if (!peft.active() && op.named > 0 && op.biases > 0) sizes.push_back(op.biases);
  }
  return sizes;
}

}  // namespace

double TensorSizes::elements() const {
  double sum = sum_of(embedding) + sum_of(head);
  for (const std::vector<double>& layer : layers) sum += sum_of(layer);
  return sum;
}

TensorSizes tensor_sizes(const Model& model, const Peft& peft) {
  TensorSizes sizes;
  std::vector<std::vector<double>> kinds;
  for (const LayerKind& kind : model.kinds) kinds.push_back(layer_tensors(model, kind, peft));
  for (const std::uint8_t kind : model.layer_kinds) sizes.layers.push_back(kinds[kind]);
  if (peft.active()) return sizes;
  const ParametersByPart parts = count_parameters(model).by_part;
  const auto add = [](std::vector<double>& to, double elements) {
    if (elements > 0) to.push_back(elements);
  };
  add(sizes.embedding, static_cast<double>(parts.embedding));
  if (model.final_norm) add(sizes.head, static_cast<double>(model.hidden_size));
  add(sizes.head, static_cast<double>(parts.head));
  return sizes;
}

std::vector<double> ddp_buckets(const TensorSizes& tensors, double bytes_per_element, double cap) {
  constexpr double first_cap = 1048576;
  std::vector<double> buckets;
  double filled = 0;
  const auto take = [&](const std::vector<double>& sizes) {
    for (auto size = sizes.rbegin(); size != sizes.rend(); ++size) {
      filled += *size * bytes_per_element;
      if (filled < (buckets.empty() ? first_cap : cap)) continue;
      buckets.push_back(filled);
      filled = 0;
    }
  };
  take(tensors.head);
  for (auto layer = tensors.layers.rbegin(); layer != tensors.layers.rend(); ++layer) take(*layer);
  take(tensors.embedding);
  if (filled > 0) buckets.push_back(filled);
  return buckets;
}

Model llama_7b() {
  Model model;
  model.name = "llama-7b";
  model.hidden_size = 4096;
  model.vocab_size = 32000;
  LayerKind kind;
  kind.attention.heads = kind.attention.kv_heads = 32;
  kind.attention.head_dim = kind.attention.v_head_dim = 128;
  kind.mlp.intermediate = 11008;
  model.kinds = {kind};
  model.layer_kinds.assign(32, 0);
  return model;
}

}  // namespace shardplan::explain
