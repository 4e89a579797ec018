// GPT-2 and what descends from it: LayerNorm, plain MLP, biases, learned positions or the first rotary ones.
#include <fmt/format.h>

#include "family.hpp"

namespace shardplan::io {

namespace {

using namespace module_sets;

constexpr std::array<ModulePath, 7> gpt2_modules = {{
    {"attn.c_attn", qkv},
    {"attn.c_proj", set_of(MatrixId::o_proj)},
    {"mlp.c_fc", set_of(MatrixId::up_proj)},
    {"mlp.c_proj", set_of(MatrixId::down_proj)},
    {"wte", set_of(MatrixId::embed_tokens)},
    {"wpe", set_of(MatrixId::position_embeddings)},
    {"lm_head", set_of(MatrixId::lm_head)},
}};
constexpr std::array<ModulePath, 9> gpt_neo_modules = {{
    {"attn.attention.q_proj", set_of(MatrixId::q_proj)},
    {"attn.attention.k_proj", set_of(MatrixId::k_proj)},
    {"attn.attention.v_proj", set_of(MatrixId::v_proj)},
    {"attn.attention.out_proj", set_of(MatrixId::o_proj)},
    {"mlp.c_fc", set_of(MatrixId::up_proj)},
    {"mlp.c_proj", set_of(MatrixId::down_proj)},
    {"wte", set_of(MatrixId::embed_tokens)},
    {"wpe", set_of(MatrixId::position_embeddings)},
    {"lm_head", set_of(MatrixId::lm_head)},
}};
constexpr std::array<ModulePath, 9> gptj_modules = {{
    {"attn.q_proj", set_of(MatrixId::q_proj)},
    {"attn.k_proj", set_of(MatrixId::k_proj)},
    {"attn.v_proj", set_of(MatrixId::v_proj)},
    {"attn.qkv_proj", qkv},
    {"attn.out_proj", set_of(MatrixId::o_proj)},
    {"mlp.fc_in", set_of(MatrixId::up_proj)},
    {"mlp.fc_out", set_of(MatrixId::down_proj)},
    {"wte", set_of(MatrixId::embed_tokens)},
    {"lm_head", set_of(MatrixId::lm_head)},
}};
constexpr std::array<ModulePath, 6> gpt_neox_modules = {{
    {"attention.query_key_value", qkv},
    {"attention.dense", set_of(MatrixId::o_proj)},
    {"mlp.dense_h_to_4h", set_of(MatrixId::up_proj)},
    {"mlp.dense_4h_to_h", set_of(MatrixId::down_proj)},
    {"embed_in", set_of(MatrixId::embed_tokens)},
    {"embed_out", set_of(MatrixId::lm_head)},
}};
constexpr std::array<ModulePath, 11> opt_modules = {{
    {"self_attn.q_proj", set_of(MatrixId::q_proj)},
    {"self_attn.k_proj", set_of(MatrixId::k_proj)},
    {"self_attn.v_proj", set_of(MatrixId::v_proj)},
    {"self_attn.out_proj", set_of(MatrixId::o_proj)},
    {"fc1", set_of(MatrixId::up_proj)},
    {"fc2", set_of(MatrixId::down_proj)},
    {"embed_tokens", set_of(MatrixId::embed_tokens)},
    {"embed_positions", set_of(MatrixId::position_embeddings)},
    {"project_in", set_of(MatrixId::embed_projection)},
    {"project_out", set_of(MatrixId::embed_projection)},
    {"lm_head", set_of(MatrixId::lm_head)},
}};
constexpr std::array<ModulePath, 6> persimmon_modules = {{
    {"self_attn.query_key_value", qkv},
    {"self_attn.dense", set_of(MatrixId::o_proj)},
    {"mlp.dense_h_to_4h", set_of(MatrixId::up_proj)},
    {"mlp.dense_4h_to_h", set_of(MatrixId::down_proj)},
    {"embed_tokens", set_of(MatrixId::embed_tokens)},
    {"lm_head", set_of(MatrixId::lm_head)},
}};

void gpt_bigcode(const Fields& fields, Draft& draft) {
  if (fields.flag("multi_query", true)) draft.common.attention.kv_heads = 1;
}

/// Layers alternate between global and local attention: [[["global", "local"], 12]].
void gpt_neo(const Fields& fields, Draft& draft) {
  const std::int64_t window = fields.integer("window_size", 1, limits::positions).value_or(256, 256);
  const auto explicit_layers = fields.texts("attention_layers");
  for (std::size_t i = 0; i < draft.layers.size(); ++i) {
    const bool local = explicit_layers && i < explicit_layers->size() ? (*explicit_layers)[i] == "local" : i % 2 == 1;
    if (local) draft.layers[i].attention.window = window;
  }
}

void gpt_neox(const Fields& fields, Draft& draft) {
  if (!fields.flag("use_parallel_residual", true)) draft.common.norm_placement = NormPlacement::pre;
}

void opt(const Fields& fields, Draft& draft) {
  Model& model = draft.model;
  constexpr std::int64_t offset = 2;  // rows before the first position
  model.position_rows = model.max_position_embeddings + offset;
  const bool before = fields.flag("do_layer_norm_before", true);
  if (!before) draft.common.norm_placement = NormPlacement::original_post;
  model.final_norm = before && !fields.flag("_remove_final_layer_norm", false);
  if (!fields.flag("layer_norm_elementwise_affine", true)) model.norm = Norm::layernorm_no_weights;
  const std::int64_t width = fields.integer("word_embed_proj_dim", 1, limits::hidden).value_or(0, 0);
  if (width != model.hidden_size) model.embedding_dim = width;
}

/// A LayerNorm with weights and biases on each head's queries and keys.
void persimmon(const Fields& fields, Draft& draft) {
  if (!fields.flag("qk_layernorm", true)) return;
  draft.common.attention.qk_norm = QkNorm::per_head;
  draft.common.extra_parameters = 2 * draft.common.attention.head_dim;
}

constexpr Family gpt2 = {.model_type = "gpt2",
                         .vocab_size = 50257,
                         .hidden_size = 768,
                         .layers = 12,
                         .heads = 12,
                         .positions = 1024,
                         .tied = true,
                         .activation = "gelu_new",
                         .gated = false,
                         .norm = Norm::layernorm,
                         .position = Position::learned,
                         .qkv_bias = always,
                         .output_bias = always,
                         .mlp_bias = always,
                         .modules = modules_of(gpt2_modules)};

constexpr Family gptj = {.model_type = "gptj",
                         .vocab_size = 50400,
                         .hidden_size = 4096,
                         .layers = 28,
                         .heads = 16,
                         .positions = 2048,
                         .activation = "gelu_new",
                         .gated = false,
                         .norm = Norm::layernorm,
                         .placement = NormPlacement::parallel,
                         .mlp_bias = always,
                         .head_bias = always,
                         .modules = modules_of(gptj_modules)};

constexpr Family gpt_bigcode_of(Family family) {
  family.model_type = "gpt_bigcode";
  family.activation = "gelu_pytorch_tanh";
  family.adjust = gpt_bigcode;
  return family;
}

constexpr Family codegen_of(Family family) {
  family.model_type = "codegen";
  return family;
}

constexpr std::array<Family, 9> families = {{
    gpt2,
    gpt_bigcode_of(gpt2),
    {.model_type = "gpt_neo",
     .vocab_size = 50257,
     .hidden_size = 2048,
     .layers = 24,
     .heads = 16,
     .positions = 2048,
     .tied = true,
     .activation = "gelu_new",
     .gated = false,
     .norm = Norm::layernorm,
     .position = Position::learned,
     .output_bias = always,
     .mlp_bias = always,
     .modules = modules_of(gpt_neo_modules),
     .per_layer = gpt_neo},
    gptj,
    codegen_of(gptj),
    {.model_type = "gpt_neox",
     .vocab_size = 50432,
     .hidden_size = 6144,
     .layers = 44,
     .heads = 64,
     .intermediate = 24576,
     .positions = 2048,
     .activation = "gelu",
     .gated = false,
     .norm = Norm::layernorm,
     .placement = NormPlacement::parallel_two_norms,
     .qkv_bias = {"attention_bias", true},
     .output_bias = {"attention_bias", true},
     .mlp_bias = always,
     .modules = modules_of(gpt_neox_modules),
     .adjust = gpt_neox},
    {.model_type = "opt",
     .vocab_size = 50272,
     .hidden_size = 768,
     .layers = 12,
     .heads = 12,
     .intermediate = 3072,
     .positions = 2048,
     .tied = true,
     .activation = "relu",
     .gated = false,
     .norm = Norm::layernorm,
     .position = Position::learned,
     .qkv_bias = {"enable_bias", true},
     .output_bias = {"enable_bias", true},
     .mlp_bias = {"enable_bias", true},
     .modules = modules_of(opt_modules),
     .adjust = opt},
    {.model_type = "persimmon",
     .vocab_size = 262144,
     .hidden_size = 4096,
     .layers = 36,
     .heads = 64,
     .intermediate = 16384,
     .positions = 16384,
     .activation = "relu2",
     .gated = false,
     .norm = Norm::layernorm,
     .qkv_bias = always,
     .output_bias = always,
     .mlp_bias = always,
     .modules = modules_of(persimmon_modules),
     .adjust = persimmon},
    // Sinusoidal positions, added and without weights.
    {.model_type = "xglm",
     .vocab_size = 256008,
     .hidden_size = 1024,
     .layers = 24,
     .heads = 16,
     .intermediate = 4096,
     .positions = 2048,
     .tied = true,
     .activation = "gelu",
     .gated = false,
     .norm = Norm::layernorm,
     .position = Position::none,
     .qkv_bias = always,
     .output_bias = always,
     .mlp_bias = always,
     .modules = modules_of(opt_modules)},
}};

}  // namespace

FamilyList gpt_families() { return {families.data(), families.size()}; }

}  // namespace shardplan::io
