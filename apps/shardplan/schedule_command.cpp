// `shardplan schedule`: the timeline of a pipeline schedule, drawn and as data.
#include <fmt/format.h>

#include <array>
#include <iterator>

#include "command.hpp"
#include "schedule_compare.hpp"
#include "schedule_step.hpp"
#include "shardplan/core/number_text.hpp"
#include "shardplan/io/chrome_trace.hpp"
#include "shardplan/io/schedule_spec.hpp"
#include "shardplan/report/timeline.hpp"

namespace shardplan::cli {
namespace {

constexpr std::array schedule_flags = {
    Flag{"spec", "", ValueKind::text, FlagGroup::command, "FILE|-", "a schedule with given times: p, m, F, B, W",
         "file times"},
    Flag{"from", "", ValueKind::number, FlagGroup::command, "S", "draw from here (seconds, or the spec's unit)",
         "start"},
    Flag{"to", "", ValueKind::number, FlagGroup::command, "S", "to here", "end until"},
    Flag{"compare", "", ValueKind::none, FlagGroup::command, "", "every legal schedule side by side", "all", "true"},
};
constexpr std::array<std::string_view, 2> pictures = {"svg", "trace"};

/// A time of 0 or more; 0 where the flag is not given.
double time_of(const Arguments& arguments, std::string_view flag, Diagnostics& problems) {
  const std::optional<std::string_view> text = arguments.value(flag);
  if (!text) return 0;
  const double value = double_from_chars(*text).value_or(-1);
  if (value >= 0 && value <= 1e15) return value;
  const Outcome wrong = usage_problem(fmt::format("--{}: \"{}\" is not a time of 0 or more", flag, *text));
  problems.insert(problems.end(), wrong.problems.begin(), wrong.problems.end());
  return 0;
}

Diagnostics simulate_step(const Arguments& arguments, SimulatedStep& step) {
  const std::optional<std::string_view> spec = arguments.value("spec");
  const bool has_run = !arguments.words.empty() || arguments.has("model");
  if (spec) {
    for (const GivenFlag& given : arguments.flags) {
      if (!has_run && given.flag->pointer.empty() && given.flag->name != "set") continue;
      return usage_problem("--spec holds the whole schedule: it goes without a run and without its flags").problems;
    }
    return step_of_spec(std::string(*spec), step);
  }
  return has_run ? step_of_run(arguments, step) : step_of_unit_times(arguments, step);
}

/// One op a row.
std::string ops_csv(const schedule::StepView& step) {
  std::string out = "stage,op,start,end\n";
  for (int rank = 0; rank < step.ranks(); ++rank) {
    std::size_t at = step.first_op(rank);
    schedule::for_each_op(step.program, rank, [&](const schedule::Op& op) {
      fmt::format_to(std::back_inserter(out), "{},{},{},{}\n", rank, io::op_name(op), step.timeline.start[at],
                     step.timeline.end[at]);
      ++at;
    });
  }
  return out;
}

std::string table_text(const report::Table& table, const OutputStyle& style) {
  switch (style.format) {
    case Format::markdown: return table.markdown();
    case Format::csv: return table.csv();
    default: return table.text(style.page);
  }
}

Outcome compare(const SimulatedStep& step, const OutputStyle& style, const report::TimelineOptions& options) {
  Outcome outcome;
  const bool data = style.format == Format::csv;
  if (step.seconds) {
    outcome.result = table_text(compare_schedules(step.run.draft, step.run.run, style.page.units, data), style);
    return outcome;
  }
  const auto times = rank_times(step.spec);
  if (!times) return usage_problem("--compare needs stages that are alike, or a run");
  const schedule::Shape& shape = step.spec.shape;
  const auto all = schedule::legal_alternatives(shape.p, shape.m, shape.v, *times, shape.kind);
  outcome.result = table_text(report::alternatives_table(all, shape.kind, options, data), style);
  return outcome;
}

std::string draw(const SimulatedStep& step, const OutputStyle& style, const report::TimelineOptions& options) {
  std::vector<report::Text> lines = report::timeline_lines(step.view(), options);
  const auto times = rank_times(step.spec);
  // Of a run, other schedules are another estimate: --compare makes it.
  if (times && !style.quiet && !step.seconds) {
    const schedule::Shape& shape = step.spec.shape;
    const auto all = schedule::legal_alternatives(shape.p, shape.m, shape.v, *times, shape.kind);
    for (report::Text& line : report::next_lines(step.view(), all, options)) lines.push_back(std::move(line));
  }
  const std::string text = report::render(lines, options.style);
  return style.format == Format::markdown ? "```text\n" + text + "```\n" : text;
}

/// Flags that would go unheard.
Diagnostics check_flags(const Arguments& arguments, const OutputStyle& style) {
  const bool compares = arguments.has("compare");
  const bool pictured = !style.picture.empty();
  if (compares && (style.format == Format::json || pictured)) {
    return usage_problem("--compare is a table: text, markdown or csv").problems;
  }
  if (style.quiet && (compares || pictured)) {
    return usage_problem(fmt::format("-q: {} has no first line that answers for the others",
                                     compares ? std::string_view("--compare") : style.picture))
        .problems;
  }
  const bool data = style.format == Format::json || style.format == Format::csv || style.picture == "trace";
  for (const std::string_view flag : {"from", "to"}) {
    if (!arguments.has(flag) || !(compares || data)) continue;
    return usage_problem(fmt::format("--{} is a part of the drawing; {}", flag,
                                     compares ? "--compare draws nothing" : "data are always the whole step"))
        .problems;
  }
  return {};
}

Outcome run_schedule(const Arguments& arguments, const OutputStyle& style) {
  Outcome outcome;
  outcome.problems = check_flags(arguments, style);
  if (!outcome.problems.empty()) return outcome;
  report::TimelineOptions options;
  options.style = style.page;
  options.quiet = style.quiet;
  options.from = time_of(arguments, "from", outcome.problems);
  options.to = time_of(arguments, "to", outcome.problems);
  if (arguments.has("to") && options.to <= options.from && outcome.problems.empty()) {
    outcome.problems = usage_problem("--to must be later than --from").problems;
  }
  if (!outcome.problems.empty()) return outcome;
  SimulatedStep step;
  outcome.problems = simulate_step(arguments, step);
  if (!outcome.problems.empty()) return outcome;
  options.seconds = step.seconds;
  options.from_spec = arguments.has("spec");
  if (options.from >= step.result.makespan && options.from > 0) {
    return usage_problem(fmt::format("--from {}: the step ends at {:.6g}", options.from, step.result.makespan));
  }

  if (arguments.has("compare")) {
    outcome = compare(step, style, options);
  } else if (style.picture == "svg") {
    outcome.result = report::timeline_svg(step.view(), options);
  } else if (style.picture == "trace") {
    outcome.result = io::chrome_trace(step.view(), step.seconds ? 1e6 : 1.0, step.title);
  } else if (style.format == Format::json) {
    outcome.result = io::schedule_json(step.result, step.workspace.program, step.timeline);
  } else if (style.format == Format::csv) {
    outcome.result = ops_csv(step.view());
  } else {
    outcome.result = draw(step, style, options);
  }
  outcome.notes = std::move(step.run.notes);
  outcome.warnings = std::move(step.run.warnings);
  return outcome;
}

}  // namespace

Command schedule_command() {
  Command command;
  command.name = "schedule";
  command.purpose = Purpose::ask;
  command.arguments = "[RUN.json]";
  command.summary = "The pipeline timeline: drawn, as a picture, as a trace for Perfetto, and as data.";
  command.examples = {
      "shardplan schedule --schedule zb-h1 --pp 4 --microbatches 8",
      "shardplan schedule run.json --format trace -o step.json",
      R"(echo '{"schedule":"1f1b","p":4,"m":8,"F":1,"B":1,"W":1}' | shardplan schedule --spec - --json)"};
  command.flags = {schedule_flags, run_flags(), output_flags()};
  command.pictures = pictures;
  command.most_words = 1;
  command.run = run_schedule;
  return command;
}

}  // namespace shardplan::cli
