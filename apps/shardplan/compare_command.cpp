// `shardplan compare`: runs side by side, differences first.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "command.hpp"
#include "explained.hpp"
#include "overrides.hpp"
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/compare_json.hpp"
#include "shardplan/io/run_file.hpp"
#include "shardplan/io/run_variations.hpp"
#include "shardplan/plan/compare.hpp"
#include "shardplan/report/compare_text.hpp"

namespace shardplan::cli {
namespace {

using plan::Comparison;

constexpr std::array compare_flags = {
    Flag{"all", "", ValueKind::none, FlagGroup::command, "", "the fields and results that are equal as well",
         "full everything", "true"},
    explain_flag,
};

/// A run before it is read.
struct Side {
  std::string name;
  io::RunInput input;
};

/// "run.json --tp 4 --dp 8": the flags as they were typed.
std::string flags_text(const Arguments& arguments) {
  std::string text;
  for (const GivenFlag& given : arguments.flags) {
    if (given.flag->pointer.empty() && given.flag->kind != ValueKind::any_field) continue;
    text += fmt::format("{}--{}", text.empty() ? "" : " ", given.flag->name);
    if (given.flag->kind != ValueKind::none) text += " " + given.value;
  }
  return text;
}

/// Files' names where they tell the runs apart, else their paths.
std::vector<std::string> names_of_files(const std::vector<std::string>& paths) {
  std::set<std::string> seen;
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    names.push_back(path == "-" ? "<stdin>" : std::filesystem::path(path).filename().string());
    seen.insert(names.back());
  }
  return seen.size() == paths.size() ? names : paths;
}

/// One file stands beside itself with the flags; of several the flags are every one's.
Result<std::vector<Side>> sides_of(const Arguments& arguments) {
  Result<std::vector<Side>> result;
  Result<std::vector<io::Override>> overrides = overrides_of(arguments);
  result.problems = std::move(overrides.problems);
  if (!result.ok()) return result;
  const std::vector<std::string>& paths = arguments.words;
  if (paths.empty() || (paths.size() == 1 && overrides.value.empty())) {
    result.problems = usage_problem("compare takes two run files or more, or one and flags",
                                    "for example shardplan compare a.json b.json, or shardplan compare a.json --tp 4")
                          .problems;
    return result;
  }
  if (std::count(paths.begin(), paths.end(), "-") + (arguments.value("model") == "-" ? 1 : 0) > 1) {
    result.problems = usage_problem("standard input can be read once only").problems;
    return result;
  }
  const std::vector<std::string> names = names_of_files(paths);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    Result<io::JsonText> text = io::read_json(paths[i]);
    result.problems.insert(result.problems.end(), text.problems.begin(), text.problems.end());
    Side& side = result.value.emplace_back();
    side.name = names[i];
    side.input.text = std::move(text.value);
    if (paths.size() > 1) side.input.overrides = overrides.value;
  }
  if (paths.size() == 1) {
    Side changed = result.value.front();
    changed.name = flags_text(arguments);
    constexpr std::size_t longest = 24;  // a column's head
    if (changed.name.size() > longest) changed.name = "with the flags";
    changed.input.overrides = std::move(overrides.value);
    result.value.push_back(std::move(changed));
  }
  return result;
}

/// What each input that was stated does on its own: the first run with it as in the second.
void set_alone(const io::RunInput& first, Comparison& comparison) {
  constexpr std::size_t most = 12;
  const auto counts = [](const plan::InputRow& row) { return !row.equal && row.stated && !row.values.back().empty(); };
  const auto differing = std::count_if(comparison.inputs.begin(), comparison.inputs.end(), counts);
  // The change as a whole is one input's, or too many have a part in it.
  if (differing < 2 || differing > static_cast<std::ptrdiff_t>(most)) return;
  io::RunVariations variations(first, catalog::builtin_catalog());
  io::Variation variation;
  Estimate estimated;
  for (plan::InputRow& row : comparison.inputs) {
    if (!counts(row) || row.path.rfind("/require", 0) == 0) continue;
    const std::array<io::Override, 1> change = {{{row.path, row.values.back(), "--set"}}};
    variations.read(change, variation);
    plan::Alone& alone = row.alone.emplace();
    if (!variation.problems.empty() || variation.broken.any()) continue;
    estimate(variation.run, estimated);
    alone = {true, estimated.fits, estimated.throughput.tokens_per_s, estimated.peak_bytes};
  }
}

Outcome run_compare(const Arguments& arguments, const OutputStyle& style) {
  Outcome outcome;
  if (style.quiet && arguments.has("all")) return usage_problem("-q prints the first line only, --all more");
  if (arguments.has("explain") && arguments.has("all")) {
    return usage_problem("--explain opens one number of each run; it has no place for --all");
  }
  Result<std::vector<Side>> sides = sides_of(arguments);
  outcome.problems = std::move(sides.problems);
  if (!outcome.problems.empty()) return outcome;
  Comparison comparison;
  std::vector<std::string> resolved;
  for (const Side& side : sides.value) {
    io::ReadRun read = io::read_run(side.input, catalog::builtin_catalog());
    outcome.problems.insert(outcome.problems.end(), read.problems.begin(), read.problems.end());
    if (!read.ok()) continue;
    plan::ComparedRun& run = comparison.runs.emplace_back();
    run.name = side.name;
    run.run = std::move(read.run);
    estimate(run.run, run.estimate);
    resolved.push_back(std::move(read.run_json));
    for (std::string& note : read.notes) outcome.notes.push_back(std::move(note));
  }
  if (!outcome.problems.empty()) return outcome;
  if (const std::optional<std::string_view> term = arguments.value("explain")) {
    std::vector<NamedRun> runs;
    for (const plan::ComparedRun& run : comparison.runs) runs.push_back({run.name, &run.run});
    Outcome opened = explained(runs, *term, style);
    opened.notes = std::move(outcome.notes);
    return opened;
  }
  comparison.inputs =
      io::input_rows(std::vector<std::string_view>(resolved.begin(), resolved.end()), catalog::builtin_catalog());
  const bool text = style.format == Format::text || style.format == Format::markdown;
  // A model from standard input cannot be read again; a run from there is kept.
  if (text && comparison.runs.size() == 2 && arguments.value("model") != "-")
    set_alone(sides.value.front().input, comparison);
  const bool all_fit = std::all_of(comparison.runs.begin(), comparison.runs.end(),
                                   [](const plan::ComparedRun& run) { return run.estimate.fits; });
  outcome.status = all_fit ? exit_ok : exit_no;
  const bool all = arguments.has("all");
  switch (style.format) {
    case Format::json: outcome.result = io::compare_json(comparison, all); break;
    case Format::csv: outcome.result = report::compare_csv(comparison, all); break;
    case Format::markdown: outcome.result = report::compare_markdown(comparison, style.page, style.quiet, all); break;
    case Format::text: outcome.result = report::compare_text(comparison, style.page, style.quiet, all); break;
  }
  return outcome;
}

}  // namespace

Command compare_command() {
  Command command;
  command.name = "compare";
  command.purpose = Purpose::ask;
  command.arguments = "A.json B.json...";
  command.summary = "Runs side by side: what differs in the input, then in the results, and what it comes from.";
  command.examples = {"shardplan compare a.json b.json", "shardplan compare a.json --tp 4 --vpp 5"};
  command.flags = {compare_flags, run_flags(), output_flags()};
  command.exit_zero = "every run fits";
  command.exit_one = "a run does not fit; the result is printed all the same";
  command.most_words = 16;
  command.run = run_compare;
  return command;
}

}  // namespace shardplan::cli
