// `shardplan solve FIELD`: the largest, or smallest, value of one field that still fits, all else fixed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <filesystem>
#include <optional>

#include "command.hpp"
#include "explained.hpp"
#include "interrupt.hpp"
#include "overrides.hpp"
#include "run_input.hpp"
#include "shardplan/advise/solve.hpp"
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/run_file.hpp"
#include "shardplan/io/solve_json.hpp"
#include "shardplan/report/solve_text.hpp"

namespace shardplan::cli {
namespace {

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
                    fmt::join(advise::solve_words(), ", ")),
        fmt::format("for example shardplan solve seq {}", no_field ? arguments.words.front() : "run.json"));
  }
  if (arguments.has("largest") && arguments.has("smallest")) {
    return usage_problem("--largest and --smallest ask for opposite things");
  }
  const std::string& word = arguments.words.front();
  if (Diagnostics problems = advise::solve_field_problems(word); !problems.empty())
    return rejected(std::move(problems));
  const Interrupt interrupt;
  Result<io::RunInput> input = read_input(arguments);
  if (!input.ok()) return rejected(std::move(input.problems));

  const std::optional<std::string> pointer = advise::solve_pointer(word);
  if (const GivenFlag* given = flag_of_field(arguments, *pointer)) {
    return usage_problem(fmt::format("--{} states {}, which is to be solved for", given->flag->name, *pointer));
  }
  advise::SolveQuestion question;
  question.input = std::move(input.value);
  question.pointer = *pointer;
  if (arguments.has("largest") || arguments.has("smallest")) question.largest = arguments.has("largest");
  question.otherwise = !style.quiet && !arguments.has("explain");
  question.stop = &Interrupt::pressed();
  advise::SolveResult result = advise::solve(question, catalog::builtin_catalog());
  if (!result.ok()) return rejected(std::move(result.problems));
  Outcome outcome;
  if (result.stopped) {
    outcome.status = exit_interrupted;
    outcome.notes.emplace_back("interrupted; no value is known to be the answer");
    return outcome;
  }
  const plan::SolveAnswer& answer = result.answer;
  outcome.status = answer.solution.value ? exit_ok : exit_nothing_fits;
  if (const std::optional<std::string_view> term = arguments.value("explain")) {
    Outcome opened = explained(answer.run, *term, style);
    opened.notes.insert(
        opened.notes.begin(),
        fmt::format("{} is {}", answer.word, answer.solution.value.value_or(answer.solution.next.value_or(0))));
    if (opened.problems.empty()) opened.status = outcome.status;
    return opened;
  }
  outcome.notes = std::move(result.notes);
  if (style.format == Format::json) {
    outcome.result = io::solve_json(answer);
  } else {
    outcome.result = report::solve_text(answer, style.page, style.quiet);
    outcome.warnings = answer.warnings;
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
