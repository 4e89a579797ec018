// DeepSeek and those who took over its layers: many small experts with shared ones, multi-head latent attention, a
// sparse-attention indexer.
#include <fmt/format.h>

#include <string>

#include "family.hpp"

namespace shardplan::io {

namespace {

/// LongCat: a shortcut block per layer, two attentions and two dense MLPs with experts beside the first.
constexpr std::array<ModulePath, 13> longcat_modules = {{
    {"self_attn.q_a_proj", set_of(MatrixId::q_a_proj)},
    {"self_attn.q_b_proj", set_of(MatrixId::q_b_proj)},
    {"self_attn.kv_a_proj_with_mqa", set_of(MatrixId::kv_a_proj)},
    {"self_attn.kv_b_proj", set_of(MatrixId::kv_b_proj)},
    {"self_attn.o_proj", set_of(MatrixId::o_proj)},
    {"mlps.gate_proj", set_of(MatrixId::gate_proj)},
    {"mlps.up_proj", set_of(MatrixId::up_proj)},
    {"mlps.down_proj", set_of(MatrixId::down_proj)},
    {"mlp.experts.gate_up_proj", module_sets::expert_gate_up},
    {"mlp.experts.down_proj", set_of(MatrixId::expert_down_proj)},
    {"mlp.router.classifier", set_of(MatrixId::router)},
    {"embed_tokens", set_of(MatrixId::embed_tokens)},
    {"lm_head", set_of(MatrixId::lm_head)},
}};

/// Queries and keys of the indexer that picks the tokens attention sees; "shared" layers reuse the pick of another.
void add_indexer(const Fields& fields, Draft& draft, std::int64_t heads) {
  AttentionShape& shape = draft.common.attention;
  if (shape.kind != AttentionKind::latent) return;
  shape.indexer_heads = fields.integer("index_n_heads", 1, limits::heads).value_or(heads, 0);
  shape.indexer_head_dim = fields.integer("index_head_dim", 1, limits::head_dim).value_or(128, 0);
  shape.indexer_top_k = fields.integer("index_topk", 1, limits::positions).value_or(2048, 0);
  if (shape.q_lora_rank == 0) {
    fields.problem("q_lora_rank", "null, and the indexer reads the query latent", "a rank of at least 1");
  }
}

void deepseek_v32(const Fields& fields, Draft& draft) { add_indexer(fields, draft, 64); }
void glm_moe_dsa(const Fields& fields, Draft& draft) { add_indexer(fields, draft, 32); }

void shared_indexers(const Fields& fields, Draft& draft) {
  const auto types = fields.texts("indexer_types");
  if (!types) return;
  if (types->size() != draft.layers.size()) {
    fields.problem("indexer_types", fmt::format("{} entries for {} layers", types->size(), draft.layers.size()));
    return;
  }
  for (std::size_t i = 0; i < types->size(); ++i) {
    if ((*types)[i] == "shared") draft.layers[i].attention.indexer_heads = 0;
  }
}

/// `num_layers` blocks of two layers each. Some experts do nothing; a token spends its top-k on them in proportion.
void longcat(const Fields& fields, Draft& draft) {
  draft.layer_count = 2 * fields.integer("num_layers", 1, limits::layers / 2).value_or(28, 28);
  draft.common.mlp.intermediate = fields.integer("ffn_hidden_size", 1, limits::intermediate).value_or(12288, 12288);
}

void longcat_layers(const Fields& fields, Draft& draft) {
  MlpShape experts;
  experts.experts = fields.integer("n_routed_experts", 1, limits::experts).value_or(512, 512);
  const std::int64_t idle = fields.integer("zero_expert_num", 0, limits::experts).value_or(256, 0);
  const std::int64_t chosen =
      fields.integer(Keys{"moe_topk", "num_experts_per_tok"}, 1, limits::experts).value_or(12, 12);
  const std::int64_t all = experts.experts + idle;
  experts.top_k = all > 0 ? (chosen * experts.experts + all / 2) / all : chosen;
  experts.expert_intermediate = fields.integer("expert_ffn_hidden_size", 1, limits::intermediate).value_or(2048, 2048);
  experts.parallel_dense_intermediate = draft.common.mlp.intermediate;
  experts.correction_bias = true;
  experts.router_bias = fields.flag("router_bias", false);
  experts.router_extra_parameters = idle * (draft.model.hidden_size + 1 + (experts.router_bias ? 1 : 0));
  for (std::size_t i = 0; i < draft.layers.size(); i += 2) make_moe(draft.layers[i], experts);
}

constexpr Latent v3_latent = {
    .possible = true, .q_lora_rank = 1536, .kv_lora_rank = 512, .nope = 128, .rope = 64, .value = 128};

constexpr Experts v3_experts(std::int64_t count, std::int64_t top_k, std::int64_t width, std::int64_t first_dense) {
  return {.possible = true,
          .count = count,
          .top_k = top_k,
          .width = width,
          .layers = ExpertLayers::after_dense,
          .first_dense = first_dense,
          .shared = SharedExperts::counted,
          .shared_count = 1,
          .correction_bias = true};
}

constexpr Family v3 = {.model_type = "deepseek_v3",
                       .vocab_size = 129280,
                       .hidden_size = 7168,
                       .layers = 61,
                       .heads = 128,
                       .kv_heads = 128,
                       .intermediate = 18432,
                       .positions = 4096,
                       .qkv_bias = {"attention_bias", false},
                       .output_bias = {"attention_bias", false},
                       .experts = v3_experts(256, 8, 2048, 3),
                       .latent = v3_latent};

constexpr Family v32_of(Family family) {
  family.model_type = "deepseek_v32";
  family.positions = 163840;
  family.adjust = deepseek_v32;
  family.per_layer = shared_indexers;
  return family;
}

constexpr Family glm_moe_dsa_of(Family family) {
  family.model_type = "glm_moe_dsa";
  family.vocab_size = 154880;
  family.hidden_size = 6144;
  family.layers = 78;
  family.heads = 64;
  family.kv_heads = 64;
  family.intermediate = 12288;
  family.positions = 202752;
  family.latent = {.possible = true, .q_lora_rank = 2048, .kv_lora_rank = 512, .nope = 192, .rope = 64, .value = 256};
  family.adjust = glm_moe_dsa;
  family.per_layer = shared_indexers;
  return family;
}

constexpr Family glm4_moe_lite_of(Family family) {
  family.model_type = "glm4_moe_lite";
  family.vocab_size = 154880;
  family.hidden_size = 2048;
  family.layers = 47;
  family.heads = 20;
  family.kv_heads = 20;
  family.intermediate = 10240;
  family.positions = 202752;
  family.experts = v3_experts(64, 4, 1536, 1);
  family.latent = {.possible = true, .q_lora_rank = 768, .kv_lora_rank = 512, .nope = 192, .rope = 64, .value = 256};
  return family;
}

constexpr std::array<Family, 9> families = {{
    // The 16B model's remote code: multi-head attention, no class default for the experts.
    {.model_type = "deepseek",
     .vocab_size = 102400,
     .hidden_size = 4096,
     .layers = 30,
     .heads = 32,
     .kv_heads = 32,
     .intermediate = 11008,
     .positions = 2048,
     .qkv_bias = {"attention_bias", false},
     .output_bias = {"attention_bias", false},
     .experts =
         {.possible = true, .width = 1407, .layers = ExpertLayers::after_dense, .shared = SharedExperts::counted}},
    {.model_type = "deepseek_v2",
     .vocab_size = 32000,
     .hidden_size = 4096,
     .layers = 32,
     .heads = 32,
     .intermediate = 11008,
     .positions = 2048,
     .qkv_bias = {"attention_bias", false},
     .output_bias = {"attention_bias", false},
     .mlp_bias = {"mlp_bias", false},
     .experts = {.possible = true,
                 .count = 64,
                 .width = 1407,
                 .layers = ExpertLayers::after_dense,
                 .shared = SharedExperts::counted,
                 .shared_count = 2},
     .latent = v3_latent},
    v3,
    v32_of(v3),
    glm_moe_dsa_of(v3),
    glm4_moe_lite_of(v3),
    {.model_type = "dots1",
     .vocab_size = 152064,
     .hidden_size = 4608,
     .layers = 62,
     .heads = 32,
     .kv_heads = 32,
     .intermediate = 10944,
     .positions = 2048,
     .qkv_bias = {"attention_bias", false},
     .output_bias = {"attention_bias", false},
     .qk_norm = QkNorm::per_head,
     .window = {.rule = WindowRule::late_layers, .if_absent = 4096, .period = 62},
     .experts = {.possible = true,
                 .width = 1408,
                 .layers = ExpertLayers::after_dense,
                 .shared = SharedExperts::counted,
                 .correction_bias = true}},
    {.model_type = "minicpm3",
     .vocab_size = 73448,
     .hidden_size = 2560,
     .layers = 62,
     .heads = 40,
     .kv_heads = 40,
     .intermediate = 6400,
     .positions = 32768,
     .tied = true,
     .qkv_bias = {"attention_bias", false},
     .output_bias = {"attention_bias", false},
     .mlp_bias = {"mlp_bias", false},
     .latent = {.possible = true, .q_lora_rank = 768, .kv_lora_rank = 256, .nope = 64, .rope = 32}},
    {.model_type = "longcat_flash",
     .vocab_size = 131072,
     .hidden_size = 6144,
     .layers = 56,
     .heads = 64,
     .intermediate = 12288,
     .positions = 131072,
     .qkv_bias = {"attention_bias", false},
     .output_bias = {"attention_bias", false},
     .latent = v3_latent,
     .modules = modules_of(longcat_modules),
     .adjust = longcat,
     .per_layer = longcat_layers},
}};

}  // namespace

FamilyList deepseek_families() { return {families.data(), families.size()}; }

}  // namespace shardplan::io
