// The dense feed-forward block.
#pragma once

#include "shardplan/core/model.hpp"
#include "shardplan/physics/operators/linear.hpp"

namespace shardplan {

/// Names and matrices of one dense MLP (a layer's own, the shared experts', one beside the experts).
struct MlpNames {
  std::string_view up, activation, down;
  MatrixId gate_matrix, up_matrix, down_matrix;
};
inline constexpr MlpNames dense_mlp_names = {"mlp_up",          "mlp_activation",   "mlp_down", MatrixId::gate_proj,
                                             MatrixId::up_proj, MatrixId::down_proj};
inline constexpr MlpNames shared_mlp_names = {"shared_expert_up",       "shared_expert_activation",
                                              "shared_expert_down",     MatrixId::shared_gate_proj,
                                              MatrixId::shared_up_proj, MatrixId::shared_down_proj};

/// What the activation keeps besides the down projection's input, per row and element of width:
///   gated: gate and up; written in Python also silu(gate).  Plain: its input (relu keeps its output, which is the
///   down projection's input).
constexpr double activation_tensors(const LayerOptions& o, bool gated) noexcept {
  if (gated) return o.kernels.mlp == MlpKernel::naive ? 3 : 2;
  return o.activation == Activation::relu ? 0 : 1;
}

template <class N>
Operator<N> mlp_activation(std::string_view name, const Symbols<N>& v, const LayerOptions& o, bool gated, N rows,
                           N width) {
  Operator<N> op;
  op.name = name;
  op.part = Part::mlp;
  op.saved = N(activation_tensors(o, gated)) * v.w_m * rows * width;
  op.forward_bytes = (gated ? N(3.0) : N(2.0)) * v.w_m * rows * width;
  op.backward_bytes = 2.0 * op.forward_bytes;
  return op;
}

/// A dense MLP of `width`, cut over the tensor ranks: up (and gate) by columns, down by rows.
template <class N>
void dense_mlp(const Symbols<N>& v, const LayerOptions& o, const MlpShape& shape, const MlpNames& names, Part part,
               N width, bool input_already_kept, Covered covered, OperatorList<N>& list) {
  const N tokens = v.s * v.b / v.c;
  const N local = width / v.t;
  LinearSpec<N> up;
  up.name = names.up;
  up.part = part;
  up.in = v.h;
  up.in_divisor = 1.0;
  up.tokens = tokens;
  up.input_tokens = v.s * v.b / (v.c * v.t_in);
  up.width = v.w_m;
  up.bias = shape.up_bias;
  up.input_already_kept = input_already_kept;
  Operator<N> first = shape.gated ? linear(v, o, up, {{names.gate_matrix, width, v.t}, {names.up_matrix, width, v.t}})
                                  : linear(v, o, up, {{names.up_matrix, width, v.t}});
  first.covered = Covered::layernorm;
  first.rerun_by = covered;
  list.operators.add(first);
  Operator<N> activation = mlp_activation(names.activation, v, o, shape.gated, tokens, local);
  activation.covered = covered;
  activation.rerun_by = covered;
  list.operators.add(activation);
  LinearSpec<N> down;
  down.name = names.down;
  down.part = part;
  down.in = width;
  down.in_divisor = v.t;
  down.tokens = tokens;
  down.input_tokens = tokens;
  down.width = v.w_m;
  down.bias = shape.down_bias;
  Operator<N> last = linear(v, o, down, {{names.down_matrix, v.h, N(1.0)}});
  last.covered = covered;
  last.rerun_by = covered;
  if (!shape.gated && o.activation == Activation::relu && !o.base_trains) {
    last.saved = last.saved + v.w_m * tokens * local;  // relu's own output, which a frozen projection does not keep
  }
  list.operators.add(last);
}

}  // namespace shardplan
