// Reads the members of a JSON object one by one and collects what is wrong with them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "object_shape.hpp"
#include "shardplan/core/diagnostic.hpp"
#include "shardplan/core/names.hpp"
#include "shardplan/core/value_type.hpp"

namespace shardplan::io {

/// Members that are absent or null read as nothing. A member of the wrong type or out of range is a problem and reads
/// as nothing. Members that no call asked for are unknown fields: finish() reports them. `about`: what the member is,
/// in a few words, for the schema.
class ObjectReader {
 public:
  /// `object` may be any value; one that is no object is a problem, and every member of it is absent.
  ObjectReader(const nlohmann::json& object, std::string_view file, std::string pointer, Diagnostics& problems);
  /// Reads nothing: notes down in `shape` what it is asked for.
  ObjectReader(ObjectShape& shape, Diagnostics& ignored) : shape_(&shape), problems_(ignored) {}

  /// The member, or nullptr. Counts as known from here on.
  const nlohmann::json* member(std::string_view name);
  /// The member was absent or null, and should not have been.
  void require(std::string_view name);

  /// A truth as 0 or 1, a word as its index. Not for types with a syntax of their own.
  std::optional<double> value(std::string_view name, const ValueType& type, std::string_view about = {});
  std::optional<double> number(std::string_view name, const NumberRange& range, std::string_view about = {});
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t from, std::int64_t to,
                                      std::string_view about = {});
  std::optional<bool> boolean(std::string_view name, std::string_view about = {});
  std::optional<std::string> text(std::string_view name, std::string_view about = {});

  /// A member that spells an enumerator. `way_out`: said where it does not.
  template <class Enum>
  std::optional<Enum> choice(std::string_view name, std::string_view about = {}, std::string_view way_out = {}) {
    const std::optional<std::size_t> index = word(name, {names_of<Enum>.begin(), names_of<Enum>.end()}, about, way_out);
    if (!index) return std::nullopt;
    return static_cast<Enum>(*index);
  }
  /// The index of the word that a member spells.
  std::optional<std::size_t> word(std::string_view name, const std::vector<std::string_view>& words,
                                  std::string_view about = {}, std::string_view way_out = {});

  /// A member that is an object: read(reader of it) where it is there.
  template <class Read>
  void object(std::string_view name, std::string_view about, const Read& read) {
    if (shape_ != nullptr) return describe(name, about, ObjectShape::Form::object, read);
    if (const nlohmann::json* value = member(name)) read_object(*value, pointer_of(name), read);
  }
  /// What is said of a member that should be a list.
  struct NoList {
    std::string_view rule;
    std::string_view way_out;
  };
  /// A member that is a list of objects: read(reader) for each.
  template <class Read>
  void objects(std::string_view name, std::string_view about, const NoList& otherwise, const Read& read) {
    if (shape_ != nullptr) return describe(name, about, ObjectShape::Form::list, read);
    for (const auto& [pointer, value] : entries_of(name, otherwise)) read_object(*value, pointer, read);
  }

  /// Fields that are legal and mean nothing to the caller.
  void accept(std::initializer_list<std::string_view> names);

  void problem(std::string_view name, std::string message, std::string way_out = {});
  std::string pointer_of(std::string_view name) const;
  std::string_view file() const noexcept { return file_; }
  Diagnostics& problems() noexcept { return problems_; }
  bool is_object() const noexcept { return object_ != nullptr; }

  /// Reports every member that was not asked for.
  void finish();

 private:
  struct ListEntry {
    std::string pointer;
    const nlohmann::json* value = nullptr;
  };
  std::vector<ListEntry> entries_of(std::string_view name, const NoList& otherwise);

  template <class Read>
  void read_object(const nlohmann::json& value, std::string pointer, const Read& read) {
    ObjectReader inner(value, file_, std::move(pointer), problems_);
    if (inner.is_object()) read(inner);
    inner.finish();
  }
  template <class Read>
  void describe(std::string_view name, std::string_view about, ObjectShape::Form form, const Read& read) {
    ObjectShape shape;
    ObjectReader inner(shape, problems_);
    read(inner);
    ObjectShape::Entry& entry = shape_->entry(name);
    entry.about = about;
    entry.form = form;
    entry.inner = {std::move(shape)};
  }
  /// Notes down a value; true where that is all.
  bool described(std::string_view name, const ValueType& type, std::string_view about);

  const nlohmann::json* object_ = nullptr;
  ObjectShape* shape_ = nullptr;
  std::string_view file_;
  std::string pointer_;
  Diagnostics& problems_;
  std::vector<std::string_view> known_;
};

/// A value as messages quote it: JSON on one line, long ones cut.
std::string quoted(const nlohmann::json& value);

}  // namespace shardplan::io
