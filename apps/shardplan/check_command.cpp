// `shardplan check`: does every run file fit and meet its `require` block?
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "check_files.hpp"
#include "command.hpp"
#include "explained.hpp"
#include "overrides.hpp"
#include "shardplan/advise/baseline.hpp"
#include "shardplan/advise/fixes.hpp"
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/core/threads.hpp"
#include "shardplan/io/check_json.hpp"
#include "shardplan/io/run_file.hpp"
#include "shardplan/plan/check.hpp"
#include "shardplan/plan/workspace.hpp"
#include "shardplan/report/advice_text.hpp"
#include "shardplan/report/check_machine.hpp"
#include "shardplan/report/check_text.hpp"
#include "shardplan/report/number.hpp"
#include "shardplan/report/requirement_text.hpp"

namespace shardplan::cli {
namespace {

using plan::CheckedRun;
using plan::CheckStatus;

constexpr std::array check_flags = {
    Flag{"baseline", "", ValueKind::text, FlagGroup::command, "DIR|REF.json",
         "what changed since: a folder of run files, an earlier check --json, or a run file", "reference base compare"},
    explain_flag,
};
constexpr std::array<std::string_view, 3> pictures = {"github", "junit", "sarif"};

/// Judges run files one by one; buffers are kept from one to the next.
class Checker {
 public:
  /// `fixes`: whether a change that would pass is looked for.
  Checker(std::vector<io::Override> overrides, const advise::Baseline* baseline, report::Units units, bool fixes)
      : overrides_(std::move(overrides)), baseline_(baseline), units_(units), fixes_(fixes) {}

  CheckedRun check(const std::string& path) {
    CheckedRun checked;
    checked.path = path == "-" ? "<stdin>" : path;
    checked.compared = baseline_ != nullptr;
    io::RunInput input;
    Result<io::JsonText> text = io::read_json(path);
    if (!text.ok()) return rejected(std::move(checked), std::move(text.problems));
    input.text = std::move(text.value);
    input.overrides = overrides_;
    io::ReadRun read = io::read_run(input, catalog::builtin_catalog());
    if (!read.ok()) return rejected(std::move(checked), std::move(read.problems));
    for (const std::string& note : read.notes) notes_.push_back(note);
    estimate(read.run, workspace_, estimate_);
    judge(read, *input.text, checked);
    if (baseline_ != nullptr) {
      std::string problem;
      checked.baseline = baseline_->of(path, problem);
      if (!problem.empty()) notes_.push_back(fmt::format("{}: no baseline: {}", checked.path, problem));
      checked.unknown_baseline = !problem.empty();
    }
    return checked;
  }

  /// Of the runs checked since the last call.
  std::vector<std::string> take_notes() { return std::exchange(notes_, {}); }

 private:
  static CheckedRun rejected(CheckedRun checked, Diagnostics problems) {
    checked.status = CheckStatus::error;
    checked.problems = std::move(problems);
    return checked;
  }

  void judge(const io::ReadRun& read, const io::JsonText& text, CheckedRun& checked) {
    const std::vector<plan::Verdict> verdicts = plan::judge(read.run.require, estimate_);
    for (const plan::Verdict& verdict : verdicts) {
      if (!verdict.holds) checked.status = CheckStatus::fail;
      const std::string pointer = fmt::format("/require/{}", name(verdict.requirement));
      // What the command line asks for stands in no line of the file.
      const bool of_flags = std::any_of(overrides_.begin(), overrides_.end(), [&](const io::Override& change) {
        return change.pointer == pointer || change.pointer == "/require";
      });
      const io::JsonPosition place = of_flags ? io::JsonPosition{} : io::position_of(text, pointer);
      checked.requirements.push_back({verdict, place.key_line, place.key_column,
                                      verdict.holds ? std::string() : report::requirement_sentence(verdict, units_)});
    }
    checked.figures = plan::figures_of(estimate_);
    if (!estimate_.fits) checked.over = report::over_text(read.run, estimate_, units_);
    if (checked.status != CheckStatus::fail || !fixes_) return;
    const advise::FoundFix found =
        advise::cheapest_fix(read.draft, read.run, estimate_, verdicts, catalog::builtin_catalog(), workspace_);
    if (found.fix) {
      checked.fix = plan::flags_of(found.fix->change);
      const std::string effect = report::fix_effect(*found.fix, estimate_, verdicts, units_);
      const std::string other = advise::gives_way(found.fix->change, overrides_);
      checked.fix_effect = other.empty() ? effect : fmt::format("for {}; {}", other, effect);
    } else if (found.left_out > 0) {
      notes_.push_back(fmt::format("{}: {} more change{} not tried: a step of {} microbatches is long to simulate",
                                   checked.path, found.left_out, found.left_out == 1 ? " was" : "s were",
                                   report::count_text(read.run.microbatches())));
    }
  }

  std::vector<io::Override> overrides_;
  const advise::Baseline* baseline_;
  report::Units units_;
  bool fixes_;
  EstimateWorkspace workspace_;
  Estimate estimate_;
  std::vector<std::string> notes_;
};

/// Every run, on all cores; runs and notes stand in the order of the files.
std::vector<CheckedRun> check_all(const std::vector<std::string>& paths, const Checker& checker,
                                  std::vector<std::string>& notes) {
  constexpr std::size_t least_runs = 4;
  std::vector<CheckedRun> runs(paths.size());
  std::vector<std::vector<std::string>> notes_of(paths.size());
  std::vector<Checker> checkers(std::clamp<std::size_t>(paths.size() / least_runs, 1, cores()), checker);
  share_out(checkers.size(), paths.size(), [&](std::size_t thread, std::size_t i) {
    runs[i] = checkers[thread].check(paths[i]);
    notes_of[i] = checkers[thread].take_notes();
  });
  for (const std::vector<std::string>& of_run : notes_of) notes.insert(notes.end(), of_run.begin(), of_run.end());
  return runs;
}

std::string result_of(const std::vector<CheckedRun>& runs, const OutputStyle& style) {
  if (style.picture == "github") return report::check_github(runs, style.page.units);
  if (style.picture == "junit") return report::check_junit(runs, style.page.units);
  if (style.picture == "sarif") return io::check_sarif(runs);
  switch (style.format) {
    case Format::json: return io::check_json(runs);
    case Format::csv: return report::check_csv(runs);
    case Format::markdown: return report::check_markdown(runs, style.page, style.quiet);
    case Format::text: break;
  }
  return report::check_text(runs, style.page, style.quiet);
}

/// `--explain`: a number of the one run that is checked; the status is the check's.
Outcome explain_checked(const std::string& path, std::vector<io::Override> overrides, std::string_view term,
                        const OutputStyle& style) {
  Outcome outcome;
  io::RunInput input;
  Result<io::JsonText> text = io::read_json(path);
  outcome.problems = std::move(text.problems);
  if (!outcome.problems.empty()) return outcome;
  input.text = std::move(text.value);
  input.overrides = std::move(overrides);
  io::ReadRun read = io::read_run(input, catalog::builtin_catalog());
  outcome.problems = std::move(read.problems);
  if (!outcome.problems.empty()) return outcome;
  Estimate result;
  estimate(read.run, result);
  const std::vector<plan::Verdict> verdicts = plan::judge(read.run.require, result);
  outcome = explained(read.run, term, style);
  outcome.notes = std::move(read.notes);
  const bool passes = std::all_of(verdicts.begin(), verdicts.end(), [](const auto& verdict) { return verdict.holds; });
  if (outcome.problems.empty()) outcome.status = passes ? exit_ok : exit_no;
  return outcome;
}

/// Flags that would go unheard.
Diagnostics check_flags_together(const Arguments& arguments, const OutputStyle& style) {
  if (arguments.words.empty()) {
    return usage_problem("check takes run files, folders or patterns", "for example shardplan check runs/*.json")
        .problems;
  }
  if (arguments.has("explain") && (arguments.has("baseline") || !style.picture.empty())) {
    return usage_problem("--explain opens one number; it has no place for --baseline and the formats of CI").problems;
  }
  if (!arguments.has("baseline")) return {};
  if (!style.picture.empty() || style.format == Format::csv) {
    return usage_problem(fmt::format("--baseline has no place in {}; text, markdown and json show it",
                                     style.picture.empty() ? std::string_view("csv") : style.picture))
        .problems;
  }
  if (style.quiet) return usage_problem("-q prints the first line only, where --baseline has no place").problems;
  return {};
}

Outcome run_check(const Arguments& arguments, const OutputStyle& style) {
  Outcome outcome;
  outcome.problems = check_flags_together(arguments, style);
  if (!outcome.problems.empty()) return outcome;
  Result<std::vector<io::Override>> overrides = overrides_of(arguments);
  outcome.problems = std::move(overrides.problems);
  if (!outcome.problems.empty()) return outcome;

  Result<advise::Baseline> baseline;
  if (const auto place = arguments.value("baseline")) {
    baseline =
        advise::Baseline::open(std::string(*place), overrides.value, catalog::builtin_catalog(), files_on_disk());
    outcome.problems = std::move(baseline.problems);
    if (!outcome.problems.empty()) return outcome;
  }
  CheckFiles files = check_files(arguments.words);
  const bool reads_stdin = std::count(files.paths.begin(), files.paths.end(), "-") > 0;
  if (arguments.value("model") == "-" && (reads_stdin || files.paths.size() > 1)) {
    return usage_problem("--model -: standard input can be read once only");
  }
  if (files.paths.empty() && !files.problems.empty()) {
    outcome.problems = std::move(files.problems);
    return outcome;
  }
  if (const std::optional<std::string_view> term = arguments.value("explain")) {
    if (files.paths.size() + files.problems.size() != 1) {
      return usage_problem(fmt::format("--explain opens a number of one run, and {} are to be checked",
                                       files.paths.size() + files.problems.size()),
                           "shardplan check RUN.json --explain TERM");
    }
    return explain_checked(files.paths.front(), std::move(overrides.value), *term, style);
  }

  // -q prints one line, which has no room for a fix.
  const Checker checker(std::move(overrides.value), arguments.has("baseline") ? &baseline.value : nullptr,
                        style.page.units, !style.quiet);
  std::vector<std::string> notes;
  std::vector<CheckedRun> runs = check_all(files.paths, checker, notes);
  for (Diagnostic& problem : files.problems) {
    CheckedRun& missing = runs.emplace_back();
    missing.path = problem.file;
    missing.status = CheckStatus::error;
    missing.problems.push_back(std::move(problem));
  }
  const bool none = std::none_of(
      runs.begin(), runs.end(), [](const CheckedRun& run) { return run.baseline.has_value() || run.unknown_baseline; });
  if (arguments.has("baseline") && none) {
    notes.push_back(fmt::format("--baseline {}: has none of these runs, under their paths or the ends of them",
                                *arguments.value("baseline")));
  }
  const plan::CheckCounts counts = plan::count(runs);
  outcome.status = counts.errors > 0 ? exit_input : counts.failed > 0 ? exit_no : exit_ok;
  outcome.notes = std::move(files.notes);
  outcome.notes.insert(outcome.notes.end(), notes.begin(), notes.end());
  for (const CheckedRun& run : runs) {
    outcome.rejected.insert(outcome.rejected.end(), run.problems.begin(), run.problems.end());
  }
  outcome.result = result_of(runs, style);
  return outcome;
}

}  // namespace

Command check_command() {
  Command command;
  command.name = "check";
  command.purpose = Purpose::verify;
  command.arguments = "RUN.json...";
  command.summary = "CI: does every run file fit and meet its `require` block? One line a file, and what would help.";
  command.examples = {"shardplan check runs/", "shardplan check runs/*.json --format junit -o shardplan.xml",
                      "shardplan check runs/ --baseline main/ --format markdown"};
  command.flags = {check_flags, run_flags(), output_flags()};
  command.pictures = pictures;
  command.exit_zero = "every run passes";
  command.exit_one = "a run does not fit, or misses a requirement";
  command.exit_two = "a file is no legal run, and the others are reported all the same; or the command line is wrong";
  command.most_words = std::size_t{1} << 20;
  command.run = run_check;
  return command;
}

}  // namespace shardplan::cli
