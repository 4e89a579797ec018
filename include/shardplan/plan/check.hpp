// What `check` found in each run file, as data: its reports only print it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/core/names.hpp"
#include "shardplan/plan/requirements.hpp"

namespace shardplan::plan {

enum class CheckStatus : std::uint8_t { pass, fail, error };

}  // namespace shardplan::plan

namespace shardplan {
template <>
inline constexpr std::array<std::string_view, 3> names_of<plan::CheckStatus> = {"pass", "fail", "error"};
}  // namespace shardplan

namespace shardplan::plan {

/// The figures of a run that a change of its file may move. Prices and hours are per 1e12 tokens.
struct Figures {
  std::int64_t capacity_bytes = 0;
  std::int64_t peak_bytes = 0;
  std::int64_t reserved_bytes = 0;
  std::int64_t headroom_bytes = 0;
  bool fits = false;
  double step_s = 0;
  double tokens_per_s_per_gpu = 0;
  double mfu = 0;
  double bubble_fraction = 0;
  double gpu_hours = 0;
  std::optional<double> price;
};
Figures figures_of(const Estimate& estimate) noexcept;

/// A requirement, judged, and where the file states it (else what stands around that place); 0: not known.
struct Checked {
  Verdict verdict;
  int line = 0;
  int column = 0;
  std::string sentence;  ///< of one that is missed, with units: "MFU 42.7% < 50%"
};

struct CheckedRun {
  std::string path;  ///< as the user gave it
  CheckStatus status = CheckStatus::pass;
  Diagnostics problems;  ///< of an input that is wrong; then there is nothing else
  std::vector<Checked> requirements;
  Figures figures;
  std::optional<Figures> baseline;
  bool unknown_baseline = false;  ///< the baseline has this run, but as a file that is no legal run
  bool compared = false;          ///< a baseline was asked for: without figures of it the run is new
  std::string over;        ///< of a run that does not fit: "needs 87.9 of 79.65 GiB, 8.2 over (stage 0, backward)"
  std::string fix;         ///< flags that make it pass; empty where there are none, or none are needed
  std::string fix_effect;  ///< "frees 40.0 GiB"
};

/// The file that a problem of a run stands in: its own, or that of the model or cluster that it names.
const std::string& place_of(const CheckedRun& run, const Diagnostic& problem) noexcept;

struct CheckCounts {
  std::size_t passed = 0;
  std::size_t failed = 0;
  std::size_t errors = 0;
  std::size_t total() const noexcept { return passed + failed + errors; }
};
CheckCounts count(std::span<const CheckedRun> runs) noexcept;

/// How bad a run is, for an order with the worst first: input errors, then what does not fit, then what else is missed.
double badness(const CheckedRun& run) noexcept;

}  // namespace shardplan::plan
