#include "schedule_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "run_input.hpp"
#include "shardplan/core/number_text.hpp"
#include "shardplan/io/schedule_spec.hpp"
#include "shardplan/io/suggest.hpp"
#include "shardplan/plan/workspace.hpp"
#include "shardplan/schedule/legality.hpp"

namespace shardplan::cli {
namespace {

using schedule::ShapeField;

Diagnostics problem(std::string message, std::string way_out = {}) {
  return usage_problem(std::move(message), std::move(way_out)).problems;
}

void simulate(SimulatedStep& step) {
  schedule::simulate(step.spec, step.workspace, step.result, step.timeline);
  const schedule::Shape& shape = step.spec.shape;
  step.title = fmt::format("{}, {} stages, {} microbatches", name(shape.kind), shape.p, shape.m);
}

std::string_view flag_of(ShapeField field) {
  switch (field) {
    case ShapeField::p: return "--pp";
    case ShapeField::v: return "--vpp";
    default: return "--microbatches";
  }
}

/// A flag's whole number of 1 or more; `otherwise` where it is not given.
int count_of(const Arguments& arguments, std::string_view flag, int otherwise, Diagnostics& problems) {
  const std::optional<std::string_view> text = arguments.value(flag);
  if (!text) return otherwise;
  const int value = number_of<int>(*text).value_or(0);
  if (value >= 1 && value <= io::max_schedule_ops) return value;
  for (Diagnostic& p :
       problem(fmt::format("--{}: \"{}\" is not a whole number from 1 to {}", flag, *text, io::max_schedule_ops))) {
    problems.push_back(std::move(p));
  }
  return otherwise;
}

}  // namespace

Diagnostics step_of_spec(const std::string& path, SimulatedStep& step) {
  Result<io::JsonText> text = io::read_json(path);
  if (!text.ok()) return std::move(text.problems);
  Result<io::ScheduleSpec> read = io::read_schedule_spec(text.value);
  if (!read.ok()) return std::move(read.problems);
  step.forward = std::move(read.value.forward);
  step.backward = std::move(read.value.backward);
  step.weight = std::move(read.value.weight);
  step.spec = read.value.view();
  step.spec.forward = step.forward;
  step.spec.backward = step.backward;
  step.spec.weight = step.weight;
  simulate(step);
  return {};
}

Diagnostics step_of_run(const Arguments& arguments, SimulatedStep& step) {
  step.run = read_run_of(arguments);
  if (!step.run.ok()) return step.run.problems;
  const Run& run = step.run.run;
  const double passes =
      3.0 * static_cast<double>(run.microbatches()) * run.parallel.pipeline * run.parallel.virtual_pipeline;
  if (passes > static_cast<double>(io::max_schedule_ops)) {
    return problem(
        fmt::format("the step has {:.0f} passes, more than the {} that are drawn", passes, io::max_schedule_ops),
        "fewer microbatches show the same steady state: --microbatches M");
  }
  EstimateWorkspace workspace;
  Estimate result;
  estimate(run, workspace, result);
  step.forward = workspace.forward;
  step.backward = workspace.backward;
  step.weight = workspace.weight;
  step.activation_bytes = workspace.activation;
  step.spec = workspace.spec;
  step.spec.forward = step.forward;
  step.spec.backward = step.backward;
  step.spec.weight = step.weight;
  step.spec.activation_bytes = step.activation_bytes;
  step.seconds = true;
  simulate(step);
  return {};
}

Diagnostics step_of_unit_times(const Arguments& arguments, SimulatedStep& step) {
  Diagnostics problems;
  constexpr std::array<std::string_view, 4> read = {"schedule", "pp", "vpp", "microbatches"};
  for (const GivenFlag& given : arguments.flags) {
    const bool of_run = !given.flag->pointer.empty() || given.flag->kind == ValueKind::any_field;
    if (!of_run || std::find(read.begin(), read.end(), given.flag->name) != read.end()) continue;
    for (Diagnostic& p : problem(fmt::format("--{} is a flag of a run, and there is none", given.flag->name),
                                 "give RUN.json or --model; without a run --schedule, --pp, --vpp and --microbatches "
                                 "say what is drawn")) {
      problems.push_back(std::move(p));
    }
  }
  schedule::Shape shape;
  if (const auto word = arguments.value("schedule")) {
    if (const auto kind = parse_name<ScheduleKind>(*word)) {
      shape.kind = *kind;
    } else {
      const std::vector<std::string_view> words(names_of<ScheduleKind>.begin(), names_of<ScheduleKind>.end());
      problems = problem(
          fmt::format("--schedule: \"{}\" is not {}{}", *word, io::list_of(words), io::did_you_mean(*word, words)));
    }
  }
  shape.p = count_of(arguments, "pp", 4, problems);
  shape.m = count_of(arguments, "microbatches", std::min(2 * shape.p, 1 << 20), problems);
  shape.v = count_of(arguments, "vpp", schedule::least_chunks(shape.kind), problems);
  if (!problems.empty()) return problems;
  if (const auto wrong = schedule::check_schedule(shape)) {
    const std::string nearest = wrong->nearest_text();
    return problem(fmt::format("{} {}: {}", flag_of(wrong->field), wrong->value, wrong->rule),
                   nearest.empty() ? "" : fmt::format("nearest: {} {}", flag_of(wrong->field), nearest));
  }
  if (3.0 * shape.p * shape.v * shape.m > static_cast<double>(io::max_schedule_ops)) {
    return problem(fmt::format("more than {} passes are not drawn", io::max_schedule_ops), "fewer --microbatches");
  }
  const auto stages = static_cast<std::size_t>(shape.virtual_stages());
  step.forward.assign(stages, 1.0);
  step.spec.shape = shape;
  step.spec.forward = step.spec.backward = step.spec.weight = step.forward;
  simulate(step);
  return {};
}

std::optional<schedule::RankTimes> rank_times(const schedule::PipelineSpec& spec) {
  const auto all_equal = [](std::span<const double> values) {
    return std::all_of(values.begin(), values.end(), [&](double value) { return value == values.front(); });
  };
  if (!all_equal(spec.forward) || !all_equal(spec.backward) || !all_equal(spec.weight)) return std::nullopt;
  const double v = spec.shape.v;
  return schedule::RankTimes{v * spec.forward.front(), v * spec.backward.front(), v * spec.weight.front(), spec.p2p,
                             spec.p2p_mode};
}

}  // namespace shardplan::cli
