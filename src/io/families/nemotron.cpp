// NVIDIA Nemotron, and the pruned Llamas of the NAS series, whose layers differ one by one.
#include <fmt/format.h>

#include "family.hpp"

namespace shardplan::io {

namespace {

/// Width of a NAS layer's MLP: two thirds of ffn_mult x hidden, rounded up to a multiple of 256.
std::int64_t nas_width(double multiplier, std::int64_t hidden) {
  constexpr std::int64_t unit = 256;
  const auto width = static_cast<std::int64_t>(2 * multiplier * static_cast<double>(hidden) / 3);
  return (width + unit - 1) / unit * unit;
}

void nas_attention(const Fields& block, LayerKind& layer, const Draft& draft) {
  const auto config = block.object("attention");
  if (!config) return;
  if (config->flag("replace_with_linear", false)) {
    refuse(*config, "replace_with_linear", draft.model.family, "a linear map instead of attention");
    return;
  }
  if (config->flag("no_op", false)) {
    layer.attention = AttentionShape();
    layer.attention.kind = AttentionKind::none;
    --layer.norm_count;
    return;
  }
  const Integer group = config->integer("n_heads_in_group", 1, limits::heads);
  const std::int64_t per_group = group.value_or(1, 1);
  if (per_group > 0 && layer.attention.heads % per_group != 0) {
    config->problem("n_heads_in_group",
                    fmt::format("{} does not divide num_attention_heads {}", per_group, layer.attention.heads));
    return;
  }
  if (per_group > 0) layer.attention.kv_heads = layer.attention.heads / per_group;
  layer.attention.window = config->integer("window_length", 1, limits::positions).value_or(0, 0);
}

void nas_mlp(const Fields& block, LayerKind& layer, const Draft& draft) {
  const auto config = block.object("ffn");
  if (!config) return;
  if (config->flag("replace_with_linear", false)) {
    refuse(*config, "replace_with_linear", draft.model.family, "a linear map instead of the MLP");
    return;
  }
  if (config->flag("no_op", false)) {
    layer.mlp = MlpShape();
    layer.mlp.kind = MlpKind::none;
    --layer.norm_count;
    return;
  }
  if (!config->given("ffn_mult")) {
    config->problem("ffn_mult", "ffn_mult is missing", "a number, or \"no_op\": true");
    return;
  }
  layer.mlp.intermediate = nas_width(config->number("ffn_mult", 1, 0.001, 64), draft.model.hidden_size);
}

void nas(const Fields& fields, Draft& draft) {
  const std::vector<Fields> blocks = fields.objects("block_configs");
  if (blocks.size() != draft.layers.size()) {
    fields.problem("block_configs", fmt::format("{} entries for {} layers", blocks.size(), draft.layers.size()));
    return;
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    nas_attention(blocks[i], draft.layers[i], draft);
    nas_mlp(blocks[i], draft.layers[i], draft);
  }
}

constexpr std::array<Family, 2> families = {{
    {.model_type = "nemotron",
     .vocab_size = 256000,
     .hidden_size = 6144,
     .layers = 32,
     .heads = 48,
     .intermediate = 24576,
     .positions = 4096,
     .activation = "relu2",
     .gated = false,
     .norm = Norm::layernorm,
     .qkv_bias = {"attention_bias", false},
     .output_bias = {"attention_bias", false},
     .mlp_bias = {"mlp_bias", false}},
    {.model_type = "nemotron-nas",
     .vocab_size = 32000,
     .hidden_size = 4096,
     .layers = 32,
     .heads = 32,
     .positions = 2048,
     .qkv_bias = {"attention_bias", false},
     .output_bias = {"attention_bias", false},
     .mlp_bias = {"mlp_bias", false},
     .per_layer = nas},
}};

}  // namespace

FamilyList nemotron_families() { return {families.data(), families.size()}; }

}  // namespace shardplan::io
