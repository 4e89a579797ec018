// Schedules by formula, where a formula is exact: the search's fast path. Each is tested against the simulation.
#pragma once

#include <optional>

#include "shardplan/schedule/shape.hpp"
#include "shardplan/schedule/simulate.hpp"

namespace shardplan::schedule {

/// Times of one microbatch on one virtual stage, the same for all, and no communication.
struct UniformTimes {
  double forward = 1;
  double backward = 1;
  double weight = 1;
  double alpha = 1;
};

/// The makespan where a closed form is exact for these times; nothing otherwise.
///   naive: m (sum T + 2 (p - 1) c).  gpipe: flow shop of identical jobs, uneven stages too (overlap).
///   1f1b, interleaved, bfs, zb-*, dualpipe*: equal stages without communication, within the ranges of
///   uniform_makespan.
std::optional<double> makespan_closed_form(const PipelineSpec& spec) noexcept;
std::optional<double> uniform_makespan(const Shape& shape, const UniformTimes& times) noexcept;

/// Work of one rank: the sum of its ops.
double busy_closed_form(const PipelineSpec& spec, int rank) noexcept;

/// No order of this kind of schedule can be faster: for every rank, its own work (and sends, where exposed), what must
/// run before its first op and after its last.
double makespan_lower_bound(const PipelineSpec& spec) noexcept;

/// Most forwards that a rank holds at once, in chunks, with retain = 1; nothing where only the op list tells.
std::optional<int> peak_inflight_closed_form(const Shape& shape, int rank) noexcept;

/// Bubble share of the makespan with equal stages, F:B:W = 1:1:1 and no communication. Simulates, in the buffers given,
/// where no closed form is exact.
double ideal_bubble_fraction(const Shape& shape, PipelineWorkspace& workspace, PipelineResult& result) noexcept;
double ideal_bubble_fraction(ScheduleKind kind, int p, int m, int v);

}  // namespace shardplan::schedule
