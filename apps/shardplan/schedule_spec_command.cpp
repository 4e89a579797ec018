#include "schedule_spec_command.hpp"

#include "shardplan/io/json_text.hpp"
#include "shardplan/io/schedule_spec.hpp"
#include "shardplan/schedule/simulate.hpp"

namespace shardplan::cli {
namespace {

Outcome rejected(Diagnostics problems) {
  Outcome outcome;
  outcome.status = exit_input;
  outcome.problems = std::move(problems);
  return outcome;
}

}  // namespace

Outcome schedule_spec(const std::string& path) {
  Result<io::JsonText> text = io::read_json(path);
  if (!text.ok()) return rejected(std::move(text.problems));
  Result<io::ScheduleSpec> spec = io::read_schedule_spec(text.value);
  if (!spec.ok()) return rejected(std::move(spec.problems));

  schedule::PipelineWorkspace workspace;
  schedule::PipelineResult result;
  schedule::Timeline timeline;
  schedule::simulate(spec.value.view(), workspace, result, timeline);
  Outcome outcome;
  outcome.result = io::schedule_json(result, workspace.program, timeline);
  return outcome;
}

}  // namespace shardplan::cli
