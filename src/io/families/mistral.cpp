// Mistral's decoders: grouped-query attention by default, a sliding window where absent, Mixtral's experts.
#include "family.hpp"

namespace shardplan::io {

namespace {

/// Mixtral and PhiMoE: w1 is the gate, w3 goes up, w2 goes down.
constexpr std::array<ModulePath, 10> mixtral_modules = {{
    {"self_attn.q_proj", set_of(MatrixId::q_proj)},
    {"self_attn.k_proj", set_of(MatrixId::k_proj)},
    {"self_attn.v_proj", set_of(MatrixId::v_proj)},
    {"self_attn.o_proj", set_of(MatrixId::o_proj)},
    {"block_sparse_moe.gate", set_of(MatrixId::router)},
    {"block_sparse_moe.experts.w1", set_of(MatrixId::expert_gate_proj)},
    {"block_sparse_moe.experts.w3", set_of(MatrixId::expert_up_proj)},
    {"block_sparse_moe.experts.w2", set_of(MatrixId::expert_down_proj)},
    {"embed_tokens", set_of(MatrixId::embed_tokens)},
    {"lm_head", set_of(MatrixId::lm_head)},
}};

constexpr std::array<Family, 6> families = {{
    {.model_type = "mistral",
     .vocab_size = 32000,
     .hidden_size = 4096,
     .layers = 32,
     .heads = 32,
     .kv_heads = 8,
     .intermediate = 14336,
     .positions = 131072,
     .window = {.rule = WindowRule::every_layer, .if_absent = 4096}},
    {.model_type = "ministral",
     .vocab_size = 32000,
     .hidden_size = 4096,
     .layers = 32,
     .heads = 32,
     .kv_heads = 8,
     .intermediate = 14336,
     .positions = 131072,
     .window = {.rule = WindowRule::every_layer, .if_absent = 4096}},
    {.model_type = "ministral3",
     .vocab_size = 131072,
     .hidden_size = 4096,
     .layers = 34,
     .heads = 32,
     .kv_heads = 8,
     .head_dim = 128,
     .intermediate = 14336,
     .positions = 262144,
     .window = {.rule = WindowRule::every_layer}},
    {.model_type = "mixtral",
     .vocab_size = 32000,
     .hidden_size = 4096,
     .layers = 32,
     .heads = 32,
     .kv_heads = 8,
     .intermediate = 14336,
     .positions = 131072,
     .window = {.rule = WindowRule::every_layer},
     .experts = {.possible = true, .count = 8, .top_k = 2, .width_key = ""},
     .modules = modules_of(mixtral_modules)},
    {.model_type = "phimoe",
     .vocab_size = 32064,
     .hidden_size = 4096,
     .layers = 32,
     .heads = 32,
     .kv_heads = 8,
     .intermediate = 6400,
     .positions = 131072,
     .norm = Norm::layernorm,
     .qkv_bias = {"attention_bias", false},
     .output_bias = {"attention_bias", false},
     .head_bias = {"lm_head_bias", false},
     .window = {.rule = WindowRule::every_layer},
     .experts = {.possible = true, .count = 16, .top_k = 2, .width_key = ""},
     .modules = modules_of(mixtral_modules)},
    // The softmax-attention MiniMax: norms as wide as the projections, and a routing bias.
    {.model_type = "minimax_m2",
     .vocab_size = 200064,
     .hidden_size = 3072,
     .layers = 62,
     .heads = 48,
     .kv_heads = 8,
     .head_dim = 128,
     .intermediate = 1536,
     .positions = 196608,
     .qk_norm = QkNorm::full,
     .qk_norm_if = {"use_qk_norm", true},
     .experts = {.possible = true, .count = 256, .top_k = 8, .width_key = "", .correction_bias = true},
     .modules = modules_of(mixtral_modules)},
}};

}  // namespace

FamilyList mistral_families() { return {families.data(), families.size()}; }

}  // namespace shardplan::io
