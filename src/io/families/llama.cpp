// Llama and the dense decoders that changed a detail of it, and Llama 4.
#include <fmt/format.h>

#include "family.hpp"

namespace shardplan::io {

namespace {

using namespace module_sets;

/// Llama 4: experts in lists are parameters, not modules, so "all-linear" does not reach them.
constexpr std::array<ModulePath, 16> llama4_modules = {{
    {"self_attn.q_proj", set_of(MatrixId::q_proj)},
    {"self_attn.k_proj", set_of(MatrixId::k_proj)},
    {"self_attn.v_proj", set_of(MatrixId::v_proj)},
    {"self_attn.o_proj", set_of(MatrixId::o_proj)},
    {"feed_forward.gate_proj", set_of(MatrixId::gate_proj)},
    {"feed_forward.up_proj", set_of(MatrixId::up_proj)},
    {"feed_forward.down_proj", set_of(MatrixId::down_proj)},
    {"feed_forward.shared_expert.gate_proj", set_of(MatrixId::shared_gate_proj)},
    {"feed_forward.shared_expert.up_proj", set_of(MatrixId::shared_up_proj)},
    {"feed_forward.shared_expert.down_proj", set_of(MatrixId::shared_down_proj)},
    {"feed_forward.experts.gate_up_proj", expert_gate_up},
    {"feed_forward.experts.down_proj", set_of(MatrixId::expert_down_proj)},
    {"feed_forward.router", set_of(MatrixId::router)},
    {"embed_tokens", set_of(MatrixId::embed_tokens)},
    {"lm_head", set_of(MatrixId::lm_head)},
    {"all-linear",
     qkv | gate_up | shared_gate_up | set_of(MatrixId::o_proj, MatrixId::down_proj, MatrixId::shared_down_proj)},
}};

/// xIELU has two trained numbers a layer.
void apertus(const Fields&, Draft& draft) { draft.common.extra_parameters = 2; }

bool listed(const std::vector<std::int64_t>& list, std::int64_t value) {
  for (const std::int64_t entry : list) {
    if (entry == value) return true;
  }
  return false;
}

/// Dense layers between the experts, and chunked attention on the layers that rotate.
void llama4(const Fields& fields, Draft& draft) {
  const std::int64_t wide = fields.integer("intermediate_size_mlp", 1, limits::intermediate).value_or(16384, 16384);
  const std::int64_t step = fields.integer("interleave_moe_layer_step", 1, limits::layers).value_or(1, 1);
  const auto moe_layers = fields.integers("moe_layers", 0, limits::layers);
  const auto no_rope = fields.integers("no_rope_layers", 0, 1);
  const Integer interval = fields.integer("no_rope_layer_interval", 1, limits::layers);
  const bool rope_rule = !fields.given("layer_types");
  const std::int64_t chunk = fields.integer("attention_chunk_size", 1, limits::positions).value_or(8192, 0);
  const std::int64_t period = interval.value_or(4, 4);
  if (no_rope && !no_rope->empty() && no_rope->size() != draft.layers.size()) {
    fields.problem("no_rope_layers", fmt::format("{} entries for {} layers", no_rope->size(), draft.layers.size()));
    return;
  }
  for (std::size_t i = 0; i < draft.layers.size(); ++i) {
    LayerKind& layer = draft.layers[i];
    const auto index = static_cast<std::int64_t>(i);
    const bool experts = moe_layers ? listed(*moe_layers, index) : step > 0 && (index + 1) % step == 0;
    if (!experts || layer.mlp.kind != MlpKind::moe) {
      layer.mlp = draft.common.mlp;
      layer.mlp.intermediate = wide;
    }
    if (rope_rule && period > 0) {
      const bool rotates = no_rope && !no_rope->empty() ? (*no_rope)[i] == 1 : (index + 1) % period != 0;
      layer.attention.window = rotates ? chunk : 0;
    }
  }
}

constexpr std::array<Family, 8> families = {{
    {.model_type = "llama",
     .vocab_size = 32000,
     .hidden_size = 4096,
     .layers = 32,
     .heads = 32,
     .intermediate = 11008,
     .positions = 2048,
     .qkv_bias = {"attention_bias", false},
     .output_bias = {"attention_bias", false},
     .mlp_bias = {"mlp_bias", false}},
    {.model_type = "llama4_text",
     .vocab_size = 202048,
     .hidden_size = 5120,
     .layers = 48,
     .heads = 40,
     .kv_heads = 8,
     .head_dim = 128,
     .intermediate = 8192,
     .positions = 131072,
     .qkv_bias = {"attention_bias", false},
     .output_bias = {"attention_bias", false},
     .qk_norm = QkNorm::weightless,
     .qk_norm_if = {"use_qk_norm", true},
     .window = {.rule = WindowRule::every_layer, .if_absent = 8192},
     .experts = {.possible = true, .count = 16, .top_k = 1, .width_key = "", .shared = SharedExperts::like_expert},
     .modules = modules_of(llama4_modules),
     .per_layer = llama4},
    {.model_type = "smollm3",
     .vocab_size = 128256,
     .hidden_size = 2048,
     .layers = 36,
     .heads = 16,
     .kv_heads = 4,
     .intermediate = 11008,
     .positions = 32768,
     .tied = true,
     .qkv_bias = {"attention_bias", false},
     .output_bias = {"attention_bias", false},
     .mlp_bias = {"mlp_bias", false},
     .window = {.rule = WindowRule::late_layers}},
    {.model_type = "arcee",
     .vocab_size = 32000,
     .hidden_size = 2560,
     .layers = 32,
     .heads = 32,
     .intermediate = 18432,
     .positions = 4096,
     .activation = "relu2",
     .gated = false,
     .qkv_bias = {"attention_bias", false},
     .output_bias = {"attention_bias", false},
     .mlp_bias = {"mlp_bias", false}},
    {.model_type = "apertus",
     .vocab_size = 131072,
     .hidden_size = 4096,
     .layers = 32,
     .heads = 32,
     .intermediate = 14336,
     .positions = 65536,
     .activation = "xielu",
     .gated = false,
     .qkv_bias = {"attention_bias", false},
     .output_bias = {"attention_bias", false},
     .qk_norm = QkNorm::per_head,
     .adjust = apertus},
    {.model_type = "helium",
     .vocab_size = 48000,
     .hidden_size = 2560,
     .layers = 24,
     .heads = 20,
     .kv_heads = 20,
     .head_dim = 128,
     .intermediate = 7040,
     .positions = 4096,
     .qkv_bias = {"attention_bias", false},
     .mlp_bias = {"mlp_bias", false}},
    {.model_type = "seed_oss",
     .vocab_size = 155136,
     .hidden_size = 4096,
     .layers = 64,
     .heads = 80,
     .kv_heads = 8,
     .head_dim = 128,
     .intermediate = 27648,
     .positions = 524288,
     .qkv_bias = {"attention_bias", true},
     .output_bias = {"attention_out_bias", false},
     .mlp_bias = {"mlp_bias", false}},
    {.model_type = "exaone4",
     .vocab_size = 102400,
     .hidden_size = 4096,
     .layers = 32,
     .heads = 32,
     .kv_heads = 32,
     .intermediate = 16384,
     .positions = 2048,
     .placement = NormPlacement::post,
     .qk_norm = QkNorm::per_head,
     .window = {.rule = WindowRule::periodic, .if_absent = 4096, .period = 4}},
}};

}  // namespace

FamilyList llama_families() { return {families.data(), families.size()}; }

}  // namespace shardplan::io
