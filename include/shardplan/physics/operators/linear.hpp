// Matrix products with weights: parameters, work, what they keep of their input, low-rank adapters on them.
#pragma once

#include <initializer_list>

#include "shardplan/physics/layer_options.hpp"
#include "shardplan/physics/operator.hpp"
#include "shardplan/physics/symbols.hpp"

namespace shardplan {

/// One named matrix of a fused product, in the model's own (uncut) widths.
template <class N>
struct NamedMatrix {
  MatrixId id;
  N out;      ///< rows of the weight
  N divisor;  ///< what divides `out` (column) on this rank
};

/// A product of `tokens` rows with one or more matrices that read the same input of width `in`.
///
/// FLOP: 2mnk forward, 2mnk for the input's gradient, 2mnk for the weights' gradient where they train.
/// Saved: the input once, if the weights train or a plain adapter reads it; a copy per adapted matrix otherwise.
/// Adapters: r(in + out) per module, A cut with a row-cut input, B cut with a column-cut output (Hu et al. 2021,
/// arXiv:2106.09685, section 4.1; Megatron-Bridge cuts them so).
template <class N>
struct LinearSpec {
  std::string_view name;
  Part part = Part::attention;
  N in{};            ///< uncut input width
  N in_divisor{};    ///< what divides it here (row cut), else 1
  N tokens{};        ///< rows of the product on this rank
  N input_tokens{};  ///< rows of the input that are kept for backward
  N width{};         ///< bytes of an element of the input
  bool bias = false;
  bool input_already_kept = false;   ///< another operator keeps the same storage
  bool adapters_share_copy = false;  ///< one dropped input for all adapters of the product
  Shard shard = Shard::tensor;
};

/// Whether one adapter serves the whole product: the model has it as one module, and all of it is adapted.
template <class N>
bool is_one_adapter(const LayerOptions& o, std::initializer_list<NamedMatrix<N>> matrices) noexcept {
  for (const NamedMatrix<N>& matrix : matrices) {
    if (!contains(o.fused_modules, matrix.id) || !contains(o.adapted, matrix.id)) return false;
  }
  return true;
}

/// What adapters add to a product.
template <class N>
struct AdapterSums {
  N outputs{};             ///< bytes of their low-rank activations
  N copies{};              ///< bytes of their own copies of the input
  bool any = false;        ///< the product has an adapter
  bool any_plain = false;  ///< one that reads the product's own input
};

/// Adds an adapter over `out` outputs; `which` names the matrices that it serves.
template <class N>
void adapt(const Symbols<N>& v, const LayerOptions& o, const LinearSpec<N>& spec, N out, std::uint8_t which,
           Operator<N>& op, AdapterSums<N>& sums) {
  op.adapted = static_cast<std::uint8_t>(op.adapted | which);
  op.adapter_rank = v.r;
  sums.any = true;
  op.adapter_parameters = op.adapter_parameters + v.r * (op.cols + out);
  sums.outputs = sums.outputs + v.w_a * v.r * spec.tokens;
  if (o.dora) {
    // The magnitude multiplies the frozen product and the low-rank one: both stay for its gradient (PEFT dora.py).
    op.adapter_parameters = op.adapter_parameters + out;
    sums.outputs = sums.outputs + (v.w + v.w_a) * spec.tokens * out;
  }
  if (o.adapter_input == AdapterInput::shared) {
    sums.any_plain = true;
    return;
  }
  const N mask = o.adapter_mask ? 1.0 : 0.0;
  const N copy = (N(o.adapter_copy_bytes) + mask) * spec.input_tokens * op.cols;
  sums.copies = spec.adapters_share_copy ? copy : sums.copies + copy;
}

/// Bytes that a product keeps for backward.
template <class N>
N linear_saved(const LayerOptions& o, const LinearSpec<N>& spec, const Operator<N>& op, const AdapterSums<N>& sums) {
  N saved = 0.0;
  const bool base_keeps =
      o.base_trains || sums.any_plain || (o.quantized && o.quantized_keeps_input) || (o.adapter_fused && sums.any);
  if (base_keeps && o.narrow_input_bytes > 0) {
    saved = N(o.narrow_input_bytes) * spec.input_tokens * op.cols;  // its own narrow copy, whoever keeps the original
  } else if (base_keeps && !spec.input_already_kept) {
    saved = spec.width * spec.input_tokens * op.cols;
  }
  saved = saved + sums.copies + sums.outputs;
  if (o.autocast_copies) saved = saved + 2.0 * op.rows * op.cols;
  return saved;
}

template <class N>
Operator<N> linear(const Symbols<N>& v, const LayerOptions& o, const LinearSpec<N>& spec,
                   std::initializer_list<NamedMatrix<N>> matrices) {
  Operator<N> op;
  op.name = spec.name;
  op.kind = OperatorKind::gemm;
  op.part = spec.part;
  op.shard = spec.shard;
  op.trains = o.base_trains;
  op.quantized = o.quantized;
  op.cols = spec.in / spec.in_divisor;
  op.matrices = 1.0;
  N out_local = 0.0;
  AdapterSums<N> sums;
  const bool one_adapter = is_one_adapter(o, matrices);
  for (const NamedMatrix<N>& matrix : matrices) {
    const N out = matrix.out / matrix.divisor;
    out_local = out_local + out;
    const auto which = static_cast<std::uint8_t>(1U << op.named);
    op.named_rows[op.named++] = out;
    if (contains(o.adapted, matrix.id) && !one_adapter) adapt(v, o, spec, out, which, op, sums);
  }
  if (one_adapter) adapt(v, o, spec, out_local, adapts_whole_product, op, sums);
  op.rows = out_local;
  op.parameters = out_local * op.cols;
  if (spec.bias) {
    op.biases = out_local;  // a row cut leaves the outputs whole, and with them the bias
    op.vectors = op.named;
    op.parameters = op.parameters + op.biases;
  }
  op.saved = linear_saved(o, spec, op, sums);
  op.m = spec.tokens;
  op.n = out_local;
  op.k = op.cols;
  op.batch = 1.0;
  op.forward_flop = 2.0 * spec.tokens * out_local * op.cols + 2.0 * spec.tokens * op.adapter_parameters;
  op.input_gradient_flop = op.forward_flop;
  op.weight_gradient_flop = 2.0 * spec.tokens * op.adapter_parameters;
  if (o.base_trains) op.weight_gradient_flop = op.weight_gradient_flop + 2.0 * spec.tokens * out_local * op.cols;
  return op;
}

/// A vector of weights over the hidden size or another width: norms, sinks, layer scales.
template <class N>
Operator<N> vector_weights(std::string_view name, Part part, const LayerOptions& o, N elements) {
  Operator<N> op;
  op.name = name;
  op.kind = OperatorKind::norm;
  op.part = part;
  op.trains = o.base_trains;
  op.vector = true;
  op.parameters = elements;
  op.biases = elements;
  return op;
}

}  // namespace shardplan
