// Every flag, once: the command line, --help and did-you-mean are generated from these rows.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "shardplan/core/names.hpp"

namespace shardplan::cli {

/// What stands behind a flag on the command line.
enum class ValueKind : std::uint8_t {
  none,           ///< nothing: the row's `fixed` is the value
  integer,        ///< JSON number
  number,         ///< JSON number
  text,           ///< JSON string
  list,           ///< a,b,c: JSON list; a single "all-linear" stays a string
  pairs,          ///< key=value,key=value: members of the field
  any_field,      ///< FIELD=VALUE
  optional_text,  ///< a word, or nothing
  assignment,     ///< SYMBOL=VALUE, any number of times
  axis            ///< FIELD=VALUES: no value of the run
};

enum class FlagGroup : std::uint8_t { model, cluster, parallel, training, command, output };

struct Flag {
  std::string_view name;          ///< long name without dashes
  std::string_view pointer = {};  ///< of the run file's field that it sets; empty: none
  ValueKind kind = ValueKind::none;
  FlagGroup group = FlagGroup::output;
  std::string_view value = {};  ///< how --help calls the value, e.g. "N"
  std::string_view help = {};   ///< one line
  std::string_view also = {};   ///< words that people type instead, separated by spaces
  std::string_view fixed = {};  ///< JSON text a switch sets
  char letter = 0;              ///< one-letter form, 0: none
};

/// Flags that set a field of the run: every command that takes a run has them.
std::span<const Flag> run_flags();

/// --format, -o, --units, --color ...: every command has them.
std::span<const Flag> output_flags();

}  // namespace shardplan::cli

namespace shardplan {
template <>
inline constexpr std::array<std::string_view, 6> names_of<cli::FlagGroup> = {"Model",    "Cluster", "Parallel",
                                                                             "Training", "Command", "Output"};
}  // namespace shardplan
