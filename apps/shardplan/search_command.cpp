// `shardplan search`: which layouts fit, and which is best; why the others lose.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "command.hpp"
#include "explained.hpp"
#include "interrupt.hpp"
#include "progress_line.hpp"
#include "run_input.hpp"
#include "search_use_line.hpp"
#include "shardplan/advise/search_answer.hpp"
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/core/number_text.hpp"
#include "shardplan/core/threads.hpp"
#include "shardplan/io/search_json.hpp"
#include "shardplan/io/suggest.hpp"
#include "shardplan/report/number.hpp"
#include "shardplan/report/search_text.hpp"

namespace shardplan::cli {
namespace {

constexpr std::array search_flags = {
    Flag{"objective", "", ValueKind::text, FlagGroup::command, "WHAT",
         "best is: throughput (the default), price, headroom or gpus", "goal optimize"},
    Flag{"constraint", "/require", ValueKind::pairs, FlagGroup::command, "KEY=VALUE",
         "what a layout has to meet, as in require: min_mfu=0.4", "require"},
    Flag{"why-not", "", ValueKind::pairs, FlagGroup::command, "FIELDS", "explain one layout beside the best: tp=4,pp=8",
         "why explain"},
    Flag{"pareto", "", ValueKind::none, FlagGroup::command, "", "all layouts that none beats in time, memory and GPUs",
         "front", "true"},
    Flag{"rank", "", ValueKind::none, FlagGroup::command, "", "count how many layouts beat the run as stated", "",
         "true"},
    Flag{"sensitivity", "", ValueKind::none, FlagGroup::command, "", "search again with twice of each part of hardware",
         "hardware", "true"},
    Flag{"top", "", ValueKind::integer, FlagGroup::command, "K", "layouts to list (10)", "top-k limit"},
    Flag{"time", "", ValueKind::number, FlagGroup::command, "SECONDS", "stop then, with the best so far", "timeout"},
    Flag{"threads", "", ValueKind::integer, FlagGroup::command, "N", "threads (all cores)", "jobs cores"},
    Flag{"detail", "", ValueKind::none, FlagGroup::output, "", "every rule that refused layouts", "verbose details",
         "true"},
    explain_flag,
};

Outcome rejected(Diagnostics problems) {
  Outcome outcome;
  outcome.status = exit_input;
  outcome.problems = std::move(problems);
  return outcome;
}

/// A positive number of a flag.
template <class Number>
bool read_number(const Arguments& arguments, std::string_view flag, Number most, Number& to, Diagnostics& problems) {
  const std::optional<std::string_view> text = arguments.value(flag);
  if (!text) return false;
  const Number value = number_of<Number>(*text).value_or(Number{});
  if (value <= 0 || value > most) {
    problems.push_back(
        usage_problem(fmt::format("--{}: \"{}\" is not a number above 0 and at most {}", flag, *text, most))
            .problems.front());
    return false;
  }
  to = value;
  return true;
}

plan::SearchOptions read_options(const Arguments& arguments, Diagnostics& problems) {
  plan::SearchOptions options;
  options.threads = static_cast<int>(cores());
  if (const auto text = arguments.value("objective")) {
    if (const auto objective = parse_name<plan::Objective>(*text)) {
      options.objective = *objective;
    } else {
      const std::vector<std::string_view> words(names_of<plan::Objective>.begin(), names_of<plan::Objective>.end());
      problems.push_back(
          usage_problem(fmt::format("--objective: \"{}\" is not one of throughput, price, headroom, gpus{}", *text,
                                    io::did_you_mean(*text, words)))
              .problems.front());
    }
  }
  int top = 10;
  read_number(arguments, "top", 10'000, top, problems);
  options.top = static_cast<std::size_t>(top);
  read_number(arguments, "threads", 256, options.threads, problems);
  read_number(arguments, "time", 1e6, options.most_s, problems);
  options.pareto = arguments.has("pareto");
  return options;
}

void show(const plan::SearchProgress& progress, ProgressLine& line) {
  if (!line.is_due(progress.elapsed_s) || progress.done == 0 || progress.share <= 0) return;
  const double rate = static_cast<double>(progress.done) / progress.elapsed_s;
  std::string done = fmt::format("{} layouts, {}/s", report::count_text(progress.done), report::short_count(rate));
  if (progress.best) done += fmt::format(", best so far {}", report::seconds_text(progress.best->step_s));
  line.show(progress.elapsed_s, progress.share, done);
}

int status_of(const plan::SearchReport& report) {
  if (Interrupt::pressed().load()) return exit_interrupted;
  return report.best.empty() ? exit_nothing_fits : exit_ok;
}

/// `--explain`: a number of the best layout, of the nearest where nothing fits.
Outcome explain_winner(const plan::SearchReport& report, std::string_view term, const OutputStyle& style) {
  const bool fits = !report.best.empty();
  if (!fits && !report.nearest) return usage_problem("--explain: no layout is legal, so there is no estimate to open");
  const plan::SearchRow& row = fits ? report.best.front() : *report.nearest;
  Outcome opened = explained(row.run, term, style);
  report::SearchTextOptions first_line;
  first_line.style.width = 1 << 20;
  first_line.quiet = true;
  std::string answer = report::search_text(report, first_line);
  answer.erase(std::min(answer.find('\n'), answer.size()));
  opened.notes.insert(opened.notes.begin(), std::move(answer));
  if (opened.problems.empty()) opened.status = status_of(report);
  return opened;
}

std::string render(const plan::SearchReport& report, const OutputStyle& style) {
  switch (style.format) {
    case Format::json: return io::search_json(report);
    case Format::csv: return report::search_csv(report);
    default: break;
  }
  report::SearchTextOptions options;
  options.style = style.page;
  options.quiet = style.quiet;
  options.detail = style.detail;
  return style.format == Format::markdown ? report::search_markdown(report, options)
                                          : report::search_text(report, options);
}

/// Flags that have no place beside others.
Diagnostics search_flags_together(const Arguments& arguments, const OutputStyle& style) {
  if (style.format == Format::csv && (arguments.has("why-not") || arguments.has("sensitivity"))) {
    return usage_problem("--why-not and --sensitivity have no rows in csv", "text, json and markdown show them")
        .problems;
  }
  if (!arguments.has("explain")) return {};
  for (const char* const other : {"why-not", "pareto", "rank", "sensitivity", "top", "detail"}) {
    if (!arguments.has(other)) continue;
    return usage_problem(fmt::format("--explain opens one number of the best layout; it has no place for --{}", other))
        .problems;
  }
  return {};
}

advise::SearchExtras extras_of(const Arguments& arguments, const OutputStyle& style) {
  const bool brief = style.quiet || arguments.has("explain");
  advise::SearchExtras extras;
  for (const GivenFlag& given : arguments.flags) {
    if (given.flag->name == "why-not") extras.why_not.push_back(given.value);
  }
  extras.neighbours = !brief && style.format != Format::csv;
  extras.ways = !brief;
  extras.sensitivity = !brief && arguments.has("sensitivity");
  return extras;
}

/// The run file of the best layout, for -o.
std::string winner_json(const advise::SearchQuestion& question, const Layout& layout) {
  const io::ReadRun winner =
      advise::read_layout(question, layout, catalog::builtin_catalog(), absolute_paths(question));
  if (!winner.ok()) {
    throw std::logic_error(fmt::format("the best layout does not read back: {}: {}", winner.problems.front().pointer,
                                       winner.problems.front().message));
  }
  return winner.run_json + "\n";
}

Outcome run_search(const Arguments& arguments, const OutputStyle& style) {
  Diagnostics problems;
  plan::SearchOptions options = read_options(arguments, problems);
  if (problems.empty()) problems = search_flags_together(arguments, style);
  if (!problems.empty()) return rejected(std::move(problems));
  const Interrupt interrupt;
  Result<io::RunInput> input = run_input_of(arguments);
  if (!input.ok()) return rejected(std::move(input.problems));
  advise::SearchQuestion question = advise::search_question(input.value, catalog::builtin_catalog());
  if (!question.ok()) return rejected(std::move(question.problems));
  options.require = question.read.run.require;
  options.stop = &Interrupt::pressed();
  const bool rank = arguments.has("rank");
  if (rank && !question.stated) {
    return usage_problem("--rank: the run as stated is no legal layout, so that it has no place among them",
                         "shardplan estimate says what is wrong with it");
  }
  if (rank) options.rank_of = &question.stated->run;
  ProgressLine line;
  options.progress = [&line](const plan::SearchProgress& progress) { show(progress, line); };
  Result<plan::SearchReport> answer =
      advise::search_answer(question, options, extras_of(arguments, style), catalog::builtin_catalog());
  line.clear();
  if (!answer.ok()) return rejected(std::move(answer.problems));
  plan::SearchReport& report = answer.value;
  if (question.stated && (!arguments.words.empty() || rank)) {
    report.file = arguments.words.empty() ? "" : arguments.words.front();
    report.stated = advise::stated_row(question);
  }
  std::optional<std::string> file;
  if (!report.best.empty()) {
    const Layout& best = report.best.front().found.layout;
    report.use = use_line(arguments, question, best);
    file = winner_json(question, best);
  }
  Outcome outcome;
  if (const std::optional<std::string_view> term = arguments.value("explain")) {
    outcome = explain_winner(report, *term, style);
    if (!outcome.problems.empty()) return outcome;
  } else {
    outcome.result = render(report, style);
    outcome.status = status_of(report);
  }
  outcome.notes.insert(outcome.notes.begin(), question.notes.begin(), question.notes.end());
  outcome.file = std::move(file);
  return outcome;
}

}  // namespace

Command search_command() {
  Command command;
  command.name = "search";
  command.purpose = Purpose::ask;
  command.arguments = "[RUN.json]";
  command.summary = "Which layouts fit and which is best, over all legal ones, exactly; why the others lose.";
  command.examples = {"shardplan search run.json",
                      "shardplan search --model llama-3.1-70b --cluster dgx-h100 --gpus 64..256 --gbs 1024 "
                      "--objective gpus -o best.json",
                      "shardplan search run.json --tp 1,2,4,8 --mbs 1..8 --why-not tp=4,pp=8"};
  command.flags = {run_flags(), output_flags(), search_flags};
  command.exit_zero = "the best layout is printed";
  command.exit_nothing = "nothing fits; the nearest layout is printed";
  command.most_words = 1;
  command.output_apart = true;
  command.run = run_search;
  return command;
}

}  // namespace shardplan::cli
