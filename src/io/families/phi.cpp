// Phi, StableLM and StarCoder2.
#include "family.hpp"

namespace shardplan::io {

namespace {

using namespace module_sets;

constexpr std::array<ModulePath, 8> phi_modules = {{
    {"self_attn.q_proj", set_of(MatrixId::q_proj)},
    {"self_attn.k_proj", set_of(MatrixId::k_proj)},
    {"self_attn.v_proj", set_of(MatrixId::v_proj)},
    {"self_attn.dense", set_of(MatrixId::o_proj)},
    {"mlp.fc1", set_of(MatrixId::up_proj)},
    {"mlp.fc2", set_of(MatrixId::down_proj)},
    {"embed_tokens", set_of(MatrixId::embed_tokens)},
    {"lm_head", set_of(MatrixId::lm_head)},
}};
constexpr std::array<ModulePath, 6> phi_msft_modules = {{
    {"mixer.Wqkv", qkv},
    {"mixer.out_proj", set_of(MatrixId::o_proj)},
    {"mlp.fc1", set_of(MatrixId::up_proj)},
    {"mlp.fc2", set_of(MatrixId::down_proj)},
    {"embd.wte", set_of(MatrixId::embed_tokens)},
    {"lm_head.linear", set_of(MatrixId::lm_head)},
}};
constexpr std::array<ModulePath, 6> phi3_modules = {{
    {"self_attn.qkv_proj", qkv},
    {"self_attn.o_proj", set_of(MatrixId::o_proj)},
    {"mlp.gate_up_proj", gate_up},
    {"mlp.down_proj", set_of(MatrixId::down_proj)},
    {"embed_tokens", set_of(MatrixId::embed_tokens)},
    {"lm_head", set_of(MatrixId::lm_head)},
}};
constexpr std::array<ModulePath, 8> starcoder2_modules = {{
    {"self_attn.q_proj", set_of(MatrixId::q_proj)},
    {"self_attn.k_proj", set_of(MatrixId::k_proj)},
    {"self_attn.v_proj", set_of(MatrixId::v_proj)},
    {"self_attn.o_proj", set_of(MatrixId::o_proj)},
    {"mlp.c_fc", set_of(MatrixId::up_proj)},
    {"mlp.c_proj", set_of(MatrixId::down_proj)},
    {"embed_tokens", set_of(MatrixId::embed_tokens)},
    {"lm_head", set_of(MatrixId::lm_head)},
}};

/// One LayerNorm of head_dim, weights and biases, on queries and one on keys.
void phi(const Fields& fields, Draft& draft) {
  if (!fields.flag("qk_layernorm", false)) return;
  draft.common.attention.qk_norm = QkNorm::per_head;
  draft.common.extra_parameters = 2 * draft.common.attention.head_dim;
}

void stablelm(const Fields& fields, Draft& draft) {
  if (!fields.flag("use_parallel_residual", false)) return;
  draft.common.norm_placement = NormPlacement::parallel;
  draft.common.norm_count = norms_of(NormPlacement::parallel);
}

constexpr Family phi_family = {.model_type = "phi",
                               .vocab_size = 51200,
                               .hidden_size = 2048,
                               .layers = 24,
                               .heads = 32,
                               .intermediate = 8192,
                               .positions = 2048,
                               .activation = "gelu_new",
                               .gated = false,
                               .norm = Norm::layernorm,
                               .placement = NormPlacement::parallel,
                               .qkv_bias = always,
                               .output_bias = always,
                               .mlp_bias = always,
                               .head_bias = always,
                               .modules = modules_of(phi_modules),
                               .adjust = phi};

/// The remote-code layout: GPT-2's field names, n_inner null or absent means 4 x n_embd.
constexpr Family phi_msft_of(Family family) {
  family.model_type = "phi-msft";
  family.intermediate = 0;
  family.modules = modules_of(phi_msft_modules);
  family.adjust = nullptr;
  return family;
}

constexpr std::array<Family, 5> families = {{
    phi_family,
    phi_msft_of(phi_family),
    {.model_type = "phi3",
     .vocab_size = 32064,
     .hidden_size = 3072,
     .layers = 32,
     .heads = 32,
     .intermediate = 8192,
     .positions = 4096,
     .window = {.rule = WindowRule::every_layer},
     .modules = modules_of(phi3_modules)},
    {.model_type = "stablelm",
     .vocab_size = 50304,
     .hidden_size = 2560,
     .layers = 32,
     .heads = 32,
     .kv_heads = 32,
     .intermediate = 6912,
     .positions = 4096,
     .norm = Norm::layernorm,
     .qkv_bias = {"use_qkv_bias", false},
     .qk_norm = QkNorm::each_head,
     .qk_norm_if = {"qk_layernorm", false},
     .adjust = stablelm},
    {.model_type = "starcoder2",
     .vocab_size = 49152,
     .hidden_size = 3072,
     .layers = 30,
     .heads = 24,
     .kv_heads = 2,
     .intermediate = 12288,
     .positions = 4096,
     .tied = true,
     .activation = "gelu_pytorch_tanh",
     .gated = false,
     .norm = Norm::layernorm,
     .qkv_bias = {"use_bias", true},
     .output_bias = {"use_bias", true},
     .mlp_bias = {"use_bias", true},
     .window = {.rule = WindowRule::every_layer},
     .modules = modules_of(starcoder2_modules)},
}};

}  // namespace

FamilyList phi_families() { return {families.data(), families.size()}; }

}  // namespace shardplan::io
