// The best layout of a run over the whole space of legal ones, exactly.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "shardplan/core/names.hpp"
#include "shardplan/plan/estimate.hpp"
#include "shardplan/plan/requirements.hpp"
#include "shardplan/plan/search_space.hpp"

namespace shardplan::plan {

/// What is best. Ties: for throughput and price less reserved memory, for headroom and gpus a shorter step; then
/// order_of.
enum class Objective : std::uint8_t {
  throughput,  ///< most tokens/s
  price,       ///< fewest GPU-hours per token, which is the lowest price
  headroom,    ///< most free memory
  gpus         ///< fewest GPUs that hold it
};

/// A layout with its numbers, bit for bit those of estimate().
struct Found {
  Layout layout;
  std::int64_t peak_bytes = 0;
  std::int64_t reserved_bytes = 0;  ///< where headroom is least
  std::int64_t headroom_bytes = 0;
  double step_s = 0;
  bool pareto = false;  ///< nothing that was compared is at least as good in each of step time, memory, GPUs and price
};

/// What a progress report knows.
struct SearchProgress {
  std::int64_t done = 0;  ///< layouts that were estimated or cut
  double share = 0;       ///< of the work that is done, by numbers of GPUs and nodes
  double elapsed_s = 0;
  std::optional<Found> best;
};

struct SearchOptions {
  Objective objective = Objective::throughput;
  Requirements require;  ///< what a layout has to meet besides fitting
  std::size_t top = 10;  ///< how many to list
  bool pareto = false;   ///< the whole front, too
  /// Where given, how many layouts are better is counted: a search cut less.
  const Run* rank_of = nullptr;
  int threads = 1;
  double most_s = 0;                                    ///< stops then; 0: never
  const std::atomic<bool>* stop = nullptr;              ///< stops when true
  std::function<void(const SearchProgress&)> progress;  ///< called from one thread, about five times a second
};

/// By how much layouts do not fit.
struct ExcessCounts {
  std::int64_t tenth = 0;  ///< up to a tenth of the card
  std::int64_t whole = 0;  ///< beyond that, up to as much as it has
  std::int64_t more = 0;   ///< beyond that
  std::int64_t host = 0;   ///< the card holds them, the host or the NVMe does not
};

/// Counts of layouts; estimated + cut_by_bound = layouts, fit + does_not_fit + misses = estimated.
struct SearchCounts {
  std::int64_t layouts = 0;       ///< legal ones
  std::int64_t estimated = 0;     ///< exact memory verdict; step time exact or bounded from below
  std::int64_t simulated = 0;     ///< of them, step time exact
  std::int64_t cut_by_bound = 0;  ///< a bound on a whole group showed that none of it is wanted
  std::int64_t does_not_fit = 0;
  ExcessCounts excess;  ///< sums to does_not_fit
  std::int64_t fit = 0;
  std::int64_t misses = 0;           ///< fit, but not the headroom that is required
  std::int64_t without_overlap = 0;  ///< layouts when those that differ in overlap options alone count once
  RuleCounts illegal{};
};

struct SearchResult {
  SearchCounts counts;
  /// Best first. Of layouts that differ in overlap options alone the one with most of them on stands for all: none of
  /// the others is faster (but for the last bit of a sum), all need the same memory.
  std::vector<Found> best;
  std::vector<Found> pareto;  ///< by step time
  /// Where nothing fits: what lacks least. Where what fits does not meet what is required: the fastest of it, or where
  /// all of it leaves too little free that with the most.
  std::optional<Found> nearest;
  std::int64_t rank = 0;  ///< of options.rank_of: 1 + how many are better; 0: not counted
  double wall_s = 0;
  int threads = 1;
  bool complete = true;  ///< false: stopped
};

/// Searches the space. `base` states everything that is not a variable (framework included) and is resolved with any
/// layout in `run`; fields of variables in it are ignored. The result does not depend on the number of threads, but for
/// wall_s.
SearchResult search(const Draft& base, const Run& run, const SearchSpace& space, const SearchOptions& options);

/// What search() knows of a layout before it simulates it: no step of the layout is shorter. Seconds.
struct StepBounds {
  double node_s = 0;    ///< of all layouts that fold the layers so
  double stages_s = 0;  ///< of all that cut them into these stages
};
/// The bounds of a run's own layout. `base`: of search_base().
StepBounds step_bounds(const Draft& base, const Run& run);

/// The space of one layout alone: that of a run.
SearchSpace space_of(const Run& run);

/// Better first: what search() sorts by.
struct SearchKey {
  double first = 0;
  double second = 0;
  friend auto operator<=>(const SearchKey&, const SearchKey&) = default;
};
SearchKey key_of(Objective objective, const Found& found) noexcept;

}  // namespace shardplan::plan

namespace shardplan {
template <>
inline constexpr std::array<std::string_view, 4> names_of<plan::Objective> = {"throughput", "price", "headroom",
                                                                              "gpus"};
}  // namespace shardplan
