// Activations held along the op lists. No times: what a rank holds depends on the order of its ops alone.
#pragma once

#include "shardplan/schedule/simulate.hpp"

namespace shardplan::schedule {

/// Fills peak_inflight, peak_bytes, forward_bytes, backward_bytes and peak_live of all ranks. Costs a few operations
/// per entry of the program, whatever its count: a pattern changes what is held by the same amount each time, so its
/// peaks are in its first or in its last round.
void fold_inflight(const PipelineSpec& spec, PipelineWorkspace& workspace, PipelineResult& result) noexcept;

}  // namespace shardplan::schedule
