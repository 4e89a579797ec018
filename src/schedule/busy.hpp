// Busy and blocked time of the ranks: counts of the program times durations, so no sum over ops.
#pragma once

#include <algorithm>

#include "shardplan/schedule/simulate.hpp"

namespace shardplan::schedule {

/// How long an F&B pair takes.
inline double pair_time(const PipelineWorkspace::Chunk& forward, const PipelineWorkspace::Chunk& backward,
                        double alpha) noexcept {
  return std::max(forward.f, backward.bw) + alpha * std::min(forward.f, backward.bw);
}

/// Fills busy and exposed_p2p from the workspace's program and the durations of its chunks.
void fold_busy(const PipelineSpec& spec, PipelineWorkspace& w, PipelineResult& result) noexcept;

}  // namespace shardplan::schedule
