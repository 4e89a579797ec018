// Falcon (and its remote-code forerunners RefinedWeb and RefinedWebModel) and BLOOM.
#include "family.hpp"

namespace shardplan::io {

namespace {

using namespace module_sets;

constexpr std::array<ModulePath, 6> falcon_modules = {{
    {"self_attention.query_key_value", qkv},
    {"self_attention.dense", set_of(MatrixId::o_proj)},
    {"mlp.dense_h_to_4h", set_of(MatrixId::up_proj)},
    {"mlp.dense_4h_to_h", set_of(MatrixId::down_proj)},
    {"word_embeddings", set_of(MatrixId::embed_tokens)},
    {"lm_head", set_of(MatrixId::lm_head)},
}};

/// Key and value heads, and where the norms stand. With the old architecture a number of KV heads in the file says
/// nothing: multi_query means one.
void falcon(const Fields& fields, Draft& draft, bool new_architecture) {
  AttentionShape& attention = draft.common.attention;
  if (!new_architecture) attention.kv_heads = fields.flag("multi_query", true) ? 1 : attention.heads;
  if (fields.flag("alibi", false)) draft.model.position = Position::alibi;
  const std::int64_t norms =
      fields.integer("num_ln_in_parallel_attn", 1, 2).value_or(new_architecture ? 2 : 1, new_architecture ? 2 : 1);
  NormPlacement& placement = draft.common.norm_placement;
  if (!fields.flag("parallel_attn", true)) {
    placement = NormPlacement::pre;
  } else {
    placement = norms == 2 ? NormPlacement::parallel_two_norms : NormPlacement::parallel;
  }
  draft.common.norm_count = norms_of(placement);
}

void falcon_by_flag(const Fields& fields, Draft& draft) {
  falcon(fields, draft, fields.flag("new_decoder_architecture", false));
}

void falcon_new(const Fields& fields, Draft& draft) { falcon(fields, draft, true); }

void bloom(const Fields&, Draft& draft) {
  draft.model.embedding_norm = true;
  draft.common.mlp.intermediate = 4 * draft.model.hidden_size;  // whatever n_inner says
}

constexpr Family falcon_family = {.model_type = "falcon",
                                  .vocab_size = 65024,
                                  .hidden_size = 4544,
                                  .layers = 32,
                                  .heads = 71,
                                  .positions = 2048,
                                  .tied = true,
                                  .activation = "gelu",
                                  .gated = false,
                                  .norm = Norm::layernorm,
                                  .placement = NormPlacement::parallel,
                                  .qkv_bias = {"bias", false},
                                  .output_bias = {"bias", false},
                                  .mlp_bias = {"bias", false},
                                  .modules = modules_of(falcon_modules),
                                  .adjust = falcon_by_flag};

constexpr Family refined_web(Family family, std::string_view model_type, void (*adjust)(const Fields&, Draft&)) {
  family.model_type = model_type;
  family.adjust = adjust;
  return family;
}

constexpr std::array<Family, 4> families = {{
    falcon_family,
    refined_web(falcon_family, "RefinedWeb", falcon_new),
    refined_web(falcon_family, "RefinedWebModel", falcon_by_flag),
    {.model_type = "bloom",
     .vocab_size = 250880,
     .hidden_size = 64,
     .layers = 2,
     .heads = 8,
     .tied = true,
     .activation = "gelu",
     .gated = false,
     .norm = Norm::layernorm,
     .position = Position::alibi,
     .qkv_bias = always,
     .output_bias = always,
     .mlp_bias = always,
     .modules = modules_of(falcon_modules),
     .adjust = bloom},
}};

}  // namespace

FamilyList falcon_families() { return {families.data(), families.size()}; }

}  // namespace shardplan::io
