// The feed-forward block: dense, and a mixture of experts with its routing, dispatch and shared experts.
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

/// Turns one expert's product into that of all experts of this rank: weights times experts, rows split among them.
template <class N>
void spread_over_experts(Operator<N>& op, N rows, N local_experts) {
  op.kind = OperatorKind::grouped_gemm;
  op.parameters = op.parameters * local_experts;
  op.biases = op.biases * local_experts;
  op.adapter_parameters = op.adapter_parameters * local_experts;
  op.matrices = local_experts;
  op.m = rows / local_experts;
  op.batch = local_experts;
}

/// A mixture of experts, from the router's input on (activations.md section 4, measured).
///
/// Kept: the router's input (the dispatch reads the same storage), fp32 router probabilities, per token their sum, per
/// token and choice 30 bytes of indices and weights, and per received row the expert's input, its activation and the
/// down projection's input; the row's output where probabilities multiply it afterwards, and the combine's source
/// where it is an index_add.
template <class N>
void expert_mlp(const Symbols<N>& v, const LayerOptions& o, const MlpShape& shape, bool input_already_kept,
                int expert_tensor, OperatorList<N>& list) {
  const N routed = v.s * v.b / (v.c * v.t_sp);  // tokens this rank routes
  const N rows = routed * v.k_top * v.u * v.x;  // rows its experts receive
  const N width = v.f_e / v.x;
  const N local_experts = v.E / v.e;
  LinearSpec<N> router;
  router.name = "router";
  router.part = Part::router;
  router.in = v.h;
  router.in_divisor = 1.0;
  router.tokens = routed;
  router.input_tokens = routed;
  router.width = v.w;
  router.bias = shape.router_bias;
  router.shard = Shard::replicated;
  router.input_already_kept = true;
  LayerOptions plain = o;
  plain.quantized = false;
  plain.narrow_input_bytes = 0;
  Operator<N> route = linear(v, plain, router, {{MatrixId::router, v.E, N(1.0)}});
  if (shape.correction_bias) {
    route.parameters = route.parameters + v.E;
    route.biases = route.biases + v.E;
  }
  if (shape.router_extra_parameters > 0) {
    const N extra = static_cast<double>(shape.router_extra_parameters);
    route.parameters = route.parameters + extra;
    route.biases = route.biases + extra;
  }
  route.covered = Covered::moe;
  route.rerun_by = Covered::moe;
  if (!input_already_kept) route.saved = route.saved + v.w * routed * v.h;
  route.saved_recomputed = input_already_kept ? N(0.0) : v.w * routed * v.h;
  route.saved = route.saved + 4.0 * routed * v.E + 4.0 * routed + 30.0 * routed * v.k_top;
  list.operators.add(route);

  Operator<N> dispatch;
  dispatch.name = "dispatch";
  dispatch.kind = OperatorKind::routing;
  dispatch.part = Part::experts;
  dispatch.rerun_by = Covered::moe;
  dispatch.forward_bytes = 3.0 * v.w * routed * v.k_top * v.h;
  dispatch.backward_bytes = dispatch.forward_bytes;
  list.operators.add(dispatch);

  // One product per local expert over its share of the rows.
  LinearSpec<N> up;
  up.name = "experts_up";
  up.part = Part::experts;
  up.in = v.h;
  up.in_divisor = 1.0;
  up.tokens = rows;
  up.input_tokens = rows;
  up.width = v.w;
  up.shard = Shard::expert;
  up.bias = shape.expert_bias;
  Operator<N> first =
      shape.gated ? linear(v, o, up, {{MatrixId::expert_gate_proj, v.f_e, v.x}, {MatrixId::expert_up_proj, v.f_e, v.x}})
                  : linear(v, o, up, {{MatrixId::expert_up_proj, v.f_e, v.x}});
  spread_over_experts(first, rows, local_experts);
  first.covered = Covered::moe;
  first.rerun_by = Covered::moe;
  list.operators.add(first);
  Operator<N> activation = mlp_activation("experts_activation", v, o, shape.gated, rows, width);
  activation.part = Part::experts;
  activation.covered = Covered::moe;
  activation.rerun_by = Covered::moe;
  activation.also_rerun_by = Covered::moe_act;
  list.operators.add(activation);
  LinearSpec<N> down;
  down.name = "experts_down";
  down.part = Part::experts;
  down.in = v.f_e;
  down.in_divisor = v.x;
  down.tokens = rows;
  down.input_tokens = rows;
  down.width = v.w;
  down.shard = Shard::expert;
  down.bias = shape.expert_bias;
  Operator<N> last = linear(v, o, down, {{MatrixId::expert_down_proj, v.h, N(1.0)}});
  spread_over_experts(last, rows, local_experts);
  last.covered = Covered::moe;
  last.rerun_by = Covered::moe;
  last.also_covered = Covered::moe_act;
  list.operators.add(last);

  Operator<N> combine;
  combine.name = "combine";
  combine.kind = OperatorKind::routing;
  combine.part = Part::experts;
  combine.covered = Covered::moe;
  combine.rerun_by = Covered::moe;
  const N returned = routed * v.k_top * v.u;
  if (o.kernels.moe_probs == MoeProbs::after) combine.saved = combine.saved + v.w * returned * v.h;
  if (o.kernels.moe_combine == MoeCombine::index_add) combine.saved = combine.saved + v.w * returned * v.h;
  combine.forward_bytes = 3.0 * v.w * routed * v.k_top * v.h;
  combine.backward_bytes = combine.forward_bytes;
  list.operators.add(combine);

  LayerCollective<N> call;
  if (o.expert) {
    call.name = CollectiveName::ep_all_to_all;
    call.op = Collective::all_to_all;
    call.group = GroupKind::expert;
    call.message = v.w * routed * v.k_top * v.capacity * v.h;
    call.sent = (v.e - 1.0) / v.e * call.message;
    call.forward_calls = 2;
    call.backward_calls = 2;
    call.covered = Covered::moe;
    list.collectives.add(call);
  }
  if (expert_tensor > 1) {
    call.group = GroupKind::expert_tensor;
    call.message = v.w * v.x * routed * v.k_top * v.capacity * v.h;
    call.sent = (v.x - 1.0) / v.x * call.message;
    call.covered = Covered::moe;
    call.forward_calls = 1;
    call.backward_calls = 1;
    call.name = CollectiveName::etp_all_gather;
    call.op = Collective::all_gather;
    list.collectives.add(call);
    call.name = CollectiveName::etp_reduce_scatter;
    call.op = Collective::reduce_scatter;
    list.collectives.add(call);
  }

  if (shape.shared_intermediate > 0) {
    const bool gathered = o.sequence_parallel && o.kernels.sp_input == SequenceParallelInput::keep;
    dense_mlp(v, o, shape, shared_mlp_names, Part::mlp, v.f_s, !gathered, Covered::moe, list);
    if (shape.shared_gate) {
      LinearSpec<N> gate = router;
      gate.name = "shared_expert_gate";
      gate.part = Part::mlp;
      gate.bias = false;
      Operator<N> op = linear(v, plain, gate, {{MatrixId::shared_expert_gate, N(1.0), N(1.0)}});
      op.saved =
          op.saved + 2.0 * v.w * routed + v.w * routed * v.h;  // sigmoid's output, and both factors of the product
      op.covered = Covered::moe;
      op.rerun_by = Covered::moe;
      list.operators.add(op);
    }
  }
  if (shape.parallel_dense_intermediate > 0) {
    dense_mlp(v, o, shape, dense_mlp_names, Part::mlp, v.f_p, true, Covered::moe, list);
  }
}

}  // namespace shardplan
