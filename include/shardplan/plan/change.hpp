// A change of a run: fields and what they become. The one form of what levers, ways out, searches and users alter; it
// applies to the statement of a run and renders as flags.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "shardplan/core/layout.hpp"
#include "shardplan/core/names.hpp"
#include "shardplan/plan/field_table.hpp"
#include "shardplan/plan/resolve.hpp"

namespace shardplan::plan {

/// Values are JSON texts, as in a run file; "null" leaves a field out, so that it takes its default.
struct Change {
  std::vector<FieldValue> values;

  Change& set(Field field, std::int64_t value);
  Change& set(Field field, int value) { return set(field, std::int64_t{value}); }
  Change& set(Field field, bool value);
  Change& set(Field field, std::string_view word);
  Change& set(Field field, const char* word) { return set(field, std::string_view(word)); }
  template <class Enum, class = std::enable_if_t<std::is_enum_v<Enum>>>
  Change& set(Field field, Enum value) {
    return set(field, name(value));
  }
  Change& leave_out(Field field);

  /// The values of another change behind its own.
  Change& operator+=(const Change& other);
  bool has(Field field) const noexcept;
  bool empty() const noexcept { return values.empty(); }
};

/// What to type: "--tp 4 --set training.overlap.tp=true".
std::string flags_of(const Change& change);

/// States the values. What was stated and cannot stand beside them gives way: data parallelism where the GPUs or other
/// degrees change, ZeRO's stage beside FSDP and the other way round, microbatches beside a batch, the cluster's number
/// of nodes where there are more GPUs. The framework and its stack are as they were: stack_follows() of the caller.
/// Values of fields that hold no number, truth or word (names of models, lists) are not read, but for recompute.
void apply(const Change& change, Draft& draft);

/// What turns one layout into another, data parallelism said too. A schedule that the chunks of both give by default
/// goes with them.
Change change_between(const Layout& from, const Layout& to);

/// Every variable of a layout, stated for a run whose other fields `base` has: of search_base().
Change statement_of(const Layout& layout, const Draft& base);

/// "full:4", "none", of a list of modules "core_attn+mlp".
std::string recompute_words(const Recompute& recompute);
/// The same backwards, a list of modules apart.
std::optional<Recompute> parse_recompute(std::string_view words);
/// The number behind "full:" or another prefix, from 1 to most_layers; nothing where the text is not that.
std::optional<int> count_after(std::string_view text, std::string_view prefix);

}  // namespace shardplan::plan
