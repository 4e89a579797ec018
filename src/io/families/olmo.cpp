// OLMo (norms without weights, then behind the blocks, then with local layers, then with experts) and Cohere.
#include "family.hpp"

namespace shardplan::io {

namespace {

constexpr Family olmo = {.model_type = "olmo",
                         .vocab_size = 50304,
                         .hidden_size = 4096,
                         .layers = 32,
                         .heads = 32,
                         .intermediate = 11008,
                         .positions = 2048,
                         .norm = Norm::layernorm_no_weights,
                         .qkv_bias = {"attention_bias", false},
                         .output_bias = {"attention_bias", false}};

constexpr Family olmo2_of(Family family, std::string_view model_type, Window window) {
  family.model_type = model_type;
  family.norm = Norm::rmsnorm;
  family.placement = NormPlacement::post;
  family.qk_norm = QkNorm::full;
  family.window = window;
  return family;
}

constexpr Family cohere = {.model_type = "cohere",
                           .vocab_size = 256000,
                           .hidden_size = 8192,
                           .layers = 40,
                           .heads = 64,
                           .intermediate = 22528,
                           .positions = 8192,
                           .tied = true,
                           .norm = Norm::layernorm_no_bias,
                           .placement = NormPlacement::parallel,
                           .qkv_bias = {"attention_bias", false},
                           .output_bias = {"attention_bias", false},
                           .qk_norm = QkNorm::each_head,
                           .qk_norm_if = {"use_qk_norm", false}};

constexpr Family cohere2_of(Family family) {
  family.model_type = "cohere2";
  family.qk_norm = QkNorm::none;
  family.window = {.rule = WindowRule::periodic, .if_absent = 4096, .period = 4};
  return family;
}

constexpr std::array<Family, 6> families = {{
    olmo,
    olmo2_of(olmo, "olmo2", {}),
    olmo2_of(olmo, "olmo3", {.rule = WindowRule::periodic, .if_absent = 4096, .period = 4}),
    {.model_type = "olmoe",
     .vocab_size = 50304,
     .hidden_size = 2048,
     .layers = 16,
     .heads = 16,
     .intermediate = 2048,
     .positions = 4096,
     .qkv_bias = {"attention_bias", false},
     .output_bias = {"attention_bias", false},
     .qk_norm = QkNorm::full,
     .experts = {.possible = true, .count = 64, .top_k = 8, .width_key = ""}},
    cohere,
    cohere2_of(cohere),
}};

}  // namespace

FamilyList olmo_families() { return {families.data(), families.size()}; }

}  // namespace shardplan::io
