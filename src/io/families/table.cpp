// All families, the other names that files use for them, and the model types that cannot be planned.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "family.hpp"

namespace shardplan::io {

namespace {

using ListOf = FamilyList (*)();
constexpr std::array<ListOf, 14> lists = {gpt_families,      llama_families,    mistral_families, qwen_families,
                                          gemma_families,    falcon_families,   mpt_families,     phi_families,
                                          olmo_families,     deepseek_families, glm_families,     granite_families,
                                          nemotron_families, other_families};

struct OtherName {
  std::string_view name;
  std::string_view family;
};

/// Names of remote code with the same layout, multimodal models whose text fields may stand at the top, and class
/// names that do not spell their model_type.
constexpr std::array<OtherName, 31> other_names = {{
    {"Yi", "llama"},
    {"xverse", "llama"},
    {"llama4", "llama4_text"},
    {"mistral3", "mistral"},
    {"gemma3", "gemma3_text"},
    {"gemma4", "gemma4_text"},
    {"qwen2_vl", "qwen2_vl_text"},
    {"qwen2_5_vl", "qwen2_5_vl_text"},
    {"qwen3_vl", "qwen3_vl_text"},
    {"qwen3_vl_moe", "qwen3_vl_moe_text"},
    {"qwen2_5_omni", "qwen2_5_omni_text"},
    {"qwen3_omni_moe", "qwen3_omni_moe_text"},
    {"glm4v", "glm4v_text"},
    {"glm4v_moe", "glm4v_moe_text"},
    {"kimi_k2", "deepseek_v3"},
    {"kimi_k25", "deepseek_v3"},
    {"kimi_vl", "deepseek_v3"},
    {"exaone4_5", "exaone4"},
    {"exaone4_5_text", "exaone4"},
    {"longcat", "longcat_flash"},
    {"stablelm_epoch", "stablelm"},
    {"decilm", "nemotron-nas"},
    {"hunyuandensev1", "hunyuan_v1_dense"},
    {"hunyuanmoev1", "hunyuan_v1_moe"},
    {"mixformersequential", "phi-msft"},
    {"llava", "llama"},
    {"llava_next", "llama"},
    {"paligemma", "gemma"},
    {"pixtral", "mistral"},
    {"aya_vision", "cohere2"},
    {"cohere2_vision", "cohere2"},
}};

constexpr std::string_view mamba = "state-space layers (Mamba)";
constexpr std::string_view mamba_attention = "state-space layers (Mamba) between the attention layers";
constexpr std::string_view linear = "linear-attention layers";
constexpr std::string_view recurrent = "recurrent layers";
constexpr std::string_view encoder = "an encoder";

struct Refusal {
  std::string_view model_type;
  std::string_view why;
};
constexpr std::array<Refusal, 54> refusals = {{
    {"mamba", mamba},
    {"mamba2", mamba},
    {"falcon_mamba", mamba},
    {"jamba", mamba_attention},
    {"bamba", mamba_attention},
    {"zamba", mamba_attention},
    {"zamba2", mamba_attention},
    {"falcon_h1", "state-space layers (Mamba) beside the attention layers"},
    {"nemotron_h", mamba_attention},
    {"plamo2", mamba_attention},
    {"hymba", "state-space layers (Mamba) beside the attention layers"},
    {"lfm2", "short convolutions between the attention layers"},
    {"lfm2_moe", "short convolutions between the attention layers"},
    {"lfm2_vl", "short convolutions between the attention layers"},
    {"qwen3_next", linear},
    {"qwen3_5", linear},
    {"qwen3_5_text", linear},
    {"qwen3_5_moe", linear},
    {"qwen3_5_moe_text", linear},
    {"kimi_linear", linear},
    {"minimax", linear},
    {"minimax_text_01", linear},
    {"minimax_m1", linear},
    {"olmo_hybrid", linear},
    {"bailing_moe_linear", linear},
    {"bailing_moe_linear_v2", linear},
    {"jet_nemotron", linear},
    {"gla", linear},
    {"retnet", linear},
    {"doge", "a dynamic mask attention"},
    {"rwkv", recurrent},
    {"rwkv5", recurrent},
    {"rwkv6", recurrent},
    {"rwkv7", recurrent},
    {"recurrent_gemma", recurrent},
    {"xlstm", recurrent},
    {"gemma3n", "several residual streams (AltUp) and per-layer input embeddings"},
    {"gemma3n_text", "several residual streams (AltUp) and per-layer input embeddings"},
    {"mllama", "cross-attention layers to an image encoder"},
    {"mllama_text_model", "cross-attention layers to an image encoder"},
    {"bert", encoder},
    {"roberta", encoder},
    {"deberta-v2", encoder},
    {"modernbert", encoder},
    {"t5", encoder},
    {"mt5", encoder},
    {"umt5", encoder},
    {"bart", encoder},
    {"mbart", encoder},
    {"pegasus", encoder},
    {"whisper", encoder},
    {"t5gemma", encoder},
    {"vit", encoder},
    {"clip", encoder},
}};

/// Letters and digits only, lower case.
std::string folded(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') {
      out += static_cast<char>(c - 'A' + 'a');
    } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      out += c;
    }
  }
  return out;
}

const Family* exact(std::string_view model_type) {
  if (model_type == transformer_family().model_type) return &transformer_family();
  for (const ListOf list_of : lists) {
    const FamilyList list = list_of();
    const Family* const end = list.first + list.count;
    const Family* const found =
        std::find_if(list.first, end, [model_type](const Family& family) { return family.model_type == model_type; });
    if (found != end) return found;
  }
  return nullptr;
}

}  // namespace

const Family* family_of(std::string_view model_type) {
  if (const Family* const found = exact(model_type)) return found;
  for (const OtherName& other : other_names) {
    if (other.name == model_type) return exact(other.family);
  }
  return nullptr;
}

std::vector<std::string_view> family_names() {
  std::vector<std::string_view> names = {transformer_family().model_type};
  for (const ListOf list_of : lists) {
    const FamilyList list = list_of();
    for (std::size_t i = 0; i < list.count; ++i) names.push_back(list.first[i].model_type);
  }
  for (const OtherName& other : other_names) names.push_back(other.name);
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string_view> refused_names() {
  std::vector<std::string_view> names;
  names.reserve(refusals.size());
  for (const Refusal& refusal : refusals) names.push_back(refusal.model_type);
  return names;
}

std::string_view model_type_of_architecture(std::string_view architecture) {
  constexpr std::array<std::string_view, 6> endings = {"ForCausalLM", "LMHeadModel", "ForConditionalGeneration",
                                                       "LMHead",      "TextModel",   "Model"};
  std::string_view stem = architecture;
  for (const std::string_view ending : endings) {
    if (stem.size() > ending.size() && stem.substr(stem.size() - ending.size()) == ending) {
      stem.remove_suffix(ending.size());
      break;
    }
  }
  const std::string wanted = folded(stem);
  if (wanted == "rw") return "RefinedWebModel";
  for (const std::string_view name : family_names()) {
    if (folded(name) == wanted) return name;
  }
  for (const Refusal& refusal : refusals) {
    if (folded(refusal.model_type) == wanted) return refusal.model_type;
  }
  return {};
}

std::string_view nested_model_type(std::string_view outer) {
  const Family* const family = family_of(outer);
  return family == nullptr ? std::string_view() : family->model_type;
}

std::string_view refusal_of(std::string_view model_type) {
  for (const Refusal& refusal : refusals) {
    if (refusal.model_type == model_type) return refusal.why;
  }
  return {};
}

bool is_recurrent_layer(std::string_view layer_type) noexcept {
  constexpr std::array<std::string_view, 8> kinds = {"linear_attention", "mamba",      "mamba2", "conv",
                                                     "recurrent",        "short_conv", "hybrid", "gated_deltanet"};
  return std::find(kinds.begin(), kinds.end(), layer_type) != kinds.end();
}

void refuse(const Fields& fields, std::string_view key, std::string_view model_type, std::string_view why) {
  fields.problem(key, fmt::format("\"{}\" is not supported: it has {}", model_type, why),
                 "describe its attention part with model_type \"transformer\"");
}

}  // namespace shardplan::io
