// The operator list of one decoder layer.
#pragma once

#include "shardplan/physics/operators/experts.hpp"
#include "shardplan/physics/operators/latent_attention.hpp"
#include "shardplan/physics/operators/norm.hpp"

namespace shardplan {

/// Tensor-parallel collectives around one block (attention or MLP).
///   Without sequence parallelism: an all-reduce of the output forward and of the input's gradient backward
///   (Shoeybi et al. 2019, arXiv:1909.08053, section 3).
///   With it: all-gather before, reduce-scatter after, mirrored backward, and one more all-gather of the saved shard
///   where it is not kept gathered (Korthikanti et al. 2022, section 4.2.2).
template <class N>
void tensor_collectives(const Symbols<N>& v, const LayerOptions& o, Covered covered, OperatorList<N>& list) {
  if (!o.tensor) return;
  LayerCollective<N> call;
  call.group = GroupKind::tensor;
  call.covered = covered;
  call.message = v.w * (v.s * v.b / v.c) * v.h;
  call.sent = (v.t - 1.0) / v.t * call.message;
  call.forward_calls = 1;
  call.backward_calls = 1;
  if (!o.sequence_parallel) {
    call.name = CollectiveName::tp_all_reduce;
    call.op = Collective::all_reduce;
    call.sent = 2.0 * call.sent;
    list.collectives.add(call);
    return;
  }
  call.name = CollectiveName::tp_all_gather;
  call.op = Collective::all_gather;
  list.collectives.add(call);
  call.name = CollectiveName::tp_reduce_scatter;
  call.op = Collective::reduce_scatter;
  list.collectives.add(call);
  if (o.kernels.sp_input == SequenceParallelInput::regather) {
    call.name = CollectiveName::tp_regather;
    call.op = Collective::all_gather;
    call.forward_calls = 0;
    list.collectives.add(call);
  }
}

template <class N>
Operator<N> hidden_norm(std::string_view name, const Symbols<N>& v, const LayerOptions& o, bool has_weights,
                        bool input_already_kept, bool input_needs_gradient) {
  NormSpec<N> spec;
  spec.name = name;
  spec.width = v.h;
  spec.tokens = v.s * v.b / (v.c * v.t_sp);
  spec.statistics_rows = spec.tokens;
  spec.element = v.w_r;
  spec.input_already_kept = input_already_kept;
  spec.input_needs_gradient = input_needs_gradient;
  if (has_weights) {
    spec.weights = o.norm == Norm::layernorm ? 2.0 * v.h : o.norm == Norm::layernorm_no_weights ? N(0.0) : v.h;
  }
  return norm_operator(v, o, spec);
}

/// One decoder layer as one GPU runs it for one microbatch.
template <class N>
void layer_operators(const Symbols<N>& v, const LayerOptions& o, const LayerKind& kind, int context, int expert_tensor,
                     OperatorList<N>& list) {
  const bool attention = kind.attention.kind != AttentionKind::none;
  const bool mlp = kind.mlp.kind != MlpKind::none;
  const NormPlacement place = kind.norm_placement;
  const bool before = place != NormPlacement::post && place != NormPlacement::original_post;
  const bool after =
      place == NormPlacement::post || place == NormPlacement::sandwich || place == NormPlacement::original_post;
  const bool one_norm = place == NormPlacement::parallel;
  const bool parallel = one_norm || place == NormPlacement::parallel_two_norms;

  if (attention) {
    if (before) list.operators.add(hidden_norm("attention_norm", v, o, true, false, o.input_needs_gradient));
    if (kind.attention.kind == AttentionKind::latent) {
      latent_attention(v, o, kind.attention, context, false, list);
    } else {
      grouped_query_attention(v, o, kind.attention, context, false, list);
    }
    if (after) list.operators.add(hidden_norm("attention_post_norm", v, o, true, false, true));
    list.operators.add(residual_operator("attention_residual", v, o));
    tensor_collectives(v, o, Covered::none, list);
  }
  if (mlp) {
    // With parallel blocks the MLP reads the same norm output (one norm), or another norm of the same input.
    const bool shares_norm = one_norm && attention;
    if (before && !shares_norm) {
      list.operators.add(hidden_norm("mlp_norm", v, o, true, parallel && attention, true));
    }
    if (kind.mlp.kind == MlpKind::moe) {
      expert_mlp(v, o, kind.mlp, shares_norm, expert_tensor, list);
    } else {
      dense_mlp(v, o, kind.mlp, dense_mlp_names, Part::mlp, v.f, shares_norm, Covered::mlp, list);
    }
    if (after) list.operators.add(hidden_norm("mlp_post_norm", v, o, true, false, true));
    list.operators.add(residual_operator("mlp_residual", v, o));
    const bool routed_only =
        kind.mlp.kind == MlpKind::moe && kind.mlp.shared_intermediate == 0 && kind.mlp.parallel_dense_intermediate == 0;
    // Experts take the tokens as sequence parallelism left them; parallel blocks share one pair of collectives.
    if (!(routed_only && o.sequence_parallel) && !(parallel && attention)) {
      tensor_collectives(v, o, kind.mlp.kind == MlpKind::moe ? Covered::moe : Covered::mlp, list);
    }
  }
  const std::int64_t listed = (attention && before ? 1 : 0) + (attention && after ? 1 : 0) +
                              (mlp && before && !(one_norm && attention) ? 1 : 0) + (mlp && after ? 1 : 0);
  const std::int64_t unlisted = kind.norm_count > listed ? kind.norm_count - listed : 0;
  if (kind.extra_parameters > 0 || unlisted > 0) {
    const N norm_weights = o.norm == Norm::layernorm ? 2.0 * v.h : v.h;
    const N rest = static_cast<double>(kind.extra_parameters) + static_cast<double>(unlisted) * norm_weights;
    list.operators.add(vector_weights("layer_vectors", Part::norm, o, rest));
  }
}

}  // namespace shardplan
