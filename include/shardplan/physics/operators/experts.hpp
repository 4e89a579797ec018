// A mixture of experts: router, dispatch, the experts' products, combine, and the experts that all tokens pass.
#pragma once

#include "shardplan/core/model.hpp"
#include "shardplan/physics/operators/mlp.hpp"

namespace shardplan {

/// Tokens and rows of one rank's share of a mixture.
template <class N>
struct RoutedRows {
  N routed{};         ///< tokens that this rank routes
  N rows{};           ///< rows that its experts receive
  N local_experts{};  ///< experts that it holds
};

template <class N>
RoutedRows<N> routed_rows(const Symbols<N>& v) {
  const N routed = v.s * v.b / (v.c * v.t_sp);
  return {routed, routed * v.k_top * v.u * v.x, v.E / v.e};
}

/// Turns one expert's product into that of all experts of this rank: weights times experts, rows split among them.
template <class N>
void spread_over_experts(Operator<N>& op, const RoutedRows<N>& of) {
  op.kind = OperatorKind::grouped_gemm;
  op.parameters = op.parameters * of.local_experts;
  op.biases = op.biases * of.local_experts;
  op.adapter_parameters = op.adapter_parameters * of.local_experts;
  op.matrices = of.local_experts;
  op.m = of.rows / of.local_experts;
  op.batch = of.local_experts;
}

/// A product over the tokens that a rank routes, replicated over the ranks and never narrow.
template <class N>
LinearSpec<N> routed_product(const Symbols<N>& v, std::string_view name, Part part, bool bias, N routed) {
  LinearSpec<N> spec;
  spec.name = name;
  spec.part = part;
  spec.in = v.h;
  spec.in_divisor = 1.0;
  spec.tokens = routed;
  spec.input_tokens = routed;
  spec.width = v.w;
  spec.bias = bias;
  spec.shard = Shard::replicated;
  spec.input_already_kept = true;
  return spec;
}

inline LayerOptions in_16_bit(LayerOptions o) noexcept {
  o.quantized = false;
  o.narrow_input_bytes = 0;
  return o;
}

/// Kept: the router's input (the dispatch reads the same storage), fp32 probabilities, per token their sum, per token
/// and choice 30 bytes of indices and weights (PyTorch autograd, measured: tests/evidence/autograd_bytes.jsonl).
template <class N>
Operator<N> router_operator(const Symbols<N>& v, const LayerOptions& o, const MlpShape& shape, bool input_already_kept,
                            N routed) {
  Operator<N> route = linear(v, in_16_bit(o), routed_product(v, "router", Part::router, shape.router_bias, routed),
                             {{MatrixId::router, v.E, N(1.0)}});
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
  return route;
}

/// Rows sorted by expert, and back: read and written once for each choice of an expert.
template <class N>
Operator<N> permutation(const Symbols<N>& v, std::string_view name, N routed) {
  Operator<N> op;
  op.name = name;
  op.kind = OperatorKind::routing;
  op.part = Part::experts;
  op.rerun_by = Covered::moe;
  op.forward_bytes = 3.0 * v.w * routed * v.k_top * v.h;
  op.backward_bytes = op.forward_bytes;
  return op;
}

/// Keeps the returned rows where probabilities multiply them afterwards, and the combine's source where it is an
/// index_add.
template <class N>
Operator<N> combine_operator(const Symbols<N>& v, const LayerOptions& o, N routed) {
  Operator<N> combine = permutation(v, "combine", routed);
  combine.covered = Covered::moe;
  const N returned = routed * v.k_top * v.u;
  if (o.kernels.moe_probs == MoeProbs::after) combine.saved = combine.saved + v.w * returned * v.h;
  if (o.kernels.moe_combine == MoeCombine::index_add) combine.saved = combine.saved + v.w * returned * v.h;
  return combine;
}

template <class N>
LinearSpec<N> expert_product(const Symbols<N>& v, std::string_view name, bool bias, N rows) {
  LinearSpec<N> spec;
  spec.name = name;
  spec.part = Part::experts;
  spec.tokens = rows;
  spec.input_tokens = rows;
  spec.width = v.w;
  spec.shard = Shard::expert;
  spec.bias = bias;
  return spec;
}

/// One product per local expert over its share of the rows. Kept per received row: the expert's input, its activation,
/// the down projection's input.
template <class N>
void expert_products(const Symbols<N>& v, const LayerOptions& o, const MlpShape& shape, const RoutedRows<N>& of,
                     OperatorList<N>& list) {
  LinearSpec<N> up = expert_product(v, "experts_up", shape.expert_bias, of.rows);
  up.in = v.h;
  up.in_divisor = 1.0;
  Operator<N> first =
      shape.gated ? linear(v, o, up, {{MatrixId::expert_gate_proj, v.f_e, v.x}, {MatrixId::expert_up_proj, v.f_e, v.x}})
                  : linear(v, o, up, {{MatrixId::expert_up_proj, v.f_e, v.x}});
  spread_over_experts(first, of);
  first.covered = Covered::moe;
  first.rerun_by = Covered::moe;
  list.operators.add(first);
  Operator<N> activation = mlp_activation("experts_activation", v, o, shape.gated, of.rows, v.f_e / v.x);
  activation.part = Part::experts;
  activation.covered = Covered::moe;
  activation.rerun_by = Covered::moe;
  activation.also_rerun_by = Covered::moe_act;
  list.operators.add(activation);
  LinearSpec<N> down = expert_product(v, "experts_down", shape.expert_bias, of.rows);
  down.in = v.f_e;
  down.in_divisor = v.x;
  Operator<N> last = linear(v, o, down, {{MatrixId::expert_down_proj, v.h, N(1.0)}});
  spread_over_experts(last, of);
  last.covered = Covered::moe;
  last.rerun_by = Covered::moe;
  last.also_covered = Covered::moe_act;
  list.operators.add(last);
}

/// All-to-all to the experts and back (arXiv:2006.16668 section 2.2); with expert tensor parallelism rows are gathered
/// and reduced over its ranks.
template <class N>
void expert_collectives(const Symbols<N>& v, const LayerOptions& o, int expert_tensor, N routed,
                        OperatorList<N>& list) {
  LayerCollective<N> call;
  call.covered = Covered::moe;
  if (o.expert) {
    call.name = CollectiveName::ep_all_to_all;
    call.op = Collective::all_to_all;
    call.group = GroupKind::expert;
    call.message = v.w * routed * v.k_top * v.capacity * v.h;
    call.sent = (v.e - 1.0) / v.e * call.message;
    call.forward_calls = 2;
    call.backward_calls = 2;
    list.collectives.add(call);
  }
  if (expert_tensor <= 1) return;
  call.group = GroupKind::expert_tensor;
  call.message = v.w * v.x * routed * v.k_top * v.capacity * v.h;
  call.sent = (v.x - 1.0) / v.x * call.message;
  call.forward_calls = 1;
  call.backward_calls = 1;
  call.name = CollectiveName::etp_all_gather;
  call.op = Collective::all_gather;
  list.collectives.add(call);
  call.name = CollectiveName::etp_reduce_scatter;
  call.op = Collective::reduce_scatter;
  list.collectives.add(call);
}

/// Experts that every token passes, and their gate (Qwen2-MoE: a sigmoid of one product, times their output).
template <class N>
void shared_experts(const Symbols<N>& v, const LayerOptions& o, const MlpShape& shape, N routed,
                    OperatorList<N>& list) {
  const bool gathered = o.sequence_parallel && o.kernels.sp_input == SequenceParallelInput::keep;
  dense_mlp(v, o, shape, shared_mlp_names, Part::mlp, v.f_s, !gathered, Covered::moe, list);
  if (!shape.shared_gate) return;
  Operator<N> op = linear(v, in_16_bit(o), routed_product(v, "shared_expert_gate", Part::mlp, false, routed),
                          {{MatrixId::shared_expert_gate, N(1.0), N(1.0)}});
  op.saved = op.saved + 2.0 * v.w * routed + v.w * routed * v.h;  // sigmoid's output, and both factors of the product
  op.covered = Covered::moe;
  op.rerun_by = Covered::moe;
  list.operators.add(op);
}

/// From the router's input on.
template <class N>
void expert_mlp(const Symbols<N>& v, const LayerOptions& o, const MlpShape& shape, bool input_already_kept,
                int expert_tensor, OperatorList<N>& list) {
  const RoutedRows<N> of = routed_rows(v);
  list.operators.add(router_operator(v, o, shape, input_already_kept, of.routed));
  list.operators.add(permutation(v, "dispatch", of.routed));
  expert_products(v, o, shape, of, list);
  list.operators.add(combine_operator(v, o, of.routed));
  expert_collectives(v, o, expert_tensor, of.routed, list);
  if (shape.shared_intermediate > 0) shared_experts(v, o, shape, of.routed, list);
  if (shape.parallel_dense_intermediate > 0) {
    dense_mlp(v, o, shape, dense_mlp_names, Part::mlp, v.f_p, true, Covered::moe, list);
  }
}

}  // namespace shardplan
