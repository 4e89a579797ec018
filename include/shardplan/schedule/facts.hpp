// What each pipeline schedule is: everything that depends on which schedule runs, in one row. A schedule is one file of
// src/schedule, with its row and its order of passes, and a line of core/schedule_kind.hpp. Which frameworks offer it
// stands with them (physics/frameworks/facts.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "shardplan/core/schedule_kind.hpp"

namespace shardplan::schedule {

struct Shape;
struct PipelineSpec;
struct UniformTimes;
class RankWriter;

/// Where the virtual stages lie.
///   loop: rank r holds r, r + p, r + 2p, ... (one chunk: the plain pipeline).
///   vee: rank r holds r and 2p - 1 - r; the turn is on the last rank, both ends are on rank 0.
///   bidirectional: rank r holds r and p - 1 - r, twice the parameters; half of the microbatches run each way.
enum class Placement : std::uint8_t { loop, vee, bidirectional };

/// What `parallel.virtual_pipeline` may be: 1, 2, 2 or more, 1 or more.
enum class Chunks : std::uint8_t { one, two, several, any };

/// Idle share of the makespan with equal stages, F = B = W, no communication and enough microbatches:
/// (p - less)/(passes m + p - less), and (p - less)/p where microbatches run one at a time.
struct IdealBubble {
  int less = 1;
  int passes = 0;      ///< 0: v
  bool always = true;  ///< with few microbatches too
};

struct ScheduleFacts {
  std::string_view summary{};  ///< what it does
  std::string_view needs{};    ///< of p stages, m microbatches, v chunks a rank; empty: nothing
  std::string_view helps{};    ///< why its bubble is smaller than another's
  std::string_view source{};

  Placement placement = Placement::loop;
  Chunks chunks = Chunks::one;
  IdealBubble bubble{};

  bool splits_backward = false;           ///< B and W are separate ops, so that activations live until W
  bool pairs_passes = false;              ///< forwards run together with another microbatch's backward (F&B)
  bool overlaps_expert_exchange = false;  ///< a chunk's exchange of tokens runs beside another's compute
  bool one_at_a_time = false;             ///< a microbatch starts when the one before has come back
  bool in_phases = false;                 ///< all forwards of a chunk first: there is no steady state
  bool in_groups = false;                 ///< chunks take turns after a group of microbatches (Shape::group)
  bool even = false;                      ///< ranks and microbatches are even in number
  int least_microbatches = 0;             ///< for each rank

  /// Writes one rank's order of passes.
  void (*write)(const Shape& shape, int rank, RankWriter& out) = nullptr;
  /// The makespan with equal stages and no communication; nothing where the form is not exact. Seconds.
  std::optional<double> (*makespan)(const Shape& shape, const UniformTimes& times) noexcept = nullptr;
  /// The same of uneven stages, where there is a closed form. Absent: there is none.
  std::optional<double> (*uneven_makespan)(const PipelineSpec& spec) noexcept = nullptr;
  /// How many p2p times the makespan grows by with equal stages, while a message takes no longer than an op.
  std::optional<double> (*waits)(const PipelineSpec& spec) noexcept = nullptr;
  /// Most forwards that a rank holds at once, in chunks; nothing where only the order tells.
  std::optional<int> (*in_flight)(const Shape& shape, int rank) noexcept = nullptr;
};

extern const std::array<const ScheduleFacts*, schedule_count> schedule_table;
inline const ScheduleFacts& facts_of(ScheduleKind kind) noexcept {
  return *schedule_table[static_cast<std::size_t>(kind)];
}

/// Chunks a rank that a schedule has by definition; 0: free.
inline int fixed_chunks(ScheduleKind kind) noexcept {
  const Chunks chunks = facts_of(kind).chunks;
  return chunks == Chunks::one ? 1 : chunks == Chunks::two ? 2 : 0;
}
/// The least number of chunks a rank.
inline int least_chunks(ScheduleKind kind) noexcept {
  const Chunks chunks = facts_of(kind).chunks;
  return chunks == Chunks::one || chunks == Chunks::any ? 1 : 2;
}

/// The ideal bubble over numbers or text.
template <class N>
N ideal_bubble(ScheduleKind kind, N p, N m, N v) {
  const ScheduleFacts& facts = facts_of(kind);
  const double less = facts.bubble.less, passes = facts.bubble.passes;
  if (facts.one_at_a_time) return (p - less) / p;
  const N work = facts.bubble.passes == 0 ? v * m : passes * m;
  return (p - less) / (work + p - less);
}
/// "(p-1)/(3m+p-1)". `chunks`: v is written where it counts.
std::string bubble_text(ScheduleKind kind, bool chunks);
inline std::string bubble_text(ScheduleKind kind) { return bubble_text(kind, facts_of(kind).chunks != Chunks::one); }

}  // namespace shardplan::schedule
