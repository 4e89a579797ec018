// Schedules by formula, where a formula is exact: the search's fast path. Each is tested against the simulation.
#pragma once

#include <optional>

#include "shardplan/schedule/shape.hpp"
#include "shardplan/schedule/simulate.hpp"

namespace shardplan::schedule {

/// The makespan, where a closed form is exact for these times; nothing otherwise.
std::optional<double> makespan_closed_form(const PipelineSpec& spec) noexcept;

/// No schedule of this kind can be faster: for every rank, its own work and what must come before and after it.
double makespan_lower_bound(const PipelineSpec& spec) noexcept;

/// Most forwards held at once by a rank, in chunks, retain = 1; nothing where only the op list tells.
std::optional<int> peak_inflight_closed_form(const Shape& shape, int rank) noexcept;

/// Bubble share of the makespan with equal stages, F:B:W = 1:1:1 and no communication. Simulates, in the workspace,
/// where no closed form is exact.
double ideal_bubble_fraction(const Shape& shape, PipelineWorkspace& workspace) noexcept;
double ideal_bubble_fraction(ScheduleKind kind, int p, int m, int v);

}  // namespace shardplan::schedule
