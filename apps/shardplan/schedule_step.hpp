// The step that `shardplan schedule` shows: of a spec, of a run, or of unit times.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command.hpp"
#include "shardplan/io/run_file.hpp"
#include "shardplan/schedule/step.hpp"

namespace shardplan::cli {

/// A simulated step with everything that it views.
struct SimulatedStep {
  std::vector<double> forward, backward, weight, activation_bytes;
  schedule::PipelineSpec spec;
  schedule::PipelineWorkspace workspace;
  schedule::PipelineResult result;
  schedule::Timeline timeline;
  bool seconds = false;  ///< of a run: times are seconds and activations bytes
  std::string title;
  io::ReadRun run;  ///< where it is of a run

  SimulatedStep() = default;
  SimulatedStep(const SimulatedStep&) = delete;
  SimulatedStep& operator=(const SimulatedStep&) = delete;

  schedule::StepView view() const noexcept { return {spec, result, workspace.program, timeline}; }
};

/// Each fills `step` and returns what is wrong.
Diagnostics step_of_spec(const std::string& path, SimulatedStep& step);
/// RUN.json, flags, or both: stage times of its estimate.
Diagnostics step_of_run(const Arguments& arguments, SimulatedStep& step);
/// F = B = W = 1 from --schedule (1f1b), --pp (4), --vpp (1, or 2 where the schedule has chunks), --microbatches (2
/// pp).
Diagnostics step_of_unit_times(const Arguments& arguments, SimulatedStep& step);

/// The times of one whole rank, where all ranks are alike.
std::optional<schedule::RankTimes> rank_times(const schedule::PipelineSpec& spec);

}  // namespace shardplan::cli
