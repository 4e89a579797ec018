// Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1): low-rank latents for queries and for keys
// and values, each behind a norm; the up-projections are cut over the tensor ranks, the rest is replicated.
#pragma once

#include "shardplan/physics/operators/attention.hpp"

namespace shardplan {

/// A product over this rank's tokens, input uncut and kept.
template <class N>
LinearSpec<N> token_product(const Symbols<N>& v, std::string_view name, N in) {
  LinearSpec<N> spec;
  spec.name = name;
  spec.in = in;
  spec.in_divisor = 1.0;
  spec.tokens = v.s * v.b / v.c;
  spec.input_tokens = spec.tokens;
  spec.width = v.w;
  return spec;
}

/// From the hidden state to the latents; without a query latent the queries themselves.
template <class N>
Operator<N> latents(const Symbols<N>& v, const LayerOptions& o, const AttentionShape& shape, bool input_already_kept) {
  const N one = 1.0;
  const bool query_latent = shape.q_lora_rank > 0;
  LinearSpec<N> down = token_product(v, "latents", v.h);
  down.input_tokens = v.s * v.b / (v.c * v.t_in);
  down.bias = shape.qkv_bias;
  down.input_already_kept = input_already_kept;
  if (query_latent) down.shard = Shard::replicated;
  const NamedMatrix<N> key_value = {MatrixId::kv_a_proj, v.r_kv + v.d_rope, one};
  Operator<N> op = query_latent ? linear(v, o, down, {{MatrixId::q_a_proj, v.r_q, one}, key_value})
                                : linear(v, o, down, {{MatrixId::q_proj, v.a * v.d, v.t}, key_value});
  op.covered = Covered::layernorm;
  return op;
}

template <class N>
Operator<N> latent_norm(const Symbols<N>& v, const LayerOptions& o, bool query_latent) {
  const N tokens = v.s * v.b / v.c;
  const N latent = query_latent ? v.r_q + v.r_kv : v.r_kv;
  NormSpec<N> spec;
  spec.name = "latent_norm";
  spec.width = latent;
  spec.tokens = tokens;
  spec.element = v.w;
  spec.weights = latent;
  spec.statistics_rows = query_latent ? 2.0 * tokens : tokens;
  return norm_operator(v, o, spec);
}

/// From the latents to queries, keys and values of all heads.
template <class N>
void latent_up_projections(const Symbols<N>& v, const LayerOptions& o, bool query_latent, OperatorList<N>& list) {
  if (query_latent) {
    Operator<N> query = linear(v, o, token_product(v, "query_up", v.r_q), {{MatrixId::q_b_proj, v.a * v.d, v.t}});
    query.rerun_by = Covered::mla_up_proj;
    list.operators.add(query);
  }
  const N nope = v.d - v.d_rope;
  Operator<N> key_value =
      linear(v, o, token_product(v, "key_value_up", v.r_kv), {{MatrixId::kv_b_proj, v.a * (nope + v.d_v), v.t}});
  key_value.rerun_by = Covered::mla_up_proj;
  list.operators.add(key_value);
}

/// Products of the indexer that picks keys (DeepSeek-V3.2).
template <class N>
void indexer(const Symbols<N>& v, const LayerOptions& o, OperatorList<N>& list) {
  const N one = 1.0;
  LinearSpec<N> query = token_product(v, "indexer", v.r_q);
  query.shard = Shard::replicated;
  query.input_already_kept = true;
  list.operators.add(linear(v, o, query, {{MatrixId::indexer_q_proj, v.i_a * v.i_d, one}}));
  LinearSpec<N> key = query;
  key.name = "indexer_key";
  key.in = v.h;
  list.operators.add(
      linear(v, o, key, {{MatrixId::indexer_k_proj, v.i_d, one}, {MatrixId::indexer_weights, v.i_a, one}}));
  list.operators.add(vector_weights("indexer_norm", Part::norm, o, 2.0 * v.i_d));
}

template <class N>
void latent_attention(const Symbols<N>& v, const LayerOptions& o, const AttentionShape& shape, int context,
                      bool input_already_kept, OperatorList<N>& list) {
  const bool query_latent = shape.q_lora_rank > 0;
  const N query = v.a * v.d / v.t;
  const N value = v.a * v.d_v / v.t;
  list.operators.add(latents(v, o, shape, input_already_kept));
  list.operators.add(latent_norm(v, o, query_latent));
  latent_up_projections(v, o, query_latent, list);
  if (shape.indexer_heads > 0) indexer(v, o, list);
  if (o.rope) list.operators.add(rotary(v, (v.a / v.t + 1.0) * v.d_rope));
  AttentionCore<N> core;
  core.query_width = query;
  core.key_width = query;
  core.value_width = value;
  core.output_width = value;
  core.heads = v.a / v.t;
  Operator<N> attention = attention_core(v, o, core);
  attention.also_covered = Covered::mla_up_proj;  // q, k and v are the up-projections' outputs
  attention.saved_also_recomputed = attention.saved - v.w * (v.s * v.b / v.c) * (2.0 * query + value);
  list.operators.add(attention);
  context_collectives(v, o, query, query, value, value, context, list);
  list.operators.add(attention_output(v, o, shape));
}

}  // namespace shardplan
