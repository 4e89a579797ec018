// Why a layout is not the best one: too much memory, or which parts of the step are longer.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/plan/search.hpp"

namespace shardplan::plan {

/// Parts of a step; they sum to it. Seconds.
struct StepTerm {
  std::string_view name;
  double best_s = 0;
  double other_s = 0;
};
inline constexpr std::size_t step_term_count = 13;

/// One layout beside the best one.
struct WhyNot {
  enum class Verdict : std::uint8_t { illegal, does_not_fit, slower, equal, faster };

  std::string change;  ///< from the best one, as flags: "--tp 2 --dp 16"
  Verdict verdict = Verdict::slower;
  std::string reason;           ///< "14.5% slower: TP exchange 14% -> 26% of the step"; of an illegal one the rule
  std::int64_t over_bytes = 0;  ///< what it lacks on the card; 0 where that fits
  double step_s = 0;            ///< as if it fitted; 0 where illegal
  std::array<StepTerm, step_term_count> terms{};
  Run run;  ///< resolved; not of an illegal one
  Estimate estimate;
};

/// Compares two estimated runs. `change` says how the other one differs.
WhyNot why_not(const Run& best_run, const Estimate& best, Run other_run, Estimate other, std::string change);

}  // namespace shardplan::plan
