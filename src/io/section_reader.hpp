// An ObjectReader whose members are fields of a draft.
#pragma once

#include <optional>
#include <string_view>

#include "object_reader.hpp"
#include "shardplan/plan/field_table.hpp"
#include "shardplan/plan/resolve.hpp"

namespace shardplan::io {

class SectionReader {
 public:
  SectionReader(const nlohmann::json& object, std::string_view file, std::string_view pointer, plan::Draft& draft,
                Diagnostics& problems)
      : object_(object, file, std::string(pointer), problems), draft_(draft) {}

  /// A field that a member of the run holds as a number.
  void read(const plan::FieldRow& row) {
    if (const std::optional<double> value = object_.value(member_of(row), row.value.type)) {
      row.value.set(draft_.run, *value);
      draft_.given.add(row.field);
    } else if (object_.member(member_of(row)) != nullptr) {
      draft_.unusable.add(row.field);
    }
  }

  /// A field whose reading is its own affair: nothing when it could not be read.
  template <class Value, class Target>
  void store(plan::Field field, const std::optional<Value>& value, Target& target) {
    if (value) {
      target = static_cast<Target>(*value);
      draft_.given.add(field);
    } else if (member(field) != nullptr) {
      draft_.unusable.add(field);
    }
  }

  const nlohmann::json* member(plan::Field field) { return object_.member(plan::member_of(plan::row_of(field))); }
  void problem(plan::Field field, std::string message, std::string way_out = {}) {
    object_.problem(plan::member_of(plan::row_of(field)), std::move(message), std::move(way_out));
  }
  void unusable(plan::Field field) { draft_.unusable.add(field); }
  ObjectReader& object() noexcept { return object_; }
  plan::Draft& draft() noexcept { return draft_; }

 private:
  ObjectReader object_;
  plan::Draft& draft_;
};

/// Reads a field with a syntax of its own, where it stands in the section.
void read_own_syntax(plan::Field field, SectionReader& section);

}  // namespace shardplan::io
