// Which data-parallel collectives a step makes, and how much each moves.
#include "shardplan/plan/data_calls.hpp"

#include "shardplan/plan/data_call_formulas.hpp"

namespace shardplan {

void stage_calls(const Run& run, const EstimateWorkspace& w, const Stage& stage, DataCalls& calls) noexcept {
  list_calls(NoTrace{}, run, w, stage, calls);
}

}  // namespace shardplan
