// `shardplan solve FIELD`: the largest, or smallest, value of one field that still fits, all else fixed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <sstream>

#include "command.hpp"
#include "command_line.hpp"
#include "explained.hpp"
#include "interrupt.hpp"
#include "overrides.hpp"
#include "run_input.hpp"
#include "shardplan/advise/next_actions.hpp"
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/run_file.hpp"
#include "shardplan/io/solve_json.hpp"
#include "shardplan/plan/requirements.hpp"
#include "shardplan/report/solve_text.hpp"
#include "solve_field.hpp"

namespace shardplan::cli {
namespace {

using plan::Field;
using plan::Holds;

constexpr std::array solve_flags = {
    Flag{"constraint", "/require", ValueKind::pairs, FlagGroup::command, "KEY=VALUE",
         "what has to hold besides fitting, as in require: max_step_s=30", "require"},
    Flag{"largest", "", ValueKind::none, FlagGroup::command, "", "ask for the largest value", "max", "true"},
    Flag{"smallest", "", ValueKind::none, FlagGroup::command, "", "ask for the smallest value", "min", "true"},
    explain_flag,
};

Outcome rejected(Diagnostics problems) {
  Outcome outcome;
  outcome.status = exit_input;
  outcome.problems = std::move(problems);
  return outcome;
}

/// Whether an estimate is beyond what growth can ever meet again: the card or the host is full, and the step too long
/// where it grows with the field (a short sequence's kernels wait for the host, so that there it may not).
bool is_too_much(const SolveField& field, const Requirements& require, const Estimate& estimate) {
  Requirements limits;
  limits.min_headroom_gib = require.min_headroom_gib;
  if (field.step_grows) limits.max_step_s = require.max_step_s;
  return !estimate.fits || !plan::meets(limits, estimate);
}

/// Reads the run with the field set, again and again.
class Trials {
 public:
  Trials(io::RunInput input, const SolveField& field) : input_(std::move(input)), field_(field) {}

  io::ReadRun read(std::int64_t value) const {
    io::RunInput changed = input_;
    changed.overrides.push_back({field_.pointer, std::to_string(value), "solve"});
    return io::read_run(changed, catalog::builtin_catalog());
  }

  Holds test(std::int64_t value) {
    if (Interrupt::pressed().load()) return Holds::no;
    io::ReadRun read = this->read(value);
    if (!read.ok()) {
      if (refused_.empty()) refused_ = std::move(read.problems);
      return Holds::illegal;
    }
    estimate(read.run, estimate_);
    if (estimate_.fits && plan::meets(read.run.require, estimate_)) return Holds::yes;
    return is_too_much(field_, read.run.require, estimate_) ? Holds::no : Holds::not_here;
  }

  /// Why the first illegal value is.
  const Diagnostics& refused() const noexcept { return refused_; }

 private:
  io::RunInput input_;
  const SolveField& field_;
  Estimate estimate_;
  Diagnostics refused_;
};

/// What was found of a run, and with which step.
struct Solved {
  plan::Solution solution;
  std::int64_t step = 1;
};

Solved solve_by(Trials& trials, const SolveField& asked) {
  const bool monotone = asked.monotone && asked.largest;
  plan::SolveValues values = asked.values;
  if (!monotone && values.values.empty()) {
    constexpr std::int64_t most_scanned = 4096;
    while (values.count() > most_scanned) values.first = values.step *= 2;
  }
  Solved solved;
  solved.step = values.values.empty() ? values.step : 1;
  solved.solution =
      plan::solve(values, asked.largest, monotone, [&](std::int64_t value) { return trials.test(value); });
  return solved;
}

/// The field of a run, with the directions that the command line gives it.
SolveField asked_field(std::string_view pointer, const io::ReadRun& start, const Arguments& arguments) {
  const bool batch_stated = start.draft.given.has(Field::global_batch_size) || start.draft.microbatches > 0;
  SolveField field = solve_field(pointer, start.run, batch_stated);
  if (arguments.has("largest")) field.largest = true;
  if (arguments.has("smallest")) field.largest = false;
  return field;
}

/// The same question after further flags; nothing where they are no legal change.
std::optional<plan::Otherwise> solve_otherwise(io::RunInput input, const std::string& flags,
                                               const Arguments& arguments) {
  std::vector<std::string> texts;
  std::istringstream in(flags);
  for (std::string text; in >> text;) texts.push_back(text);
  std::vector<const char*> words;
  words.reserve(texts.size());
  for (const std::string& text : texts) words.push_back(text.c_str());
  const ParsedLine line = parse_command_line(solve_command(), words);
  if (!line.problems.empty()) return std::nullopt;
  Result<std::vector<io::Override>> overrides = overrides_of(line.arguments);
  if (!overrides.ok()) return std::nullopt;
  input.overrides.insert(input.overrides.end(), overrides.value.begin(), overrides.value.end());
  const io::ReadRun start = io::read_run(input, catalog::builtin_catalog());
  if (start.run.model.kinds.empty()) return std::nullopt;
  const std::optional<std::string> pointer = solve_pointer(arguments.words.front());
  if (!pointer) return std::nullopt;
  const SolveField field = asked_field(*pointer, start, arguments);
  Trials trials(std::move(input), field);
  return plan::Otherwise{flags, solve_by(trials, field).solution.value};
}

/// Changes worth knowing beside the answer: what recomputation gained, or with what a value holds where none does.
std::vector<plan::Otherwise> otherwise_of(const io::RunInput& input, const plan::SolveAnswer& answer,
                                          const plan::Draft& draft, const Arguments& arguments) {
  std::vector<plan::Otherwise> list;
  if (answer.solution.value) {
    if (answer.run.training.recompute.mode == RecomputeMode::none || !answer.largest) return list;
    if (auto other = solve_otherwise(input, "--recompute none", arguments)) list.push_back(std::move(*other));
    return list;
  }
  for (const advise::NextAction& action :
       advise::next_actions(draft, answer.run, answer.estimate, catalog::builtin_catalog()).list) {
    std::optional<plan::Otherwise> other = solve_otherwise(input, plan::flags_of(action.tried.change), arguments);
    if (other && other->value) list.push_back(std::move(*other));
  }
  return list;
}

/// Why no value is legal. To leave out what is solved for is no way out of it.
Diagnostics refused_values(Diagnostics problems) {
  constexpr std::string_view either = ", or ";
  for (Diagnostic& problem : problems) {
    std::string ways;
    std::string_view rest = problem.way_out;
    while (!rest.empty()) {
      const std::string_view way = rest.substr(0, rest.find(either));
      rest.remove_prefix(std::min(way.size() + either.size(), rest.size()));
      if (way.rfind("leave solve out", 0) == 0) continue;
      ways += fmt::format("{}{}", ways.empty() ? std::string_view() : either, way);
    }
    problem.way_out = ways;
  }
  return problems;
}

/// "solve run.json": the word is a file, so that it is the field that is missing.
bool is_file(const std::string& word) {
  std::error_code error;
  return word == "-" || std::filesystem::is_regular_file(word, error) ||
         (word.size() > 5 && word.compare(word.size() - 5, 5, ".json") == 0);
}

Result<io::RunInput> read_input(const Arguments& arguments) {
  Result<io::RunInput> result;
  Result<std::vector<io::Override>> overrides = overrides_of(arguments);
  if (!overrides.ok()) {
    result.problems = std::move(overrides.problems);
    return result;
  }
  result.value.overrides = std::move(overrides.value);
  if (arguments.words.size() > 1) {
    Result<io::JsonText> text = io::read_json(arguments.words[1]);
    if (!text.ok()) {
      result.problems = std::move(text.problems);
    } else {
      result.value.text = std::move(text.value);
    }
  }
  return result;
}

/// A field that is solved for must not be stated by a flag too.
const GivenFlag* flag_of_field(const Arguments& arguments, std::string_view pointer) {
  for (const GivenFlag& given : arguments.flags) {
    std::string_view at = given.flag->pointer;
    std::optional<std::string> of_set;
    if (given.flag->kind == ValueKind::any_field) {
      of_set = io::field_pointer(std::string_view(given.value).substr(0, given.value.find('=')));
      if (of_set) at = *of_set;
    }
    if (at == pointer) return &given;
  }
  return nullptr;
}

Outcome run_solve(const Arguments& arguments, const OutputStyle& style) {
  if (style.format == Format::csv || style.format == Format::markdown) {
    return usage_problem(fmt::format("solve has no {} form", name(style.format)), "--format text or json");
  }
  const bool no_field = arguments.words.size() == 1 && is_file(arguments.words.front());
  if (arguments.words.empty() || no_field) {
    return usage_problem(
        fmt::format("solve needs a FIELD{}: {}", no_field ? " before " + arguments.words.front() : "",
                    fmt::join(solve_words(), ", ")),
        fmt::format("for example shardplan solve seq {}", no_field ? arguments.words.front() : "run.json"));
  }
  if (arguments.has("largest") && arguments.has("smallest")) {
    return usage_problem("--largest and --smallest ask for opposite things");
  }
  const std::string& word = arguments.words.front();
  if (Diagnostics problems = solve_field_problems(word); !problems.empty()) return rejected(std::move(problems));
  const Interrupt interrupt;
  Result<io::RunInput> input = read_input(arguments);
  if (!input.ok()) return rejected(std::move(input.problems));

  const std::optional<std::string> pointer = solve_pointer(word);
  if (const GivenFlag* given = flag_of_field(arguments, *pointer)) {
    return usage_problem(fmt::format("--{} states {}, which is to be solved for", given->flag->name, *pointer));
  }
  // What the run is apart from the field: problems of the field itself, and those that follow from it, come and go with
  // its value.
  io::ReadRun start = io::read_run(input.value, catalog::builtin_catalog());
  const bool unreadable = start.draft.unusable.has(Field::model) || start.draft.unusable.has(Field::cluster) ||
                          (start.run_json.empty() && start.run.model.kinds.empty());
  if (unreadable) return rejected(std::move(start.problems));
  const SolveField asked = asked_field(*pointer, start, arguments);

  Trials trials(input.value, asked);
  plan::SolveAnswer answer;
  answer.field = asked.pointer;
  answer.word = asked.word;
  answer.largest = asked.largest;
  answer.limit = asked.limit;
  answer.listed = !asked.values.values.empty();
  Solved solved = solve_by(trials, asked);
  answer.step = solved.step;
  answer.solution = solved.solution;
  if (Interrupt::pressed().load()) {
    Outcome outcome;
    outcome.status = exit_interrupted;
    outcome.notes.emplace_back("interrupted; no value is known to be the answer");
    return outcome;
  }
  if (!answer.solution.value && !answer.solution.next) {
    if (!trials.refused().empty()) return rejected(refused_values(trials.refused()));
    return usage_problem(fmt::format("solve: {} has no value to try", asked.pointer));
  }
  Outcome outcome;
  io::ReadRun read = trials.read(answer.solution.value.value_or(answer.solution.next.value_or(0)));
  answer.run = std::move(read.run);
  answer.run_json = std::move(read.run_json);
  answer.warnings = std::move(read.warnings);
  estimate(answer.run, answer.estimate);
  if (answer.solution.value && answer.solution.next) {
    answer.next_run = trials.read(*answer.solution.next).run;
    estimate(*answer.next_run, answer.next_estimate);
  }
  const bool of_next = answer.next_run.has_value();
  answer.why = plan::missed(of_next ? *answer.next_run : answer.run, of_next ? answer.next_estimate : answer.estimate);
  outcome.warnings = answer.warnings;
  outcome.notes = read.notes;
  outcome.notes.erase(
      std::remove_if(outcome.notes.begin(), outcome.notes.end(),
                     [](const std::string& note) { return note.find("since solve") != std::string::npos; }),
      outcome.notes.end());
  if (!style.quiet && !arguments.has("explain")) {
    answer.otherwise = otherwise_of(input.value, answer, read.draft, arguments);
  }
  outcome.status = answer.solution.value ? exit_ok : exit_nothing_fits;
  if (const std::optional<std::string_view> term = arguments.value("explain")) {
    Outcome opened = explained(answer.run, *term, style);
    opened.notes.insert(
        opened.notes.begin(),
        fmt::format("{} is {}", asked.word, answer.solution.value.value_or(answer.solution.next.value_or(0))));
    if (opened.problems.empty()) opened.status = outcome.status;
    return opened;
  }
  if (style.format == Format::json) {
    outcome.result = io::solve_json(answer);
    outcome.warnings.clear();
  } else {
    outcome.result = report::solve_text(answer, style.page, style.quiet);
  }
  return outcome;
}

}  // namespace

Command solve_command() {
  Command command;
  command.name = "solve";
  command.purpose = Purpose::ask;
  command.arguments = "FIELD [RUN.json]";
  command.summary = "The largest (or smallest) value of one field that still fits, all else fixed.";
  command.examples = {"shardplan solve seq run.json", "shardplan solve mbs run.json --recompute full",
                      "shardplan solve gbs run.json --constraint max_step_s=30",
                      "shardplan solve gpus run.json --tp 8 --pp 4"};
  command.flags = {run_flags(), output_flags(), solve_flags};
  command.exit_zero = "the value is printed";
  command.exit_nothing = "no value fits";
  command.most_words = 2;
  command.run = run_solve;
  return command;
}

}  // namespace shardplan::cli
