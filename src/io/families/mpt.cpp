// MosaicML's decoders: MPT (with llm-foundry's ffn_config), its forerunner mosaic_gpt, and DBRX.
#include <string>

#include "family.hpp"

namespace shardplan::io {

namespace {

using namespace module_sets;

constexpr std::array<ModulePath, 8> mpt_modules = {{
    {"attn.Wqkv", qkv},
    {"attn.out_proj", set_of(MatrixId::o_proj)},
    {"ffn.gate_proj", set_of(MatrixId::gate_proj)},
    {"ffn.up_proj", set_of(MatrixId::up_proj)},
    {"ffn.down_proj", set_of(MatrixId::down_proj)},
    {"wte", set_of(MatrixId::embed_tokens)},
    {"wpe", set_of(MatrixId::position_embeddings)},
    {"lm_head", set_of(MatrixId::lm_head)},
}};
/// Experts are parameters, not modules, so "all-linear" does not reach them. w1 is the gate, v1 goes up, w2 down.
constexpr std::array<ModulePath, 9> dbrx_modules = {{
    {"norm_attn_norm.attn.Wqkv", qkv},
    {"norm_attn_norm.attn.out_proj", set_of(MatrixId::o_proj)},
    {"ffn.router.layer", set_of(MatrixId::router)},
    {"ffn.experts.mlp.w1", set_of(MatrixId::expert_gate_proj)},
    {"ffn.experts.mlp.v1", set_of(MatrixId::expert_up_proj)},
    {"ffn.experts.mlp.w2", set_of(MatrixId::expert_down_proj)},
    {"wte", set_of(MatrixId::embed_tokens)},
    {"lm_head", set_of(MatrixId::lm_head)},
    {"all-linear", qkv | set_of(MatrixId::o_proj)},
}};

void set_biases(Draft& draft, bool bias) {
  draft.common.attention.qkv_bias = bias;
  draft.common.attention.output_bias = bias;
  draft.common.mlp.up_bias = bias;
  draft.common.mlp.down_bias = bias;
  if (bias && draft.model.norm == Norm::layernorm_no_bias) draft.model.norm = Norm::layernorm;
}

/// A norm over the whole width of queries and keys; with biases it has them too.
void set_qk_norm(Draft& draft) {
  AttentionShape& attention = draft.common.attention;
  attention.qk_norm = QkNorm::full;
  if (draft.model.norm == Norm::layernorm) {
    draft.common.extra_parameters += (attention.heads + attention.kv_heads) * attention.head_dim;
  }
}

void set_positions(const Fields& fields, Draft& draft, bool alibi, bool rope) {
  Model& model = draft.model;
  model.position = alibi ? Position::alibi : rope ? Position::rope : Position::learned;
  if (model.position == Position::learned) {
    if (fields.flag("learned_pos_emb", true)) {
      model.position_rows = model.max_position_embeddings;
    } else {
      model.position = Position::none;
    }
  }
}

std::int64_t scaled_width(const Fields& fields, const Keys& keys, std::int64_t hidden) {
  return static_cast<std::int64_t>(static_cast<double>(hidden) * fields.number(keys, 4, 0.01, 64));
}

/// llm-foundry's ffn_config: a gated MLP, another width, or experts.
void read_ffn(const Fields& ffn, Draft& draft) {
  MlpShape& mlp = draft.common.mlp;
  const std::string type = ffn.text("ffn_type", "mptmlp");
  mlp.gated = type.find("glu") != std::string::npos;
  mlp.intermediate =
      ffn.integer("ffn_hidden_size", 1, limits::intermediate).value_or(mlp.intermediate, mlp.intermediate);
  if (type.find("moe") == std::string::npos) return;
  MlpShape experts;
  experts.gated = ffn.text("mlp_type", "mlp") == "glu";
  experts.experts = ffn.integer("moe_num_experts", 1, limits::experts).value_or(1, 1);
  experts.top_k = ffn.integer("moe_top_k", 1, limits::experts).value_or(1, 1);
  experts.expert_intermediate = mlp.intermediate;
  if (experts.experts > 1) make_moe(draft.common, experts);
}

void mpt(const Fields& fields, Draft& draft) {
  AttentionShape& attention = draft.common.attention;
  Model& model = draft.model;
  draft.common.mlp.intermediate = scaled_width(fields, "expansion_ratio", model.hidden_size);
  if (fields.text("norm_type", "low_precision_layernorm").find("rmsnorm") != std::string::npos) {
    model.norm = Norm::rmsnorm;
  }
  set_biases(draft, !fields.flag("no_bias", true));
  bool alibi = true;
  bool rope = false;
  attention.kv_heads = attention.heads;
  if (const auto config = fields.object("attn_config")) {
    const std::string type = config->text("attn_type", "multihead_attention");
    if (type == "multiquery_attention") attention.kv_heads = 1;
    if (type == "grouped_query_attention") {
      attention.kv_heads = config->integer("kv_n_heads", 1, limits::heads).value_or(attention.heads, attention.heads);
    }
    alibi = config->flag("alibi", true);
    rope = config->flag("rope", false);
    if (config->flag("qk_ln", false)) set_qk_norm(draft);
  }
  set_positions(fields, draft, alibi && !rope, rope);
  if (const auto ffn = fields.object("ffn_config")) read_ffn(*ffn, draft);
}

void mosaic_gpt(const Fields& fields, Draft& draft) {
  draft.common.mlp.intermediate = scaled_width(fields, Keys{"mlp_ratio", "expansion_ratio"}, draft.model.hidden_size);
  set_biases(draft, !fields.flag("no_bias", false));
  set_positions(fields, draft, fields.flag("alibi", false), false);
  if (fields.flag("attn_qk_ln", false)) set_qk_norm(draft);
}

void dbrx(const Fields& fields, Draft& draft) {
  AttentionShape& attention = draft.common.attention;
  attention.kv_heads = 1;
  if (const auto config = fields.object("attn_config")) {
    attention.kv_heads = config->integer(Keys{"kv_n_heads"}, 1, limits::heads).value_or(1, attention.heads);
  }
  MlpShape experts;
  experts.experts = 4;
  experts.top_k = 1;
  experts.expert_intermediate = 3584;
  if (const auto config = fields.object("ffn_config")) {
    experts.experts = config->integer("moe_num_experts", 1, limits::experts).value_or(4, 4);
    experts.top_k = config->integer("moe_top_k", 1, limits::experts).value_or(1, 1);
    experts.expert_intermediate = config->integer("ffn_hidden_size", 1, limits::intermediate).value_or(3584, 3584);
  }
  make_moe(draft.common, experts);
}

constexpr Family mpt_family = {.model_type = "mpt",
                               .vocab_size = 50368,
                               .hidden_size = 2048,
                               .layers = 24,
                               .heads = 16,
                               .positions = 2048,
                               .tied = true,
                               .activation = "gelu",
                               .gated = false,
                               .norm = Norm::layernorm_no_bias,
                               .modules = modules_of(mpt_modules),
                               .adjust = mpt};

constexpr Family mosaic_gpt_of(Family family) {
  family.model_type = "mosaic_gpt";
  family.adjust = mosaic_gpt;
  return family;
}

constexpr std::array<Family, 3> families = {{
    mpt_family,
    mosaic_gpt_of(mpt_family),
    {.model_type = "dbrx",
     .vocab_size = 32000,
     .hidden_size = 2048,
     .layers = 24,
     .heads = 16,
     .positions = 2048,
     .norm = Norm::layernorm_no_bias,
     .modules = modules_of(dbrx_modules),
     .adjust = dbrx},
}};

}  // namespace

FamilyList mpt_families() { return {families.data(), families.size()}; }

}  // namespace shardplan::io
