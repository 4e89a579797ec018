#include "model_dropout.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace shardplan::io {
namespace {

struct RateField {
  std::string_view name;
  bool attention = false;
};

/// As the families on the Hub name them.
constexpr std::array<RateField, 16> rate_fields = {{{"attn_pdrop", true},
                                                    {"attention_dropout", true},
                                                    {"attention_dropout_prob", true},
                                                    {"attention_probs_dropout_prob", true},
                                                    {"attn_dropout_prob", true},
                                                    {"resid_pdrop"},
                                                    {"resid_dropout"},
                                                    {"residual_dropout"},
                                                    {"embd_pdrop"},
                                                    {"emb_pdrop"},
                                                    {"embed_dropout"},
                                                    {"embedding_dropout"},
                                                    {"emb_dropout_prob"},
                                                    {"hidden_dropout"},
                                                    {"hidden_dropout_prob"},
                                                    {"dropout"}}};

struct Rates {
  std::vector<std::string> words;  ///< "attn_pdrop 0.1"
  double hidden = 0;               ///< the largest of each sort
  double attention = 0;
};

void find_rates(const nlohmann::json& object, std::string_view prefix, Rates& rates) {
  for (const RateField& field : rate_fields) {
    const auto value = object.find(std::string(field.name));
    if (value == object.end() || !value->is_number()) continue;
    const double rate = value->get<double>();
    if (!(rate > 0) || !(rate < 1)) continue;
    rates.words.push_back(fmt::format("{}{} {:g}", prefix, field.name, rate));
    double& largest = field.attention ? rates.attention : rates.hidden;
    if (rate > largest) largest = rate;
  }
}

}  // namespace

std::optional<Warning> unused_dropout(const nlohmann::json& config) {
  if (!config.is_object()) return std::nullopt;
  Rates rates;
  find_rates(config, "", rates);
  for (const char* const inner : {"text_config", "attn_config"}) {
    const auto object = config.find(inner);
    if (object != config.end() && object->is_object()) find_rates(*object, std::string(inner) + ".", rates);
  }
  if (rates.words.empty()) return std::nullopt;
  std::string fields;
  for (std::size_t i = 0; i < rates.words.size(); ++i) {
    fields += (i == 0 ? "" : i + 1 == rates.words.size() ? " and " : ", ") + rates.words[i];
  }
  const bool hidden = rates.hidden > 0;
  return Warning{
      "model_dropout_unused", hidden ? "/training/dropout" : "/training/attention_dropout",
      fmt::format("the model's {} {} not used: a run drops nothing unless it says so; --set training.{}={:g}", fields,
                  rates.words.size() == 1 ? "is" : "are", hidden ? "dropout" : "attention_dropout",
                  hidden ? rates.hidden : rates.attention)};
}

}  // namespace shardplan::io
