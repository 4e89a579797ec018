#include "ways_out.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "override_apply.hpp"
#include "shardplan/core/pointer.hpp"

namespace shardplan::io {
namespace {

constexpr std::string_view batch_pointer = "/training/global_batch_size";

bool is_of(const Override& change, std::string_view pointer) {
  return is_inside(change.pointer, pointer) || (change.pointer == "/microbatches" && pointer == batch_pointer);
}

bool has_flag(const Statement& statement, std::string_view pointer) {
  return std::any_of(statement.overrides->begin(), statement.overrides->end(),
                     [&](const Override& change) { return is_of(change, pointer); });
}

const nlohmann::json* in_file(const Statement& statement, std::string_view pointer) {
  if (statement.file == nullptr) return nullptr;
  const nlohmann::json* value = find_pointer(*statement.file, pointer);
  return value == nullptr || value->is_null() ? nullptr : value;
}

bool is_null(const WayOut::Setting& setting) { return setting.value == "null"; }

/// Whether the setting is what holds anyhow.
bool is_stated(const Statement& statement, const WayOut::Setting& setting) {
  if (is_null(setting)) return !has_flag(statement, setting.pointer) && in_file(statement, setting.pointer) == nullptr;
  for (auto change = statement.overrides->rbegin(); change != statement.overrides->rend(); ++change) {
    if (change->pointer == setting.pointer) return override_value(*change).dump() == setting.value;
  }
  const nlohmann::json* value = in_file(statement, setting.pointer);
  return value != nullptr && value->dump() == setting.value;
}

/// A JSON value as a shell word: the text of a string without its quotes.
std::string typed_value(const std::string& value) {
  return value.size() > 1 && value.front() == '"' ? value.substr(1, value.size() - 2) : value;
}

/// The flags that a field left out had.
std::string flags_of(const Statement& statement, std::string_view pointer) {
  std::string flags;
  for (const Override& change : *statement.overrides) {
    if (!is_of(change, pointer)) continue;
    const std::string flag = change.flag == "--set" ? "--set " + dotted(change.pointer) : change.flag;
    if (flags.find(flag) == std::string::npos) flags += (flags.empty() ? "" : " and ") + flag;
  }
  return flags;
}

/// A field that --set stated is said so again: its own flag beside it would be a second one.
bool has_set(const Statement& statement, std::string_view pointer) {
  return std::any_of(statement.overrides->begin(), statement.overrides->end(),
                     [&](const Override& change) { return change.pointer == pointer && change.flag == "--set"; });
}

/// What --offload sets as PART=PLACE.
bool is_offload_part(std::string_view pointer) {
  return pointer == "/training/offload/optimizer" || pointer == "/training/offload/parameters" ||
         pointer == "/training/offload/activations";
}

/// Whether a flag for a part of the offloading stays where the way out is taken.
bool stays(const Override& change, const WayOut& way, const Statement& statement) {
  const bool replaced = std::any_of(way.settings.begin(), way.settings.end(), [&](const WayOut::Setting& setting) {
    return setting.pointer == change.pointer && !is_stated(statement, setting);
  });
  return is_offload_part(change.pointer) && !replaced;
}

/// What --offload has beside what the way out sets: the flag is said whole, as it is to be typed.
std::string offload_parts_of(const WayOut& way, const Statement& statement) {
  constexpr std::string_view offload = "/training/offload/";
  std::string parts;
  for (const Override& change : *statement.overrides) {
    if (change.flag != "--offload" || !stays(change, way, statement)) continue;
    parts += fmt::format("{}{}={}", parts.empty() ? "" : ",", change.pointer.substr(offload.size()), change.value);
  }
  return parts;
}

/// " beside --set training.offload.optimizer=cpu": another flag that stays.
std::string beside_offload(const WayOut& way, const Statement& statement) {
  for (const Override& change : *statement.overrides) {
    if (change.flag != "--set" || !stays(change, way, statement)) continue;
    return fmt::format(" beside --set {}={}", dotted(change.pointer), change.value);
  }
  return {};
}

std::string as_flags(const WayOut& way, const Statement& statement) {
  constexpr std::string_view offload = "/training/offload/";
  std::string typed;
  std::string offloaded;
  std::string without;
  for (const WayOut::Setting& setting : way.settings) {
    if (is_stated(statement, setting)) continue;
    const bool set = has_set(statement, setting.pointer);
    const std::string_view flag = set ? std::string_view() : flag_of(setting.pointer);
    if (is_null(setting) && has_flag(statement, setting.pointer)) {
      without += (without.empty() ? "" : " and ") + flags_of(statement, setting.pointer);
    } else if (is_offload_part(setting.pointer) && !set && !is_null(setting)) {
      if (offloaded.empty()) offloaded = "--offload " + offload_parts_of(way, statement);
      if (offloaded.back() != ' ') offloaded += ',';
      offloaded += fmt::format("{}={}", setting.pointer.substr(offload.size()), typed_value(setting.value));
    } else if (flag.empty() || is_null(setting)) {
      typed +=
          fmt::format("{}--set {}={}", typed.empty() ? "" : " ", dotted(setting.pointer), typed_value(setting.value));
    } else {
      typed += fmt::format("{}--{} {}", typed.empty() ? "" : " ", flag, typed_value(setting.value));
    }
  }
  if (!offloaded.empty()) typed += (typed.empty() ? "" : " ") + offloaded + beside_offload(way, statement);
  if (without.empty()) return typed;
  return typed.empty() ? fmt::format("leave {} out", without) : fmt::format("{} without {}", typed, without);
}

std::string as_fields(const WayOut& way, const Statement& statement) {
  std::string text;
  for (const WayOut::Setting& setting : way.settings) {
    if (is_stated(statement, setting)) continue;
    text += text.empty() ? "" : " and ";
    // What a flag stated, no edit of the file changes.
    if (has_flag(statement, setting.pointer)) {
      text += as_flags({{setting}, ""}, statement);
    } else if (is_null(setting)) {
      text += fmt::format("leave {} out", setting.pointer);
    } else {
      text += fmt::format("set {} to {}", setting.pointer, setting.value);
    }
  }
  return text;
}

bool changes(const WayOut& way, const Statement& statement) {
  return std::any_of(way.settings.begin(), way.settings.end(),
                     [&](const WayOut::Setting& setting) { return !is_stated(statement, setting); });
}

bool helps_with_stack(WayOut& way, const Statement& statement, const std::function<bool(const WayOut&)>& helps) {
  if (helps(way)) return true;
  const WayOut::Setting no_stack{"/training/stack", "null"};
  const bool framework = std::any_of(way.settings.begin(), way.settings.end(), [](const WayOut::Setting& setting) {
    return setting.pointer == "/training/framework";
  });
  if (!framework || is_stated(statement, no_stack)) return false;
  way.settings.push_back(no_stack);
  return helps(way);
}

}  // namespace

std::vector<Override> overrides_with(const Statement& statement, const WayOut& way, bool on_command_line) {
  std::vector<Override> overrides = *statement.overrides;
  for (const WayOut::Setting& setting : way.settings) {
    if (is_stated(statement, setting)) continue;
    const bool had_flag = has_flag(statement, setting.pointer);
    overrides.erase(std::remove_if(overrides.begin(), overrides.end(),
                                   [&](const Override& change) { return is_of(change, setting.pointer); }),
                    overrides.end());
    if (!is_null(setting) || !had_flag)
      overrides.push_back({setting.pointer, setting.value, on_command_line ? "--set" : ""});
  }
  return overrides;
}

std::string ways_out_text(const std::vector<WayOut>& ways, const Statement& statement, bool on_command_line,
                          const std::function<bool(const WayOut&)>& helps) {
  constexpr int most_ways = 2;
  std::string text;
  std::vector<std::string> said;
  int shown = 0;
  for (WayOut way : ways) {
    std::string one = way.words;
    if (!way.settings.empty()) {
      if (shown == most_ways || !changes(way, statement) || !helps_with_stack(way, statement, helps)) continue;
      one = on_command_line ? as_flags(way, statement) : as_fields(way, statement);
      if (!way.words.empty()) one += fmt::format(" ({})", way.words);
      if (std::find(said.begin(), said.end(), one) != said.end()) continue;  // two ways may come to the same flag
      said.push_back(one);
      ++shown;
    }
    text += (text.empty() ? "" : ", or ") + one;
  }
  return text;
}

}  // namespace shardplan::io
