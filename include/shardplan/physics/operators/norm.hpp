// Norms, residual additions and dropout masks.
#pragma once

#include "shardplan/physics/layer_options.hpp"
#include "shardplan/physics/operator.hpp"
#include "shardplan/physics/symbols.hpp"

namespace shardplan {

template <class N>
struct NormSpec {
  std::string_view name;
  N width{};
  N tokens{};
  N weights{};                      ///< elements on this rank
  N element{};                      ///< bytes of an element of the input
  bool input_already_kept = false;  ///< the same storage is kept by another operator
  bool input_needs_gradient = true;
  bool groups_of_heads = false;  ///< normalises per head: statistics per head
  N statistics_rows{};           ///< rows that have statistics of their own
};

/// What a norm saves (measured, PyTorch autograd):
///   fused: its input, and per row fp32 rstd (RMSNorm) or mean and rstd (LayerNorm).
///   naive RMSNorm (written in Python): an fp32 copy of the input, the normalised 16-bit value if the weight
///   trains, rstd; where the input is fp32 already the copy is the input.
/// A norm whose input needs no gradient and whose weight is frozen saves nothing.
template <class N>
Operator<N> norm_operator(const Symbols<N>& v, const LayerOptions& o, const NormSpec<N>& spec) {
  Operator<N> op;
  op.name = spec.name;
  op.kind = OperatorKind::norm;
  op.part = Part::norm;
  op.vector = true;
  op.trains = o.base_trains;
  op.parameters = spec.weights;
  op.biases = spec.weights;
  const bool layer_norm = o.norm != Norm::rmsnorm;
  op.vectors = layer_norm ? 2 : 1;
  const N statistics = (layer_norm ? N(8.0) : N(4.0)) * spec.statistics_rows;
  if (spec.input_needs_gradient || o.base_trains) {
    if (o.kernels.norm == NormKernel::naive && !layer_norm) {
      op.saved = 4.0 * spec.tokens * spec.width + statistics;
      if (o.base_trains) op.saved = op.saved + spec.element * spec.tokens * spec.width;
    } else {
      op.saved = statistics;
      if (!spec.input_already_kept) op.saved = op.saved + spec.element * spec.tokens * spec.width;
    }
  }
  op.covered = Covered::layernorm;
  op.rerun_by = Covered::layernorm;
  if (!spec.input_already_kept) op.saved_recomputed = spec.element * spec.tokens * spec.width;
  op.forward_bytes = 2.0 * v.w * spec.tokens * spec.width;
  op.backward_bytes = 2.0 * op.forward_bytes;
  return op;
}

/// x + dropout(f(x) + bias): keeps one byte per element where dropout has a mask.
template <class N>
Operator<N> residual_operator(std::string_view name, const Symbols<N>& v, const LayerOptions& o) {
  Operator<N> op;
  op.name = name;
  op.part = Part::norm;
  const N tokens = v.s * v.b / (v.c * v.t_sp);
  if (o.dropout) op.saved = tokens * v.h;
  op.forward_bytes = (o.dropout ? N(4.5) : N(3.0)) * v.w * tokens * v.h;
  op.backward_bytes = (o.dropout ? N(4.5) : N(3.0)) * v.w * tokens * v.h;
  return op;
}

}  // namespace shardplan
