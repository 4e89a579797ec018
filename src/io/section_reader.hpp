// An ObjectReader whose members are fields of a draft.
#pragma once

#include <optional>
#include <string_view>

#include "object_reader.hpp"
#include "shardplan/plan/fields.hpp"
#include "shardplan/plan/resolve.hpp"

namespace shardplan::io {

class SectionReader {
 public:
  SectionReader(const nlohmann::json& object, std::string_view file, std::string_view pointer, plan::Draft& draft,
                Diagnostics& problems)
      : object_(object, file, std::string(pointer), problems), draft_(draft) {}

  template <class Integer>
  void integer(plan::Field field, Integer& target, std::int64_t from, std::int64_t to) {
    store(field, object_.integer(member_of(field), from, to), target);
  }
  void number(plan::Field field, double& target, const NumberRange& range) {
    store(field, object_.number(member_of(field), range), target);
  }
  void boolean(plan::Field field, bool& target) { store(field, object_.boolean(member_of(field)), target); }
  template <class Enum>
  void choice(plan::Field field, Enum& target) {
    store(field, object_.choice<Enum>(member_of(field)), target);
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

  const nlohmann::json* member(plan::Field field) { return object_.member(member_of(field)); }
  void problem(plan::Field field, std::string message, std::string way_out = {}) {
    object_.problem(member_of(field), std::move(message), std::move(way_out));
  }
  void unusable(plan::Field field) { draft_.unusable.add(field); }
  ObjectReader& object() noexcept { return object_; }
  plan::Draft& draft() noexcept { return draft_; }

  /// The last token of a field's pointer.
  static constexpr std::string_view member_of(plan::Field field) noexcept {
    const std::string_view pointer = name(field);
    return pointer.substr(pointer.rfind('/') + 1);
  }

 private:
  ObjectReader object_;
  plan::Draft& draft_;
};

}  // namespace shardplan::io
