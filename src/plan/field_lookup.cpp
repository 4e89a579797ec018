// Finding fields and their flags.
#include <fmt/format.h>

#include <algorithm>

#include "shardplan/core/pointer.hpp"
#include "shardplan/plan/field_table.hpp"

namespace shardplan::plan {
namespace {

/// Whether one of the words between spaces is this one.
bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

template <class Matches>
FlagOfField first_flag(const Matches& matches) noexcept {
  for (const FieldRow& row : field_rows()) {
    for (const FieldFlag* const flag : {&row.flag, &row.second}) {
      if (!flag->name.empty() && matches(*flag)) return {&row, flag};
    }
  }
  return {};
}

/// A JSON value as a shell word: a text without its quotes, what a shell would take apart in quotes of its own.
std::string typed(std::string_view value) {
  if (value.size() > 1 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
  const bool plain = value.find_first_of("{}[]\" ") == std::string_view::npos;
  return plain ? std::string(value) : fmt::format("'{}'", value);
}

/// Whether --offload takes the field as PART=PLACE.
bool is_offload_part(const FieldRow& row) {
  return section_of(row) == "/training/offload" && row.value.type.kind == ValueType::Kind::word;
}

}  // namespace

const FieldRow& row_of(Field field) noexcept { return field_rows()[static_cast<std::size_t>(field)]; }

const FieldRow* find_field(std::string_view pointer) noexcept {
  const auto rows = field_rows();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const FieldRow& row) { return row.pointer == pointer; });
  return found == rows.end() ? nullptr : &*found;
}

FlagOfField find_flag(std::string_view name) noexcept {
  return first_flag([&](const FieldFlag& flag) { return flag.name == name; });
}

FlagOfField find_flag_named_elsewhere(std::string_view name) noexcept {
  return first_flag([&](const FieldFlag& flag) { return has_word(flag.also, name); });
}

std::string_view member_of(const FieldRow& row) noexcept { return row.pointer.substr(row.pointer.rfind('/') + 1); }

std::string_view section_of(const FieldRow& row) noexcept { return row.pointer.substr(0, row.pointer.rfind('/')); }

std::string flag_text(Field field, std::string_view value) {
  const FieldRow& row = row_of(field);
  for (const FieldFlag* const flag : {&row.flag, &row.second}) {
    if (!flag->fixed.empty() && flag->fixed == value) return fmt::format("--{}", flag->name);
  }
  const bool leaves_out = value == "null";
  if (is_offload_part(row) && !leaves_out) return fmt::format("--offload {}={}", member_of(row), typed(value));
  const bool has_flag = !row.flag.name.empty() && row.flag.fixed.empty();
  if (has_flag && !leaves_out) return fmt::format("--{} {}", row.flag.name, typed(value));
  return fmt::format("--set {}={}", dotted(row.pointer), typed(value));
}

std::string flags_text(std::span<const FieldValue> values) {
  std::string text;
  bool offload_said = false;
  for (const FieldValue& each : values) {
    const bool part = is_offload_part(row_of(each.field)) && each.value != "null";
    if (part && offload_said) continue;
    text += (text.empty() ? "" : " ") + flag_text(each.field, each.value);
    if (!part) continue;
    offload_said = true;
    for (const FieldValue& other : values) {
      const FieldRow& row = row_of(other.field);
      if (other.field == each.field || !is_offload_part(row) || other.value == "null") continue;
      text += fmt::format(",{}={}", member_of(row), typed(other.value));
    }
  }
  return text;
}

}  // namespace shardplan::plan
