#include "shardplan/io/model_config.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "families/family.hpp"
#include "families/fields.hpp"
#include "object_reader.hpp"
#include "shardplan/io/suggest.hpp"

namespace shardplan::io {

using nlohmann::json;

namespace {

/// What `"shardplan": {...}` inside a model may hold.
const std::vector<std::string_view>& own_fields() {
  static const std::vector<std::string_view> fields = {"name", "aliases", "source", "trust"};
  return fields;
}

/// The name that the file gives the model.
std::string read_own(const Fields& fields) {
  const auto own = fields.object("shardplan");
  if (!own) return {};
  own->only(own_fields(), "\"shardplan\"");
  own->texts("aliases");
  own->text("source", "");
  own->text("trust", "");
  return own->text("name", "");
}

/// model_type, or what architectures[0] says where there is none.
std::string model_type_of(const Fields& fields) {
  std::string type = fields.text("model_type", "");
  if (!type.empty()) return type;
  const auto architectures = fields.is_list("architectures") ? fields.texts("architectures") : std::nullopt;
  if (!architectures || architectures->empty()) return {};
  const std::string_view found = model_type_of_architecture(architectures->front());
  if (found == "RefinedWebModel" && fields.given("n_head_kv")) return "RefinedWeb";
  return std::string(found);
}

/// The language model inside a multimodal one.
std::optional<Fields> nested_text(const Fields& fields) {
  if (const auto thinker = fields.object("thinker_config")) return nested_text(*thinker);
  for (const std::string_view key : {"text_config", "llm_config", "language_config"}) {
    if (auto text = fields.object(key)) return text;
  }
  return std::nullopt;
}

/// Keys that only models with recurrent layers have; for model types that no table knows.
bool looks_recurrent(const Fields& fields) {
  for (const std::string_view key : {"ssm_cfg", "hybrid_override_pattern", "mamba_d_state", "ssm_state_size",
                                     "linear_num_key_heads", "linear_attn_config", "attn_layer_indices"}) {
    if (fields.given(key)) return true;
  }
  return false;
}

/// Letters up to the first digit or separator: "qwen" of "qwen3_moe".
std::string_view stem_of(std::string_view type) {
  return type.substr(0, std::min(type.find_first_of("0123456789_-."), type.size()));
}

/// The nearest name where it may be what was meant: another version, or the same word with a slip. Names of few letters
/// are near to each other without being kin (opt, mpt), and so are those of another beginning.
std::string_view same_family(std::string_view type, std::string_view near) {
  constexpr std::size_t long_enough = 4;
  const std::string_view typed = stem_of(type);
  const std::string_view meant = stem_of(near);
  if (typed == meant) return near;
  const bool slip = std::min(typed.size(), meant.size()) >= long_enough && typed.front() == meant.front() &&
                    edit_distance(typed, meant) == 1;
  return slip ? near : std::string_view();
}

void unknown_type(const Fields& fields, const std::string& type) {
  const std::string_view generic = "or describe the model with model_type \"transformer\"";
  if (looks_recurrent(fields)) {
    refuse(fields, "model_type", type.empty() ? "this architecture" : type, "state-space or linear-attention layers");
    return;
  }
  if (type.empty()) {
    if (fields.given("model_type") && !fields.is_text("model_type")) return;  // reported
    const bool named = fields.is_list("architectures");
    fields.problem("model_type",
                   named ? "model_type is missing, and architectures names no known class" : "model_type is missing",
                   fmt::format("give model_type, {}", generic));
    return;
  }
  std::vector<std::string_view> names = family_names();
  for (const std::string_view name : refused_names()) names.push_back(name);
  const std::string_view near = same_family(type, closest(type, names));
  fields.problem(
      "model_type", fmt::format("\"{}\" is an unknown model_type", type),
      near.empty() ? fmt::format("{}", generic.substr(3)) : fmt::format("did you mean \"{}\"? {}", near, generic));
}

Model read_text_model(const Fields& fields, const std::string& type, std::optional<bool> outer_tied) {
  const std::string_view why = refusal_of(type);
  if (!why.empty()) {
    refuse(fields, "model_type", type, why);
    return {};
  }
  const Family* const family = family_of(type);
  if (family == nullptr) {
    unknown_type(fields, type);
    return {};
  }
  if (family == &transformer_family()) {
    std::vector<std::string_view> known;
    for (const GenericField& field : transformer_fields()) known.push_back(field.name);
    fields.only(known, "model_type \"transformer\"");
  }
  return read_family(fields, *family, outer_tied);
}

Model read_any(const Fields& fields) {
  const std::string type = model_type_of(fields);
  const auto text = nested_text(fields);
  if (!text || !refusal_of(type).empty() || type == transformer_family().model_type) {
    return read_text_model(fields, type, std::nullopt);
  }
  std::string inner = model_type_of(*text);
  if (inner.empty()) inner = nested_model_type(type);
  std::optional<bool> outer_tied;
  if (fields.given("tie_word_embeddings")) outer_tied = fields.flag("tie_word_embeddings", false);
  return read_text_model(*text, inner, outer_tied);
}

}  // namespace

Result<Model> read_model(const json& config, std::string_view file, std::string_view pointer) {
  Result<Model> result;
  if (!config.is_object()) {
    result.problems.push_back(
        {std::string(file), std::string(pointer), fmt::format("{} is not a model object", quoted(config)), "", 0, 0});
    return result;
  }
  const Fields fields(config, file, std::string(pointer), result.problems);
  const std::string own_name = read_own(fields);
  result.value = read_any(fields);
  if (!own_name.empty()) result.value.name = own_name;
  return result;
}

std::vector<std::string> model_aliases(const json& config) {
  Diagnostics ignored;
  if (!config.is_object()) return {};
  const auto own = Fields(config, "", "", ignored).object("shardplan");
  if (!own) return {};
  return own->texts("aliases").value_or(std::vector<std::string>());
}

std::vector<std::string_view> supported_model_types() { return family_names(); }

}  // namespace shardplan::io
