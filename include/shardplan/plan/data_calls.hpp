// What data parallelism sends for one stage, from sharding rules to collectives.
#pragma once

#include <string_view>

#include "shardplan/plan/data_volumes.hpp"
#include "shardplan/plan/workspace.hpp"

namespace shardplan {

/// How a data-parallel collective relates to the step's compute.
enum class Hides : std::uint8_t {
  behind_last_backward,  ///< once a step, behind one microbatch's backward
  behind_first_forward,  ///< once a step, behind one microbatch's forward
  behind_each_forward,   ///< per layer and microbatch, one unit ahead
  behind_each_backward   ///< the same in the backward pass
};

struct DataCall {
  std::string_view name;
  Collective op = Collective::all_reduce;
  GroupKind group = GroupKind::data;
  RankGroup ranks;
  Payload payload;
  double bytes = 0;   ///< of the payload: the whole tensor over its group, per pass over all units
  double passes = 1;  ///< a step
  double units = 1;   ///< calls a pass
  bool overlaps = true;
  double hidden = 0.9;
  Hides hides = Hides::behind_last_backward;

  double seconds = 0;  ///< a step, all passes
  double exposed = 0;  ///< of it, what the step waits for
};

/// What data parallelism sends for one stage: at most a dozen calls.
using DataCalls = FixedList<DataCall, 16>;

/// Gradients, gathered weights, tied embeddings, replicas: every data-parallel collective of a stage.
void stage_calls(const Run& run, const EstimateWorkspace& w, const Stage& stage, DataCalls& calls) noexcept;

}  // namespace shardplan
