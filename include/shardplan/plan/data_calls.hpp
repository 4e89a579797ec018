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

template <class N>
struct DataCallOf {
  std::string_view name;
  Collective op = Collective::all_reduce;
  GroupKind group = GroupKind::data;
  RankGroup ranks;
  Payload payload;
  N bytes{};          ///< of the payload: the whole tensor over its group, per pass over all units
  double passes = 1;  ///< a step
  double units = 1;   ///< calls a pass
  bool overlaps = true;
  double hidden = 0.9;
  Hides hides = Hides::behind_last_backward;

  N seconds{};  ///< a step, all passes
  N exposed{};  ///< of it, what the step waits for
};
using DataCall = DataCallOf<double>;

/// What data parallelism sends for one stage: at most a dozen calls.
template <class N>
using DataCallsOf = FixedList<DataCallOf<N>, 16>;
using DataCalls = DataCallsOf<double>;

/// Gradients, gathered weights, tied embeddings, replicas: every data-parallel collective of a stage.
void stage_calls(const Run& run, const EstimateWorkspace& w, const Stage& stage, DataCalls& calls) noexcept;

/// Whether a call is made once a layer and microbatch, not once a step.
constexpr bool in_each_pass(Hides hides) noexcept {
  return hides == Hides::behind_each_forward || hides == Hides::behind_each_backward;
}

}  // namespace shardplan
