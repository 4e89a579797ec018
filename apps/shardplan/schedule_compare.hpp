// `shardplan schedule --compare`: a run under every schedule that is legal for it.
#pragma once

#include "command.hpp"
#include "shardplan/plan/resolve.hpp"
#include "shardplan/report/table.hpp"

namespace shardplan::cli {

/// Each legal schedule estimated with everything else as the run states it: bubble, activations held, memory, step
/// time. Interleaved and bfs have the run's chunks per rank (2 where it has one).
report::Table compare_schedules(const plan::Draft& draft, const Run& run, report::Units units, bool data);

}  // namespace shardplan::cli
