// The figures of an estimate by name: what sweep and compare show and check sets beside a baseline.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/core/run.hpp"
#include "shardplan/plan/estimate.hpp"

namespace shardplan::plan {

/// How a figure is read and printed.
enum class Quantity : std::uint8_t { bytes, seconds, fraction, rate, count, amount };

/// One figure. `better`: 1 where more is better, -1 where less is, 0 where neither.
struct ResultField {
  std::string_view word;    ///< as typed after --show: "mfu"
  std::string_view others;  ///< words that mean it too, separated by spaces
  std::string_view path;    ///< JSON pointer in `estimate --json`; empty: no member of its own
  std::string_view head;    ///< column head
  Quantity quantity = Quantity::count;
  int better = 0;
  double (*value)(const Run& run, const Estimate& estimate) = nullptr;  ///< NaN where it is not known
};

/// All of them, in the order in which they are shown.
std::span<const ResultField> result_fields() noexcept;

/// The first of them: those that are mostly asked for. The others are found by their paths too.
std::span<const ResultField> usual_results() noexcept;

/// By word, other word, JSON pointer or dotted path; nullptr when there is none.
const ResultField* find_result(std::string_view word) noexcept;

/// What a figure is called in data: its member of `estimate --json` where it has one ("peak_bytes").
std::string key_of(const ResultField& field);

/// The words and paths that find_result knows, for "did you mean".
std::vector<std::string_view> result_words();

}  // namespace shardplan::plan
