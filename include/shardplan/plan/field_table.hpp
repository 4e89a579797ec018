// The fields of a run file, a row each: where it stands, what it may be, which member of a run it is, its flag, what it
// means. The reader and the writer of run files, the schema, the command line with its help and completions, and the
// tables of docs/run.md are made from these rows or held against them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "shardplan/core/member.hpp"
#include "shardplan/core/run.hpp"
#include "shardplan/plan/fields.hpp"
#include "shardplan/plan/requirements.hpp"

namespace shardplan::plan {

inline constexpr std::int64_t largest_degree = std::int64_t{1} << 20;
inline constexpr std::int64_t largest_global_batch = std::int64_t{1} << 30;
/// Decoder layers, and what counts them.
inline constexpr std::int64_t most_layers = std::int64_t{1} << 20;

/// A flag of every command that takes a run.
struct FieldFlag {
  std::string_view name = {};     ///< without dashes; empty: none
  std::string_view value = {};    ///< how --help calls what follows it; empty: a switch
  std::string_view help = {};     ///< where it says more than the row: one line
  std::string_view also = {};     ///< what people type instead, separated by spaces
  std::string_view fixed = {};    ///< JSON text that a switch sets
  std::string_view pointer = {};  ///< of a stand-in that the reader turns into the field; empty: the field's own
};

struct FieldRow {
  Field field = Field::model;
  std::string_view pointer;
  Member<Run> value;
  std::string_view usual;  ///< the default, or who decides it; words that files spell are in backticks
  std::string_view about;  ///< what it is, in a few words
  FieldFlag flag = {};
  FieldFlag second = {};
};

/// Every field, in the order of Field, which is that of a resolved run.
std::span<const FieldRow> field_rows() noexcept;
const FieldRow& row_of(Field field) noexcept;

/// By JSON pointer ("/parallel/tensor"); nullptr when there is none.
const FieldRow* find_field(std::string_view pointer) noexcept;

/// By a flag's name without dashes ("tp", "no-sp"), or by one name from the other programs' flags that stand in `also`.
struct FlagOfField {
  const FieldRow* row = nullptr;
  const FieldFlag* flag = nullptr;
};
FlagOfField find_flag(std::string_view name) noexcept;
FlagOfField find_flag_named_elsewhere(std::string_view name) noexcept;

/// The last token of a field's pointer.
std::string_view member_of(const FieldRow& row) noexcept;
/// The pointer of the object that a field stands in; "" at the top.
std::string_view section_of(const FieldRow& row) noexcept;

/// A field and the JSON text of its value; "null" leaves it out.
struct FieldValue {
  Field field = Field::model;
  std::string value;
};

/// What to type for one field: "--tp 8", "--no-sp", "--offload optimizer=cpu", else "--set training.loss=liger".
std::string flag_text(Field field, std::string_view value);
/// The same of several, in their order; parts of the offloading share one flag.
std::string flags_text(std::span<const FieldValue> values);

/// An object of a run file.
struct FieldSection {
  std::string_view pointer;
  std::string_view about;
};
/// Outer ones before those inside them.
std::span<const FieldSection> field_sections() noexcept;

/// A member of `require`.
struct RequirementRow {
  Requirement requirement = Requirement::fits;
  Member<Requirements> value;
  std::string_view about;
};
std::span<const RequirementRow> requirement_rows() noexcept;

}  // namespace shardplan::plan
