#include "shardplan/plan/estimate.hpp"

#include "shardplan/physics/parameters.hpp"
#include "shardplan/plan/workspace.hpp"

namespace shardplan {
void estimate(const Run& run, EstimateWorkspace& workspace, Estimate& out) noexcept {
  out.model = count_parameters(run.model);
  out.model.padded_vocab_size = run.padded_vocab();
  if (run.training.peft.active()) {
    out.model.by_part.adapters = count_adapters(run);
    out.model.trainable_parameters = out.model.by_part.adapters;
  }
  build_units(run, workspace);
  build_stages(run, workspace);
  run_pipeline(run, workspace, out);
  estimate_communication(run, workspace, out);
  estimate_memory(run, workspace, out);
  estimate_time(run, workspace, out);
  estimate_throughput(run, workspace, out);
}

void estimate(const Run& run, Estimate& out) noexcept {
  EstimateWorkspace workspace;
  estimate(run, workspace, out);
}

}  // namespace shardplan
