// `shardplan estimate`: what a run needs and how fast it is.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "command.hpp"
#include "explained.hpp"
#include "measured.hpp"
#include "run_input.hpp"
#include "shardplan/advise/next_actions.hpp"
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/estimate_json.hpp"
#include "shardplan/report/advice_text.hpp"
#include "shardplan/report/estimate_text.hpp"
#include "shardplan/report/number.hpp"

namespace shardplan::cli {
namespace {

constexpr std::array estimate_flags = {
    Flag{"detail", "", ValueKind::none, FlagGroup::output, "", "operators, communication, every moment and stage",
         "verbose details", "true"},
    Flag{"measured", "", ValueKind::text, FlagGroup::output, "KEY=N",
         "your tokens_per_s_per_gpu, step_s or tflops_per_gpu: its MFU", "actual measurement"},
    explain_flag,
};

/// The warnings of reading and of the estimate, each once.
Warnings all_warnings(Warnings warnings, const Warnings& more) {
  for (const Warning& warning : more) {
    const auto is_same = [&](const Warning& w) { return w.code == warning.code && w.path == warning.path; };
    if (std::none_of(warnings.begin(), warnings.end(), is_same)) warnings.push_back(warning);
  }
  return warnings;
}

std::string measured_line(const Measurement& measurement, const io::Measured& measured) {
  std::string text = fmt::format(
      "Measured {} {:g}: MFU {} scores in full | {} causal | HFU {} | {:.2f} x the estimate\n", name(measurement.kind),
      measurement.value, report::percent_text(measured.mfu), report::percent_text(measured.mfu_causal),
      report::percent_text(measured.hfu), measured.ratio_to_estimate);
  text += fmt::format("The step of {:.4g} s lies {} the band", measured.step_s, measured.in_band ? "in" : "outside");
  const Suspect& suspect = measured.suspect;
  if (suspect.term.empty()) return text + "; no single term explains the difference\n";
  return text + fmt::format("; most likely off: {}, {:.3g} s estimated, {:.3g} s would explain it\n", suspect.term,
                            suspect.estimated_s, suspect.would_have_to_be_s);
}

Outcome rejected(Diagnostics problems) {
  Outcome outcome;
  outcome.problems = std::move(problems);
  return outcome;
}

/// What the text says beside the estimate: defaults taken, operators, what to do next.
report::EstimateTextOptions text_options(const io::ReadRun& read, const Estimate& result, const EstimateDetail& detail,
                                         const OutputStyle& style, std::vector<std::string>& notes) {
  report::EstimateTextOptions options;
  options.style = style.page;
  options.quiet = style.quiet;
  options.detail = style.detail;
  options.explain_hints = true;
  if (style.detail) options.operators = &detail;
  for (const plan::Field field : plan::defaults_taken(read.draft)) options.defaults.emplace_back(name(field));
  if (!style.quiet) {
    const auto [actions, left_out] = advise::next_actions(read.draft, read.run, result, catalog::builtin_catalog());
    options.actions = report::actions_of(actions, read.run, result, style.page.units);
    if (left_out > 0) {
      notes.push_back(fmt::format("{} more change{} not tried: a step of {} microbatches is long to simulate", left_out,
                                  left_out == 1 ? " was" : "s were", report::count_text(read.run.microbatches())));
    }
  }
  return options;
}

Outcome run_estimate(const Arguments& arguments, const OutputStyle& style) {
  if (style.format == Format::csv && arguments.has("measured")) {
    return usage_problem("--measured has no column in csv", "text, json and markdown show it");
  }
  if (style.format == Format::csv && style.detail) {
    return usage_problem("--detail has no rows in csv", "text, json and markdown show it");
  }
  if (arguments.has("explain") && arguments.has("measured")) {
    return usage_problem("--explain opens one number; it has no place for --measured");
  }
  Result<Measurement> measurement;
  const std::optional<std::string_view> measured_text = arguments.value("measured");
  if (measured_text) measurement = parse_measurement(*measured_text);
  if (!measurement.ok()) return rejected(std::move(measurement.problems));
  io::ReadRun read = read_run_of(arguments);
  if (!read.ok()) return rejected(std::move(read.problems));
  if (const std::optional<std::string_view> term = arguments.value("explain")) {
    Outcome outcome = explained(read.run, *term, style);
    outcome.notes = std::move(read.notes);
    return outcome;
  }

  Estimate result;
  estimate(read.run, result);
  Result<io::Measured> measured;
  if (measured_text) measured = measured_against(measurement.value, read.run, result);
  if (!measured.ok()) return rejected(std::move(measured.problems));
  EstimateDetail detail;
  if (style.detail) detail = estimate_detail(read.run);

  Outcome outcome;
  outcome.status = result.fits ? exit_ok : exit_no;
  outcome.notes = std::move(read.notes);
  outcome.warnings = all_warnings(std::move(read.warnings), warnings_of(read.run, result));
  if (style.format == Format::json) {
    outcome.result = io::estimate_json(read.run, result,
                                       {read.run_json, &outcome.warnings, style.detail ? &detail : nullptr,
                                        measured_text ? &measured.value : nullptr});
    return outcome;
  }
  if (style.format == Format::csv) {
    outcome.result = report::estimate_csv(read.run, result);
    return outcome;
  }
  const report::EstimateTextOptions options = text_options(read, result, detail, style, outcome.notes);
  outcome.result = style.format == Format::markdown ? report::estimate_markdown(read.run, result, options)
                                                    : report::estimate_text(read.run, result, options);
  if (measured_text && !style.quiet) outcome.result += "\n" + measured_line(measurement.value, measured.value);
  return outcome;
}

}  // namespace

Command estimate_command() {
  Command command;
  command.name = "estimate";
  command.purpose = Purpose::ask;
  command.arguments = "[RUN.json]";
  command.summary = "What a run needs and how fast it is: memory per GPU, communication, bubble, step time, MFU.";
  command.examples = {"shardplan estimate --model llama-3.1-70b --cluster dgx-h100 --gpus 128 --tp 8 --pp 4",
                      "shardplan estimate run.json --recompute full --json"};
  command.flags = {run_flags(), output_flags(), estimate_flags};
  command.exit_zero = "it fits";
  command.exit_one = "it does not fit; the result is printed all the same";
  command.most_words = 1;
  command.run = run_estimate;
  return command;
}

}  // namespace shardplan::cli
