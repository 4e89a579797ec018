#include "run_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "override_apply.hpp"
#include "section_reader.hpp"
#include "shardplan/io/json_text.hpp"
#include "shardplan/io/suggest.hpp"
#include "shardplan/plan/requirements.hpp"

namespace shardplan::io {
namespace {

using plan::Field;

constexpr std::size_t most_unknown_fields = 20;

/// The names of a section's members, from the fields' pointers.
std::vector<std::string_view> members_of(std::string_view section) {
  std::vector<std::string_view> members;
  if (section.empty()) members = {"$schema", "defaults"};
  if (section == "/require") {
    members.assign(names_of<plan::Requirement>.begin(), names_of<plan::Requirement>.end());
  }
  for (const std::string_view pointer : names_of<Field>) {
    if (pointer.substr(0, section.size()) != section || pointer.size() <= section.size() + 1 ||
        pointer[section.size()] != '/') {
      continue;
    }
    const std::string_view rest = pointer.substr(section.size() + 1);
    const std::string_view member = rest.substr(0, rest.find('/'));
    if (std::find(members.begin(), members.end(), member) == members.end()) members.push_back(member);
  }
  if (section.empty()) members.push_back("require");
  return members;
}

/// A field of that name in another section: "; did you mean /parallel/tensor?".
std::string other_place_of(std::string_view key, std::string_view section) {
  for (const std::string_view pointer : names_of<Field>) {
    const std::string_view member = pointer.substr(pointer.rfind('/') + 1);
    if (edit_distance(member, key) != 0 || pointer.substr(0, pointer.rfind('/')) == section) continue;
    return fmt::format("; did you mean {}?", pointer);
  }
  return {};
}

void remove_unknown(nlohmann::json& object, std::string_view section, std::string_view file, Diagnostics& problems) {
  if (!object.is_object()) return;
  const std::vector<std::string_view> known = members_of(section);
  std::vector<std::string_view> shown = known;  // `defaults` is what a resolved run states, nobody else
  shown.erase(std::remove(shown.begin(), shown.end(), "defaults"), shown.end());
  std::vector<std::string> unknown;
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) unknown.push_back(key);
  }
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    const std::string& key = unknown[i];
    if (i < most_unknown_fields) {
      const std::string near = did_you_mean(key, known);
      const std::string elsewhere = near.empty() ? other_place_of(key, section) : std::string();
      problems.push_back({std::string(file), fmt::format("{}/{}", section, escape_token(key)),
                          "unknown field" + (near.empty() ? elsewhere : near),
                          near.empty() && elsewhere.empty() ? fields_here(shown) : std::string(), 0, 0});
      const std::string meant(closest(key, known));
      const auto taken = object.find(meant);
      if (!meant.empty() && (taken == object.end() || taken->is_null())) object[meant] = object[key];
    } else if (i == most_unknown_fields) {
      problems.push_back({std::string(file), std::string(section),
                          fmt::format("{} more unknown fields", unknown.size() - i), "", 0, 0});
    }
    object.erase(key);
  }
}

void read_row(const plan::FieldRow& row, SectionReader& section) {
  if (row.value.set == nullptr) return read_own_syntax(row.field, section);
  section.read(row);
}

}  // namespace

void remove_unknown_fields(nlohmann::json& root, std::string_view file, Diagnostics& problems) {
  remove_unknown(root, "", file, problems);
  for (const plan::FieldSection& section : plan::field_sections()) {
    nlohmann::json* const object = find_pointer(root, section.pointer);
    if (object != nullptr) remove_unknown(*object, section.pointer, file, problems);
  }
}

void read_field(const plan::FieldRow& row, const nlohmann::json& object, std::string_view file, plan::Draft& draft,
                Diagnostics& problems) {
  SectionReader section(object, file, plan::section_of(row), draft, problems);
  if (const plan::FieldRow* const around = plan::find_field(plan::section_of(row))) draft.given.add(around->field);
  if (row.value.type.kind != ValueType::Kind::object) return read_row(row, section);
  if (const nlohmann::json* value = section.member(row.field)) read_section(*value, file, row.pointer, draft, problems);
}

void read_section(const nlohmann::json& object, std::string_view file, std::string_view pointer, plan::Draft& draft,
                  Diagnostics& problems) {
  SectionReader section(object, file, pointer, draft, problems);
  // Adapters and offloading are there once their object is, whatever it holds.
  if (const plan::FieldRow* const row = plan::find_field(pointer)) {
    if (!section.object().is_object()) return draft.unusable.add(row->field);
    draft.given.add(row->field);
  }
  for (const plan::FieldRow& row : plan::field_rows()) {
    if (plan::section_of(row) == pointer) read_row(row, section);
  }
  for (const plan::FieldSection& inner : plan::field_sections()) {
    const std::size_t slash = inner.pointer.rfind('/');
    if (slash != pointer.size() || inner.pointer.substr(0, slash) != pointer) continue;
    if (const nlohmann::json* value = section.object().member(inner.pointer.substr(slash + 1))) {
      read_section(*value, file, inner.pointer, draft, problems);
    }
  }
}

void read_requirements(const nlohmann::json& require, std::string_view file, plan::Draft& draft,
                       Diagnostics& problems) {
  ObjectReader reader(require, file, "/require", problems);
  for (const plan::RequirementRow& row : plan::requirement_rows()) {
    if (const auto value = reader.value(name(row.requirement), row.value.type)) {
      row.value.set(draft.run.require, *value);
    }
  }
}

}  // namespace shardplan::io
