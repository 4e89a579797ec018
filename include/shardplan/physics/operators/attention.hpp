// Self-attention: projections, rotary positions, the core, and its context-parallel traffic.
#pragma once

#include "shardplan/core/model.hpp"
#include "shardplan/physics/operators/linear.hpp"
#include "shardplan/physics/operators/norm.hpp"

namespace shardplan {

/// The attention core between the projections, for grouped-query and latent attention alike.
template <class N>
struct AttentionCore {
  N query_width{};  ///< elements of q per token on this rank
  N key_width{};    ///< of k, as the core's caller holds it
  N value_width{};
  N output_width{};
  N heads{};                              ///< on this rank
  bool grouped = false;                   ///< fewer KV heads than query heads
  bool view_of_fused_projection = false;  ///< v is a view that keeps the fused projection's whole output alive
  N projection_width{};                   ///< elements of that output
};

/// What the core keeps (PyTorch autograd, measured: tests/evidence/autograd_bytes.jsonl):
///   flash: q, k, v, output, fp32 log-sum-exp per head and token.
///   (the output is the next projection's input, one storage unless the kernel writes another layout).
///   eager: K and V expanded to all heads, probabilities (fp32 and a 16-bit cast where the softmax runs in fp32),
///   with dropout a byte mask and the dropped probabilities. Recomputed, only q, k, v as they came and the output stay.
/// FLOP: 2 T keys (d + d_v) per head forward, twice that backward (2.5 times for flash, which recomputes scores: the
/// extra is not model FLOP and lives in the timing). Korthikanti et al. 2022 section 4; Dao et al. 2022 (2205.14135).
template <class N>
Operator<N> attention_core(const Symbols<N>& v, const LayerOptions& o, const AttentionCore<N>& core) {
  Operator<N> op;
  op.name = "attention";
  op.kind = OperatorKind::attention;
  op.part = Part::attention;
  op.covered = Covered::core_attn;
  op.rerun_by = Covered::core_attn;
  const N tokens = v.s * v.b / v.c;
  const N scores = core.heads * tokens * v.s;
  const N compact = core.view_of_fused_projection
                        ? v.w * tokens * (core.query_width + core.key_width + core.projection_width)
                        : v.w * tokens * (core.query_width + core.key_width + core.value_width);
  const N expanded = v.w * tokens * (2.0 * core.query_width + core.heads * v.d_v);
  op.saved_recomputed = compact;
  if (o.attention == AttentionKernel::eager) {
    double score_bytes = o.activations_fp32 ? 4 : o.kernels.softmax == SoftmaxKernel::fp32 ? 6 : 2;
    // A 16-bit cast of fp32 probabilities is not kept once dropout follows: 4 + mask 1 + dropped 2.
    if (o.attention_dropout) score_bytes = o.activations_fp32 ? 9 : o.kernels.softmax == SoftmaxKernel::fp32 ? 7 : 5;
    op.saved = expanded + N(score_bytes) * scores;
  } else {
    const N output = v.w * tokens * core.output_width;
    op.saved = (o.kernels.kv_expanded && core.grouped ? expanded : compact) + output + 4.0 * core.heads * tokens;
    op.saved_recomputed = op.saved_recomputed + output;
  }
  op.m = tokens;
  op.n = v.keys;
  op.k = v.d;
  op.batch = core.heads;
  op.forward_flop = 2.0 * tokens * v.keys * core.heads * (v.d + v.d_v);
  op.score_flop = op.forward_flop;
  op.input_gradient_flop = 2.0 * op.forward_flop;
  if (o.attention == AttentionKernel::eager) {
    op.forward_bytes = 13.0 * scores;
    op.backward_bytes = 19.0 * scores;
  }
  return op;
}

/// Rotary embedding: saves only the shared tables; reads and writes q and k.
template <class N>
Operator<N> rotary(const Symbols<N>& v, N rotated_width) {
  Operator<N> op;
  op.name = "rotary";
  op.part = Part::attention;
  op.forward_bytes = 2.0 * v.w * (v.s * v.b / v.c) * rotated_width;
  op.backward_bytes = op.forward_bytes;
  return op;
}

/// Traffic of context parallelism around the core (arXiv:2310.01889: ring sends K and V c - 1 times forward and twice
/// that backward, where dK and dV travel too; all_gather gathers K and V in both passes and reduce-scatters their
/// gradients; a2a exchanges q, k, v and the output: Ulysses, arXiv:2309.14509).
template <class N>
void context_collectives(const Symbols<N>& v, const LayerOptions& o, N query_width, N key_width, N value_width,
                         N output_width, int context, OperatorList<N>& list) {
  if (!o.context) return;
  const N tokens = v.s * v.b / v.c;
  const N key_value = v.w * tokens * (key_width + value_width);
  LayerCollective<N> call;
  call.group = GroupKind::context;
  switch (o.context_comm) {
    case ContextComm::ring:
      call.name = CollectiveName::cp_send;
      call.op = Collective::send;
      call.message = key_value;
      call.sent = key_value;
      call.forward_calls = context - 1;
      call.backward_calls = 2 * (context - 1);
      list.collectives.add(call);
      break;
    case ContextComm::all_gather:
      call.name = CollectiveName::cp_all_gather;
      call.op = Collective::all_gather;
      call.message = v.c * key_value;
      call.sent = (v.c - 1.0) * key_value;
      call.forward_calls = 1;
      call.backward_calls = 1;
      list.collectives.add(call);
      call.name = CollectiveName::cp_reduce_scatter;
      call.op = Collective::reduce_scatter;
      call.forward_calls = 0;
      list.collectives.add(call);
      break;
    case ContextComm::a2a:
      call.name = CollectiveName::cp_all_to_all;
      call.op = Collective::all_to_all;
      call.message = v.w * tokens * (query_width + key_width + value_width + output_width) / 2.0;
      call.sent = (v.c - 1.0) / v.c * call.message;
      call.forward_calls = 2;
      call.backward_calls = 2;
      list.collectives.add(call);
      break;
  }
}

/// The fused query, key and value product.
template <class N>
Operator<N> query_key_value(const Symbols<N>& v, const LayerOptions& o, const AttentionShape& shape,
                            bool input_already_kept, const AttentionCore<N>& core) {
  const N tokens = v.s * v.b / v.c;
  const N query_out = shape.output_gate ? 2.0 * v.a * v.d : v.a * v.d;
  LinearSpec<N> in;
  in.name = "qkv";
  in.in = v.h;
  in.in_divisor = 1.0;
  in.tokens = tokens;
  in.input_tokens = v.s * v.b / (v.c * v.t_in);
  in.width = v.w;
  in.bias = shape.qkv_bias;
  in.input_already_kept = input_already_kept;
  in.adapters_share_copy = o.fused_qkv_adapters;
  Operator<N> qkv = shape.keys_are_values
                        ? linear(v, o, in, {{MatrixId::q_proj, query_out, v.t}, {MatrixId::k_proj, v.k * v.d, v.t_kv}})
                        : linear(v, o, in,
                                 {{MatrixId::q_proj, query_out, v.t},
                                  {MatrixId::k_proj, v.k * v.d, v.t_kv},
                                  {MatrixId::v_proj, v.k * v.d_v, v.t_kv}});
  qkv.covered = Covered::layernorm;
  // Outputs of fewer than three adapters are copied into a padded buffer, whose index_copy keeps its source.
  const MatrixSet all_three = set_of(MatrixId::q_proj, MatrixId::k_proj, MatrixId::v_proj);
  if (o.fused_qkv_adapters && (o.adapted & all_three) != 0 && (o.adapted & all_three) != all_three) {
    if (contains(o.adapted, MatrixId::q_proj)) qkv.saved = qkv.saved + v.w * tokens * core.query_width;
    if (contains(o.adapted, MatrixId::k_proj)) qkv.saved = qkv.saved + v.w * tokens * core.key_width;
    if (contains(o.adapted, MatrixId::v_proj)) qkv.saved = qkv.saved + v.w * tokens * core.value_width;
  }
  return qkv;
}

/// Norms of the query and key heads (Qwen3, OLMo 2).
template <class N>
Operator<N> query_key_norm(const Symbols<N>& v, const LayerOptions& o, const AttentionShape& shape,
                           const AttentionCore<N>& core) {
  const N tokens = v.s * v.b / v.c;
  const N width = core.query_width + core.key_width;
  NormSpec<N> spec;
  spec.name = "qk_norm";
  spec.width = width;
  spec.tokens = tokens;
  spec.element = v.w;
  spec.statistics_rows = tokens * (shape.qk_norm == QkNorm::full ? N(2.0) : v.a / v.t + v.k / v.t_kv);
  spec.weights = shape.qk_norm == QkNorm::per_head    ? 2.0 * v.d
                 : shape.qk_norm == QkNorm::full      ? width
                 : shape.qk_norm == QkNorm::each_head ? width
                                                      : N(0.0);
  spec.input_already_kept = core.view_of_fused_projection;
  return norm_operator(v, o, spec);
}

/// The product behind the core.
template <class N>
Operator<N> attention_output(const Symbols<N>& v, const LayerOptions& o, const AttentionShape& shape) {
  const N tokens = v.s * v.b / v.c;
  LinearSpec<N> out;
  out.name = "attention_output";
  out.in = v.a * v.d_v;
  out.in_divisor = v.t;
  out.tokens = tokens;
  out.input_tokens = tokens;
  out.width = v.w;
  out.bias = shape.output_bias;
  out.input_already_kept =
      o.attention != AttentionKernel::eager && !o.kernels.attention_output_copy && !o.attention_copy_for_a2a;
  return linear(v, o, out, {{MatrixId::o_proj, v.h, N(1.0)}});
}

/// Grouped-query attention from the norm's output to o_proj's output.
template <class N>
void grouped_query_attention(const Symbols<N>& v, const LayerOptions& o, const AttentionShape& shape, int context,
                             bool input_already_kept, OperatorList<N>& list) {
  AttentionCore<N> core;
  core.query_width = v.a * v.d / v.t;
  core.key_width = v.k * v.d / v.t_kv;
  core.value_width = v.k * v.d_v / v.t_kv;
  core.output_width = v.a * v.d_v / v.t;
  core.heads = v.a / v.t;
  core.grouped = shape.kv_heads < shape.heads;
  core.view_of_fused_projection = o.kernels.qkv == QkvLayout::fused && o.rope && o.attention != AttentionKernel::eager;
  core.projection_width = core.query_width + core.key_width + core.value_width;
  list.operators.add(query_key_value(v, o, shape, input_already_kept, core));
  if (shape.qk_norm != QkNorm::none) list.operators.add(query_key_norm(v, o, shape, core));
  if (o.rope) list.operators.add(rotary(v, core.query_width + core.key_width));
  Operator<N> attention = attention_core(v, o, core);
  if (shape.sinks) {
    attention.parameters = v.a / v.t;
    attention.biases = attention.parameters;
    attention.vector = true;
    attention.trains = o.base_trains;
    attention.shard = Shard::tensor;
  }
  list.operators.add(attention);
  context_collectives(v, o, core.query_width, core.key_width, core.value_width, core.output_width, context, list);
  list.operators.add(attention_output(v, o, shape));
}

}  // namespace shardplan
