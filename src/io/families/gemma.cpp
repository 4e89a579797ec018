// Gemma: wide heads, tied embeddings, norms before and after each block from Gemma 2 on, local and global layers.
#include <algorithm>

#include "family.hpp"

namespace shardplan::io {

namespace {

/// Gemma 4: global layers have wider heads, may share keys and values, and experts stand beside the dense MLP.
void gemma4(const Fields& fields, Draft& draft) {
  const Model& model = draft.model;
  if (fields.integer("hidden_size_per_layer_input", 0, limits::hidden).value_or(256, 0) > 0) {
    refuse(fields, "hidden_size_per_layer_input", model.family, "per-layer input embeddings");
    return;
  }
  if (fields.integer("num_kv_shared_layers", 0, limits::layers).value_or(0, 0) > 0) {
    refuse(fields, "num_kv_shared_layers", model.family, "layers that share the keys and values of others");
    return;
  }
  const std::int64_t global_dim = fields.integer("global_head_dim", 1, limits::head_dim).value_or(512, 0);
  const bool shared_keys = fields.flag("attention_k_eq_v", false);
  const std::int64_t global_kv = fields.integer("num_global_key_value_heads", 1, limits::heads).value_or(0, 0);
  MlpShape experts;
  const bool moe = fields.flag("enable_moe_block", false);
  if (moe) {
    experts.experts = fields.required("num_experts", 1, limits::experts);
    experts.top_k = fields.required(Keys{"top_k_experts", "num_experts_per_tok"}, 1, limits::experts);
    experts.expert_intermediate = fields.required("moe_intermediate_size", 1, limits::intermediate);
    experts.parallel_dense_intermediate = draft.common.mlp.intermediate;
    experts.router_extra_parameters = model.hidden_size + experts.experts;  // a scale per channel and per expert
  }
  if (!draft.layers.empty()) draft.layers.back().attention.window = 0;  // the last layer is always global
  for (LayerKind& layer : draft.layers) {
    layer.extra_parameters = 1;  // the layer's scalar
    if (moe) {
      make_moe(layer, experts);
      layer.norm_count += 3;
    }
    if (layer.attention.window > 0) continue;
    if (global_dim > 0) {
      layer.attention.head_dim = global_dim;
      layer.attention.v_head_dim = global_dim;
    }
    layer.attention.keys_are_values = shared_keys;
    if (shared_keys && global_kv > 0) layer.attention.kv_heads = global_kv;
  }
}

constexpr std::array<Family, 4> families = {{
    {.model_type = "gemma",
     .vocab_size = 256000,
     .hidden_size = 3072,
     .layers = 28,
     .heads = 16,
     .kv_heads = 16,
     .head_dim = 256,
     .intermediate = 24576,
     .positions = 8192,
     .tied = true,
     .activation = "gelu_pytorch_tanh",
     .qkv_bias = {"attention_bias", false},
     .output_bias = {"attention_bias", false}},
    {.model_type = "gemma2",
     .vocab_size = 256000,
     .hidden_size = 2304,
     .layers = 26,
     .heads = 8,
     .kv_heads = 4,
     .head_dim = 256,
     .intermediate = 9216,
     .positions = 8192,
     .tied = true,
     .activation = "gelu_pytorch_tanh",
     .placement = NormPlacement::sandwich,
     .qkv_bias = {"attention_bias", false},
     .output_bias = {"attention_bias", false},
     .window = {.rule = WindowRule::periodic, .if_absent = 4096, .period = 2}},
    {.model_type = "gemma3_text",
     .vocab_size = 262208,
     .hidden_size = 2304,
     .layers = 26,
     .heads = 8,
     .kv_heads = 4,
     .head_dim = 256,
     .intermediate = 9216,
     .positions = 131072,
     .tied = true,
     .activation = "gelu_pytorch_tanh",
     .placement = NormPlacement::sandwich,
     .qkv_bias = {"attention_bias", false},
     .output_bias = {"attention_bias", false},
     .qk_norm = QkNorm::per_head,
     .window = {.rule = WindowRule::periodic, .if_absent = 4096, .period = 6}},
    {.model_type = "gemma4_text",
     .vocab_size = 262144,
     .hidden_size = 2304,
     .layers = 30,
     .heads = 8,
     .kv_heads = 4,
     .head_dim = 256,
     .intermediate = 9216,
     .positions = 131072,
     .tied = true,
     .activation = "gelu_pytorch_tanh",
     .placement = NormPlacement::sandwich,
     .qkv_bias = {"attention_bias", false},
     .output_bias = {"attention_bias", false},
     .qk_norm = QkNorm::per_head,
     .window = {.rule = WindowRule::periodic, .if_absent = 512, .period = 6},
     .per_layer = gemma4},
}};

}  // namespace

FamilyList gemma_families() { return {families.data(), families.size()}; }

}  // namespace shardplan::io
