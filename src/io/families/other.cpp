// Families of one or two members: gpt-oss, ERNIE 4.5, Hunyuan, InternLM, Baichuan, MiniCPM, EXAONE.
#include <fmt/format.h>

#include "family.hpp"

namespace shardplan::io {

namespace {

using namespace module_sets;

/// Experts are parameters, not modules, so "all-linear" does not reach them.
constexpr std::array<ModulePath, 10> gpt_oss_modules = {{
    {"self_attn.q_proj", set_of(MatrixId::q_proj)},
    {"self_attn.k_proj", set_of(MatrixId::k_proj)},
    {"self_attn.v_proj", set_of(MatrixId::v_proj)},
    {"self_attn.o_proj", set_of(MatrixId::o_proj)},
    {"mlp.router", set_of(MatrixId::router)},
    {"mlp.experts.gate_up_proj", expert_gate_up},
    {"mlp.experts.down_proj", set_of(MatrixId::expert_down_proj)},
    {"embed_tokens", set_of(MatrixId::embed_tokens)},
    {"lm_head", set_of(MatrixId::lm_head)},
    {"all-linear", qkv | set_of(MatrixId::o_proj)},
}};
constexpr std::array<ModulePath, 7> internlm2_modules = {{
    {"attention.wqkv", qkv},
    {"attention.wo", set_of(MatrixId::o_proj)},
    {"feed_forward.w1", set_of(MatrixId::gate_proj)},
    {"feed_forward.w3", set_of(MatrixId::up_proj)},
    {"feed_forward.w2", set_of(MatrixId::down_proj)},
    {"tok_embeddings", set_of(MatrixId::embed_tokens)},
    {"output", set_of(MatrixId::lm_head)},
}};
constexpr std::array<ModulePath, 7> baichuan_modules = {{
    {"self_attn.W_pack", qkv},
    {"self_attn.o_proj", set_of(MatrixId::o_proj)},
    {"mlp.gate_proj", set_of(MatrixId::gate_proj)},
    {"mlp.up_proj", set_of(MatrixId::up_proj)},
    {"mlp.down_proj", set_of(MatrixId::down_proj)},
    {"embed_tokens", set_of(MatrixId::embed_tokens)},
    {"lm_head", set_of(MatrixId::lm_head)},
}};
constexpr std::array<ModulePath, 9> exaone_modules = {{
    {"attn.attention.q_proj", set_of(MatrixId::q_proj)},
    {"attn.attention.k_proj", set_of(MatrixId::k_proj)},
    {"attn.attention.v_proj", set_of(MatrixId::v_proj)},
    {"attn.attention.out_proj", set_of(MatrixId::o_proj)},
    {"mlp.c_fc_0", set_of(MatrixId::gate_proj)},
    {"mlp.c_fc_1", set_of(MatrixId::up_proj)},
    {"mlp.c_proj", set_of(MatrixId::down_proj)},
    {"wte", set_of(MatrixId::embed_tokens)},
    {"lm_head", set_of(MatrixId::lm_head)},
}};

void gpt_oss(const Fields&, Draft& draft) { draft.common.attention.sinks = true; }

/// Experts in a range of layers, each `moe_layer_interval`-th.
void ernie_moe(const Fields& fields, Draft& draft) {
  const std::int64_t first = fields.integer("moe_layer_start_index", 0, limits::layers).value_or(1, 0);
  const std::int64_t last = fields.integer("moe_layer_end_index", -1, limits::layers).value_or(-1, -1);
  const std::int64_t interval = fields.integer("moe_layer_interval", 1, limits::layers).value_or(1, 1);
  for (std::size_t i = 0; i < draft.layers.size(); ++i) {
    const auto layer = static_cast<std::int64_t>(i);
    const bool inside = layer >= first && (last < 0 || layer <= last) && interval > 0 && (layer + 1) % interval == 0;
    MlpShape& mlp = draft.layers[i].mlp;
    if (!inside) mlp = draft.common.mlp;
    if (mlp.kind == MlpKind::moe) mlp.expert_bias = draft.common.mlp.up_bias;
  }
}

/// A whole number for all layers, or a list with one for each.
std::vector<std::int64_t> per_layer_numbers(const Fields& fields, const Keys& keys, std::size_t layers) {
  for (const std::string_view key : keys) {
    if (!fields.is_list(key)) continue;
    auto list = fields.integers(key, 1, limits::experts).value_or(std::vector<std::int64_t>(layers, 1));
    if (list.size() != layers) {
      fields.problem(key, fmt::format("{} entries for {} layers", list.size(), layers));
      list.assign(layers, 1);
    }
    return list;
  }
  return std::vector<std::int64_t>(layers, fields.integer(keys, 0, limits::experts).value_or(1, 1));
}

/// Experts, and always one MLP as wide as an expert beside them. With one expert the layer is dense.
void hunyuan_moe(const Fields& fields, Draft& draft) {
  const std::size_t layers = draft.layers.size();
  const auto counts = per_layer_numbers(fields, {"num_experts", "num_local_experts"}, layers);
  const auto choices = per_layer_numbers(fields, {"moe_topk", "num_experts_per_tok"}, layers);
  for (std::size_t i = 0; i < layers; ++i) {
    if (counts[i] <= 1) continue;
    MlpShape experts;
    experts.experts = counts[i];
    experts.top_k = choices[i];
    experts.expert_intermediate = draft.common.mlp.intermediate;
    experts.shared_intermediate = draft.common.mlp.intermediate;
    make_moe(draft.layers[i], experts);
  }
}

/// The 13B model is the one without max_position_embeddings: it has ALiBi.
void baichuan(const Fields& fields, Draft& draft) {
  if (fields.given("max_position_embeddings") || !fields.given("model_max_length")) return;
  draft.model.position = Position::alibi;
  draft.model.max_position_embeddings = fields.integer("model_max_length", 1, limits::positions).value;
}

constexpr Family hunyuan = {.model_type = "hunyuan_v1_dense",
                            .vocab_size = 290943,
                            .hidden_size = 4096,
                            .layers = 32,
                            .heads = 32,
                            .intermediate = 11008,
                            .positions = 2048,
                            .qkv_bias = {"attention_bias", false},
                            .output_bias = {"attention_bias", false},
                            .qk_norm = QkNorm::per_head};

constexpr Family hunyuan_moe_of(Family family) {
  family.model_type = "hunyuan_v1_moe";
  family.per_layer = hunyuan_moe;
  return family;
}

constexpr std::array<Family, 10> families = {{
    {.model_type = "gpt_oss",
     .vocab_size = 201088,
     .hidden_size = 2880,
     .layers = 36,
     .heads = 64,
     .kv_heads = 8,
     .head_dim = 64,
     .intermediate = 2880,
     .positions = 131072,
     .qkv_bias = {"attention_bias", true},
     .output_bias = {"attention_bias", true},
     .window = {.rule = WindowRule::periodic, .if_absent = 128, .period = 2},
     .experts = {.possible = true, .count = 128, .top_k = 4, .width_key = "", .router_bias = true, .expert_bias = true},
     .modules = modules_of(gpt_oss_modules),
     .adjust = gpt_oss},
    {.model_type = "ernie4_5",
     .vocab_size = 103424,
     .hidden_size = 1024,
     .layers = 18,
     .heads = 16,
     .kv_heads = 2,
     .head_dim = 128,
     .intermediate = 3072,
     .positions = 131072,
     .tied = true,
     .qkv_bias = {"use_bias", false},
     .output_bias = {"use_bias", false},
     .mlp_bias = {"use_bias", false},
     .head_bias = {"use_bias", false}},
    {.model_type = "ernie4_5_moe",
     .vocab_size = 103424,
     .hidden_size = 2560,
     .layers = 28,
     .heads = 20,
     .kv_heads = 4,
     .intermediate = 12288,
     .positions = 131072,
     .tied = true,
     .qkv_bias = {"use_bias", false},
     .output_bias = {"use_bias", false},
     .mlp_bias = {"use_bias", false},
     .head_bias = {"use_bias", false},
     .experts = {.possible = true,
                 .count = 64,
                 .top_k = 6,
                 .width = 1536,
                 .shared = SharedExperts::counted,
                 .shared_count = 2,
                 .correction_bias = true},
     .per_layer = ernie_moe},
    hunyuan,
    hunyuan_moe_of(hunyuan),
    {.model_type = "internlm",
     .vocab_size = 103168,
     .hidden_size = 4096,
     .layers = 32,
     .heads = 32,
     .intermediate = 11008,
     .positions = 2048,
     .qkv_bias = {"bias", true},
     .output_bias = {"bias", true}},
    {.model_type = "internlm2",
     .vocab_size = 103168,
     .hidden_size = 4096,
     .layers = 32,
     .heads = 32,
     .intermediate = 11008,
     .positions = 2048,
     .qkv_bias = {"bias", false},
     .output_bias = {"bias", false},
     .modules = modules_of(internlm2_modules)},
    {.model_type = "baichuan",
     .vocab_size = 125696,
     .hidden_size = 4096,
     .layers = 32,
     .heads = 32,
     .intermediate = 11008,
     .positions = 4096,
     .modules = modules_of(baichuan_modules),
     .adjust = baichuan},
    {.model_type = "minicpm",
     .vocab_size = 32000,
     .hidden_size = 4096,
     .layers = 32,
     .heads = 32,
     .intermediate = 11008,
     .positions = 2048,
     .tied = true,
     .qkv_bias = {"attention_bias", false},
     .output_bias = {"attention_bias", false}},
    {.model_type = "exaone",
     .vocab_size = 102400,
     .hidden_size = 2048,
     .layers = 32,
     .heads = 32,
     .positions = 2048,
     .tied = true,
     .modules = modules_of(exaone_modules)},
}};

}  // namespace

FamilyList other_families() { return {families.data(), families.size()}; }

}  // namespace shardplan::io
