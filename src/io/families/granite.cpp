// IBM Granite: Llama's layers with scalar multipliers, with experts, with a shared one, and the attention-only members
// of the hybrid class.
#include <fmt/format.h>

#include "family.hpp"

namespace shardplan::io {

namespace {

using namespace module_sets;

/// Routed experts are parameters, not modules, so "all-linear" does not reach them; the shared one is a module.
constexpr std::array<ModulePath, 12> granite_moe_modules = {{
    {"self_attn.q_proj", set_of(MatrixId::q_proj)},
    {"self_attn.k_proj", set_of(MatrixId::k_proj)},
    {"self_attn.v_proj", set_of(MatrixId::v_proj)},
    {"self_attn.o_proj", set_of(MatrixId::o_proj)},
    {"block_sparse_moe.router.layer", set_of(MatrixId::router)},
    {"block_sparse_moe.input_linear", expert_gate_up},
    {"block_sparse_moe.output_linear", set_of(MatrixId::expert_down_proj)},
    {"shared_mlp.input_linear", shared_gate_up | gate_up},
    {"shared_mlp.output_linear", set_of(MatrixId::shared_down_proj, MatrixId::down_proj)},
    {"embed_tokens", set_of(MatrixId::embed_tokens)},
    {"lm_head", set_of(MatrixId::lm_head)},
    {"all-linear",
     qkv | gate_up | shared_gate_up | set_of(MatrixId::o_proj, MatrixId::down_proj, MatrixId::shared_down_proj)},
}};

/// Without a list of layer types the class takes every layer for a Mamba layer. Without experts the shared MLP is the
/// layer's only one.
void granite_hybrid(const Fields& fields, Draft& draft) {
  const std::string_view key = fields.given("layer_types") ? "layer_types" : "layers_block_type";
  const auto types = fields.texts(key);
  if (!types) {
    if (!fields.given(key)) refuse(fields, "model_type", draft.model.family, "state-space layers (Mamba-2)");
    return;
  }
  for (const std::string& type : *types) {
    if (!is_recurrent_layer(type)) continue;
    refuse(fields, key, draft.model.family, fmt::format("layers of type {}", type));
    return;
  }
  draft.common.mlp.intermediate =
      fields.integer("shared_intermediate_size", 1, limits::intermediate).value_or(1024, 1024);
  if (fields.text("position_embedding_type", "none") != "rope") draft.model.position = Position::none;
}

constexpr Family granite = {.model_type = "granite",
                            .vocab_size = 32000,
                            .hidden_size = 4096,
                            .layers = 32,
                            .heads = 32,
                            .intermediate = 11008,
                            .positions = 2048,
                            .qkv_bias = {"attention_bias", false},
                            .output_bias = {"attention_bias", false},
                            .mlp_bias = {"mlp_bias", false}};

constexpr Family granite_moe_of(Family family, std::string_view model_type, std::int64_t shared_width) {
  family.model_type = model_type;
  family.mlp_bias = never;
  family.experts = {.possible = true, .count = 8, .top_k = 2, .width_key = ""};
  if (shared_width >= 0) {
    family.experts.shared = SharedExperts::own_width;
    family.experts.shared_count = shared_width;
  }
  family.modules = modules_of(granite_moe_modules);
  return family;
}

constexpr Family granite_hybrid_of(Family family) {
  family = granite_moe_of(family, "granitemoehybrid", 1024);
  family.experts.width_key = "intermediate_size";
  family.experts.width = 11008;
  family.adjust = granite_hybrid;
  return family;
}

constexpr std::array<Family, 4> families = {{
    granite,
    granite_moe_of(granite, "granitemoe", -1),
    granite_moe_of(granite, "granitemoeshared", 0),
    granite_hybrid_of(granite),
}};

}  // namespace

FamilyList granite_families() { return {families.data(), families.size()}; }

}  // namespace shardplan::io
