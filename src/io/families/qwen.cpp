// Qwen: biases on q, k and v up to Qwen2.5, norms on queries and keys from Qwen3 on, experts with and without a shared
// one, and the language models of the multimodal ones.
#include "family.hpp"

namespace shardplan::io {

namespace {

using namespace module_sets;

/// Qwen (the first): the activation is on w2, so w2 is the gate and w1 goes up.
constexpr std::array<ModulePath, 7> qwen1_modules = {{
    {"attn.c_attn", qkv},
    {"attn.c_proj", set_of(MatrixId::o_proj)},
    {"mlp.w1", set_of(MatrixId::up_proj)},
    {"mlp.w2", set_of(MatrixId::gate_proj)},
    {"mlp.c_proj", set_of(MatrixId::down_proj)},
    {"wte", set_of(MatrixId::embed_tokens)},
    {"lm_head", set_of(MatrixId::lm_head)},
}};

/// intermediate_size counts gate and up together; no_bias spares the QKV projection.
void qwen1(const Fields& fields, Draft& draft) {
  draft.common.mlp.intermediate /= 2;
  const bool bias = !fields.flag("no_bias", true);
  draft.common.attention.output_bias = bias;
  draft.common.mlp.up_bias = bias;
  draft.common.mlp.down_bias = bias;
}

constexpr Window late(std::int64_t first) {
  return {.rule = WindowRule::late_layers, .if_absent = 4096, .period = first};
}

constexpr Experts qwen_experts(std::int64_t count, std::int64_t top_k, std::int64_t width) {
  return {.possible = true, .count = count, .top_k = top_k, .width = width, .layers = ExpertLayers::stepped};
}

constexpr Experts with_shared(Experts experts, std::int64_t width) {
  experts.shared = SharedExperts::own_width;
  experts.shared_count = width;
  experts.shared_gate = true;
  return experts;
}

constexpr Family qwen2 = {.model_type = "qwen2",
                          .vocab_size = 151936,
                          .hidden_size = 4096,
                          .layers = 32,
                          .heads = 32,
                          .kv_heads = 32,
                          .intermediate = 22016,
                          .positions = 32768,
                          .qkv_bias = always,
                          .window = late(28)};

constexpr Family qwen3 = {.model_type = "qwen3",
                          .vocab_size = 151936,
                          .hidden_size = 4096,
                          .layers = 32,
                          .heads = 32,
                          .kv_heads = 32,
                          .head_dim = 128,
                          .intermediate = 22016,
                          .positions = 32768,
                          .qkv_bias = {"attention_bias", false},
                          .output_bias = {"attention_bias", false},
                          .qk_norm = QkNorm::per_head,
                          .window = late(28)};

constexpr Family qwen3_moe = {.model_type = "qwen3_moe",
                              .vocab_size = 151936,
                              .hidden_size = 2048,
                              .layers = 24,
                              .heads = 32,
                              .kv_heads = 4,
                              .intermediate = 6144,
                              .positions = 32768,
                              .qkv_bias = {"attention_bias", false},
                              .output_bias = {"attention_bias", false},
                              .qk_norm = QkNorm::per_head,
                              .window = late(0),
                              .experts = qwen_experts(128, 8, 768)};

constexpr Family qwen2_vl_of(Family family, std::string_view model_type) {
  family.model_type = model_type;
  family.vocab_size = 152064;
  family.hidden_size = 8192;
  family.intermediate = 29568;
  family.layers = 80;
  family.heads = 64;
  family.kv_heads = 8;
  family.window = late(80);
  return family;
}

constexpr Family omni_of(Family family) {
  family.model_type = "qwen2_5_omni_text";
  family.vocab_size = 152064;
  family.hidden_size = 3584;
  family.intermediate = 18944;
  family.layers = 28;
  family.heads = 28;
  family.kv_heads = 4;
  return family;
}

constexpr Family qwen3_vl_of(Family family) {
  family.model_type = "qwen3_vl_text";
  family.positions = 128000;
  return family;
}

constexpr Family qwen3_vl_moe_of(Family family) {
  family.model_type = "qwen3_vl_moe_text";
  family.heads = 16;
  family.kv_heads = 16;
  family.intermediate = 5632;
  family.positions = 128000;
  family.experts = qwen_experts(60, 4, 1408);
  return family;
}

constexpr Family qwen3_omni_of(Family family) {
  family.model_type = "qwen3_omni_moe_text";
  family.vocab_size = 3584;
  family.layers = 28;
  family.heads = 28;
  family.intermediate = 18944;
  return family;
}

constexpr std::array<Family, 12> families = {{
    {.model_type = "qwen",
     .vocab_size = 151936,
     .hidden_size = 4096,
     .layers = 32,
     .heads = 32,
     .head_dim = 128,
     .intermediate = 22016,
     .positions = 8192,
     .qkv_bias = always,
     .modules = modules_of(qwen1_modules),
     .adjust = qwen1},
    qwen2,
    {.model_type = "qwen2_moe",
     .vocab_size = 151936,
     .hidden_size = 2048,
     .layers = 24,
     .heads = 16,
     .kv_heads = 16,
     .intermediate = 5632,
     .positions = 32768,
     .qkv_bias = {"qkv_bias", true},
     .window = late(28),
     .experts = with_shared(qwen_experts(60, 4, 1408), 5632)},
    qwen3,
    qwen3_moe,
    qwen2_vl_of(qwen2, "qwen2_vl_text"),
    qwen2_vl_of(qwen2, "qwen2_5_vl_text"),
    omni_of(qwen2),
    qwen3_vl_of(qwen3),
    qwen3_vl_moe_of(qwen3_moe),
    qwen3_omni_of(qwen3_moe),
    // Qwen2's layers with a multi-token-prediction layer behind them.
    {.model_type = "mimo",
     .vocab_size = 151680,
     .hidden_size = 4096,
     .layers = 32,
     .heads = 32,
     .kv_heads = 32,
     .intermediate = 22016,
     .positions = 32768,
     .qkv_bias = {"attention_bias", true},
     .window = late(28)},
}};

}  // namespace

FamilyList qwen_families() { return {families.data(), families.size()}; }

}  // namespace shardplan::io
