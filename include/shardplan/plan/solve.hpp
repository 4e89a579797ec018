// The largest, or smallest, value of one field that still holds.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/plan/estimate.hpp"

namespace shardplan::plan {

/// What one value of the field gives.
enum class Holds : std::uint8_t {
  illegal,   ///< no run at all: passed over
  no,        ///< more of the field never makes it hold: the card is full, the step too long
  not_here,  ///< something else is missed, which a smaller or a larger value may meet
  yes
};

/// The values to choose from: `values` where it is not empty, ascending; else first, first + step ... up to last.
struct SolveValues {
  std::vector<std::int64_t> values;
  std::int64_t first = 1;
  std::int64_t step = 1;
  std::int64_t last = 1;

  std::int64_t count() const noexcept;
  std::int64_t at(std::int64_t index) const noexcept;
};

struct Solution {
  std::optional<std::int64_t> value;  ///< nothing: none of them holds
  /// The next legal value beyond, which does not hold; nothing where the end was reached. Where none holds, the legal
  /// value at which the search began.
  std::optional<std::int64_t> next;
  std::int64_t tried = 0;
  bool scanned = false;  ///< every value was looked at: the field is not monotone, or some values were illegal
};

/// `monotone`: beyond a value that gives `no` every value does, so that halving finds the last one before, and from
/// there the search goes back value by value to the first that holds. What turns out illegal on the way, or a field
/// that is not monotone, makes it look at every value. `largest`: else the smallest that holds. `test` may be called
/// twice for a value.
Solution solve(const SolveValues& values, bool largest, bool monotone, const std::function<Holds(std::int64_t)>& test);

/// The answer after a change of the run besides the field.
struct Otherwise {
  std::string flags;                  ///< to paste: "--recompute none"
  std::optional<std::int64_t> value;  ///< nothing: none holds
};

/// The answer to `shardplan solve`, as data.
struct SolveAnswer {
  std::string field;  ///< JSON pointer
  std::string word;   ///< its last token
  bool largest = true;
  Solution solution;
  std::int64_t step = 1;
  bool listed = false;  ///< the values are a list, such as divisors or stages
  std::string limit;    ///< what ends the values, where the end was reached: "max_position_embeddings"
  Run run;              ///< at the value, or at `next` where none holds
  Estimate estimate;
  std::string run_json;
  Warnings warnings;
  std::optional<Run> next_run;
  Estimate next_estimate;
  std::string why;  ///< what the next value breaks: "1.9 GiB over"
  /// Where a value holds under recomputation: without it. Where none does: after changes with which one does.
  std::vector<Otherwise> otherwise;
};

/// What an estimate misses of fitting and of its requirements, in words; empty where nothing.
std::string missed(const Run& run, const Estimate& estimate);

}  // namespace shardplan::plan
