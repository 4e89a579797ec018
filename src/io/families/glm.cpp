// GLM: biases on q, k and v, gate and up in one matrix; with norms around each block (GLM-4), with experts (GLM-4.5),
// and the remote-code layout of ChatGLM2, ChatGLM3 and GLM-4-9B.
#include "family.hpp"

namespace shardplan::io {

namespace {

using namespace module_sets;

constexpr std::array<ModulePath, 8> glm_modules = {{
    {"self_attn.q_proj", set_of(MatrixId::q_proj)},
    {"self_attn.k_proj", set_of(MatrixId::k_proj)},
    {"self_attn.v_proj", set_of(MatrixId::v_proj)},
    {"self_attn.o_proj", set_of(MatrixId::o_proj)},
    {"mlp.gate_up_proj", gate_up},
    {"mlp.down_proj", set_of(MatrixId::down_proj)},
    {"embed_tokens", set_of(MatrixId::embed_tokens)},
    {"lm_head", set_of(MatrixId::lm_head)},
}};
constexpr std::array<ModulePath, 6> chatglm_modules = {{
    {"self_attention.query_key_value", qkv},
    {"self_attention.dense", set_of(MatrixId::o_proj)},
    {"mlp.dense_h_to_4h", gate_up},
    {"mlp.dense_4h_to_h", set_of(MatrixId::down_proj)},
    {"embedding.word_embeddings", set_of(MatrixId::embed_tokens)},
    {"output_layer", set_of(MatrixId::lm_head)},
}};

void chatglm(const Fields& fields, Draft& draft) {
  if (fields.has("position_encoding_2d") || fields.has("inner_hidden_size")) {
    refuse(fields, "model_type", "chatglm", "the layout of the first ChatGLM-6B (two-dimensional positions)");
    return;
  }
  const Integer rows = fields.integer("padded_vocab_size", 1, limits::vocab);
  if (rows.state == State::present) draft.model.vocab_size = rows.value;
  AttentionShape& attention = draft.common.attention;
  attention.kv_heads = attention.heads;
  if (fields.flag("multi_query_attention", false)) {
    attention.kv_heads = fields.integer("multi_query_group_num", 1, limits::heads).value_or(1, 1);
  }
  const bool all = fields.flag("add_bias_linear", false);
  attention.qkv_bias = all || fields.flag("add_qkv_bias", false);
  attention.output_bias = all;
  draft.common.mlp.up_bias = all;
  draft.common.mlp.down_bias = all;
  if (!fields.flag("rmsnorm", true)) draft.model.norm = Norm::layernorm;
  draft.model.final_norm = fields.flag("post_layer_norm", true);
}

constexpr Family glm = {.model_type = "glm",
                        .vocab_size = 151552,
                        .hidden_size = 4096,
                        .layers = 40,
                        .heads = 32,
                        .kv_heads = 2,
                        .head_dim = 128,
                        .intermediate = 13696,
                        .positions = 131072,
                        .qkv_bias = {"attention_bias", true},
                        .modules = modules_of(glm_modules)};

constexpr Family glm4_of(Family family, std::string_view model_type) {
  family.model_type = model_type;
  family.placement = NormPlacement::sandwich;
  return family;
}

constexpr Family glm4_moe = {.model_type = "glm4_moe",
                             .vocab_size = 151552,
                             .hidden_size = 4096,
                             .layers = 46,
                             .heads = 96,
                             .kv_heads = 8,
                             .intermediate = 10944,
                             .positions = 131072,
                             .qkv_bias = {"attention_bias", false},
                             .qk_norm = QkNorm::per_head,
                             .qk_norm_if = {"use_qk_norm", false},
                             .experts = {.possible = true,
                                         .count = 128,
                                         .top_k = 8,
                                         .width = 1408,
                                         .layers = ExpertLayers::after_dense,
                                         .first_dense = 1,
                                         .shared = SharedExperts::counted,
                                         .shared_count = 1,
                                         .correction_bias = true}};

constexpr Family glm4v_moe_of(Family family) {
  family.model_type = "glm4v_moe_text";
  family.vocab_size = 151424;
  family.positions = 65536;
  family.qkv_bias = {"attention_bias", true};
  return family;
}

constexpr std::array<Family, 6> families = {{
    glm,
    glm4_of(glm, "glm4"),
    glm4_of(glm, "glm4v_text"),
    glm4_moe,
    glm4v_moe_of(glm4_moe),
    {.model_type = "chatglm",
     .vocab_size = 65024,
     .hidden_size = 4096,
     .layers = 28,
     .heads = 32,
     .head_dim = 128,
     .intermediate = 13696,
     .positions = 2048,
     .modules = modules_of(chatglm_modules),
     .adjust = chatglm},
}};

}  // namespace

FamilyList glm_families() { return {families.data(), families.size()}; }

}  // namespace shardplan::io
