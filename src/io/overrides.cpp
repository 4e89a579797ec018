#include "shardplan/io/overrides.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "override_apply.hpp"
#include "shardplan/core/number_text.hpp"
#include "shardplan/core/pointer.hpp"
#include "shardplan/io/json_text.hpp"
#include "shardplan/io/ranges.hpp"
#include "shardplan/io/suggest.hpp"
#include "shardplan/plan/field_table.hpp"

namespace shardplan::io {
namespace {

constexpr std::array<std::string_view, 6> top_fields = {"model",    "cluster",  "num_gpus",
                                                        "parallel", "training", "require"};

}  // namespace

std::optional<std::string> field_pointer(std::string_view field) {
  if (const plan::FlagOfField found = plan::find_flag(field); found.flag != nullptr) {
    return std::string(found.flag->pointer.empty() ? found.row->pointer : found.flag->pointer);
  }
  std::string pointer(field);
  if (pointer.empty()) return std::nullopt;
  if (pointer.front() != '/') {
    if (pointer.find('/') == std::string::npos) std::replace(pointer.begin(), pointer.end(), '.', '/');
    pointer.insert(0, "/");
  }
  const std::vector<std::string> tokens = pointer_tokens(pointer);
  if (std::find(top_fields.begin(), top_fields.end(), tokens.front()) == top_fields.end()) {
    return field.front() == '/' ? std::optional(pointer) : std::nullopt;  // a pointer is taken at its word
  }
  return pointer;
}

std::string nearest_field(std::string_view typed) {
  const std::string_view last =
      typed.substr(typed.find_last_of("./") == std::string_view::npos ? 0 : typed.find_last_of("./") + 1);
  std::vector<std::string_view> members;
  members.reserve(names_of<plan::Field>.size());
  for (const std::string_view pointer : names_of<plan::Field>)
    members.push_back(pointer.substr(pointer.rfind('/') + 1));
  const std::string_view near = closest(last, members);
  if (near.empty()) return {};
  const auto index = static_cast<std::size_t>(std::find(members.begin(), members.end(), near) - members.begin());
  return dotted(names_of<plan::Field>[index]);
}

std::string_view flag_of(std::string_view pointer) {
  const plan::FieldRow* const row = plan::find_field(pointer);
  // Of a pair of switches --set says either; parts of an object are said one by one.
  const bool says_all = row != nullptr && row->flag.fixed.empty() && row->value.type.kind != ValueType::Kind::object;
  return says_all ? row->flag.name : std::string_view();
}

std::vector<std::string_view> field_words() {
  std::vector<std::string_view> words(top_fields.begin(), top_fields.end());
  for (const plan::FieldRow& row : plan::field_rows()) {
    for (const plan::FieldFlag* const flag : {&row.flag, &row.second}) {
      const bool is_new = std::find(words.begin(), words.end(), flag->name) == words.end();
      if (!flag->name.empty() && is_new) words.push_back(flag->name);
    }
  }
  return words;
}

nlohmann::json override_value(const Override& change) {
  const Result<JsonText> parsed = parse_json(change.value, std::string(command_line));
  return parsed.ok() ? *parsed.value.value : nlohmann::json(change.value);
}

void apply_override(nlohmann::json& root, const Override& change, Diagnostics& problems) {
  nlohmann::json* node = &root;
  for (const std::string& token : pointer_tokens(change.pointer)) {
    if (node->is_array()) {
      const std::optional<std::size_t> index = number_of<std::size_t>(token);
      if (!index || *index > node->size()) {
        problems.push_back({std::string(command_line), change.pointer,
                            fmt::format("a list of {} has no place \"{}\" ({})", node->size(), token, change.flag), "",
                            0, 0});
        return;
      }
      if (*index == node->size()) node->push_back(nullptr);
      node = &(*node)[*index];
    } else {
      if (!node->is_object()) *node = nlohmann::json::object();
      node = &(*node)[token];
    }
  }
  *node = override_value(change);
}

const nlohmann::json* find_pointer(const nlohmann::json& root, std::string_view pointer) {
  const nlohmann::json* node = &root;
  for (const std::string& token : pointer_tokens(pointer)) {
    if (node->is_object()) {
      const auto member = node->find(token);
      if (member == node->end()) return nullptr;
      node = &*member;
    } else if (node->is_array()) {
      const std::optional<std::size_t> index = number_of<std::size_t>(token);
      if (!index || *index >= node->size()) return nullptr;
      node = &(*node)[*index];
    } else {
      return nullptr;
    }
  }
  return node;
}

bool states(const JsonText& document, std::string_view pointer) {
  const nlohmann::json* const value = document.value == nullptr ? nullptr : find_pointer(*document.value, pointer);
  return value != nullptr && !value->is_null();
}

nlohmann::json* find_pointer(nlohmann::json& root, std::string_view pointer) {
  return const_cast<nlohmann::json*>(find_pointer(static_cast<const nlohmann::json&>(root), pointer));
}

void erase_pointer(nlohmann::json& root, std::string_view pointer) {
  const std::size_t slash = pointer.rfind('/');
  if (slash == std::string_view::npos) return;
  nlohmann::json* parent = find_pointer(root, pointer.substr(0, slash));
  if (parent != nullptr && parent->is_object()) parent->erase(pointer_tokens(pointer.substr(slash)).front());
}

void drop_other_sharding(nlohmann::json& root, const std::vector<Override>& overrides, std::string_view file,
                         std::vector<std::string>& notes) {
  struct Pair {
    std::string_view asked, other, words;
  };
  constexpr std::array pairs = {Pair{"/parallel/fsdp", "/parallel/zero_stage", "parallel.zero_stage"},
                                Pair{"/parallel/zero_stage", "/parallel/fsdp", "parallel.fsdp"}};
  for (const Pair& pair : pairs) {
    const auto last_of = [&](std::string_view pointer) {
      return std::find_if(overrides.rbegin(), overrides.rend(),
                          [&](const Override& change) { return is_inside(pointer, change.pointer); });
    };
    const auto change = last_of(pair.asked);
    const bool flag = change != overrides.rend() && !change->flag.empty();
    const nlohmann::json* asked = find_pointer(root, pair.asked);
    const nlohmann::json* other = find_pointer(root, pair.other);
    if (!flag || last_of(pair.other) != overrides.rend() || asked == nullptr || asked->is_null()) continue;
    if (other == nullptr || other->is_null()) continue;
    const nlohmann::json* framework = find_pointer(root, "/training/framework");
    if (pair.other == "/parallel/fsdp" && framework != nullptr && *framework == "fsdp") continue;
    notes.push_back(
        fmt::format("{} {} of {} is dropped, since {} takes its place", pair.words, other->dump(), file, change->flag));
    erase_pointer(root, pair.other);
    return;
  }
}

namespace {

/// "optimizer=cpu,parameters=nvme" as {"optimizer":"cpu","parameters":"nvme"}; nothing where it is anything else.
std::optional<std::string> pairs_object(std::string_view text) {
  std::string object = "{";
  for (const std::string_view pair : list_items(text)) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0 || pair.find_first_of("\"\\{}[]") != std::string_view::npos) {
      return std::nullopt;
    }
    object +=
        fmt::format("{}\"{}\":\"{}\"", object.size() > 1 ? "," : "", pair.substr(0, equals), pair.substr(equals + 1));
  }
  return object + "}";
}

}  // namespace

Result<std::string> field_value(std::string_view flag, std::string_view field, std::string_view pointer,
                                std::string_view value) {
  Result<std::string> result;
  result.value = std::string(value);
  if (field == "no-sp") {
    if (value == "true" || value == "false") {
      result.value = value == "true" ? "false" : "true";
    } else {
      result.problems = {
          usage_diagnostic(fmt::format("{} no-sp: \"{}\" is not true or false", flag, value),
                           "no-sp=true is sequence_parallel false, as the flag --no-sp; false turns it on")};
    }
  } else if (pointer == "/training/offload" && value != "null" && value.substr(0, 1) != "{") {
    if (std::optional<std::string> object = pairs_object(value)) {
      result.value = std::move(*object);
    } else {
      result.problems = {usage_diagnostic(
          fmt::format("{} offload: \"{}\" is not PART=PLACE", flag, value),
          "for example optimizer=cpu; several parts as {\"optimizer\":\"cpu\",\"parameters\":\"nvme\"}, none as {}")};
    }
  }
  return result;
}

std::vector<Override> overrides_of(const plan::Change& change) {
  std::vector<Override> overrides;
  for (const plan::FieldValue& each : change.values) {
    overrides.push_back({std::string(name(each.field)), each.value, ""});
  }
  return overrides;
}

std::vector<Override> typed_overrides_of(const plan::Change& change) {
  std::vector<Override> overrides = overrides_of(change);
  for (Override& each : overrides) {
    const std::string_view flag = flag_of(each.pointer);
    each.flag = flag.empty() ? "--set" : fmt::format("--{}", flag);
  }
  return overrides;
}

}  // namespace shardplan::io
