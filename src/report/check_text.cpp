#include "shardplan/report/check_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "check_changes.hpp"
#include "shardplan/report/estimate_text.hpp"
#include "shardplan/report/number.hpp"
#include "shardplan/report/requirement_text.hpp"
#include "shardplan/report/table.hpp"
#include "shardplan/report/text.hpp"

namespace shardplan::report {
namespace {

using plan::Checked;
using plan::CheckedRun;
using plan::CheckStatus;
using plan::Requirement;

std::string runs_text(std::size_t count) { return fmt::format("{} {}", count, count == 1 ? "run" : "runs"); }

Text verdict_word(CheckStatus status) {
  if (status == CheckStatus::pass) return {"PASS", Role::good};
  return {status == CheckStatus::fail ? "FAIL" : "ERROR", Role::bad};
}

/// "59.8 of 79.65 GiB, 17.0 free >= 4": the memory of a run that fits.
std::string memory_text(const CheckedRun& run, Units units) {
  std::string text =
      fmt::format("{} of {}, {} free", size_text(run.figures.peak_bytes, units, 1),
                  size_with_unit(run.figures.capacity_bytes, units), size_text(run.figures.headroom_bytes, units, 1));
  for (const Checked& checked : run.requirements) {
    if (checked.verdict.requirement != Requirement::min_headroom_gib || !checked.verdict.holds) continue;
    const std::string words = comparison(checked.verdict, units);
    text += words.substr(words.find(" >= "));
  }
  return text;
}

std::vector<Text> passing_parts(const CheckedRun& run, Units units) {
  std::vector<Text> parts;
  if (run.figures.fits) {
    parts.emplace_back(memory_text(run, units));
  } else {
    parts.push_back(Text("does not fit, and need not: ", Role::warning) + Text(run.over));
  }
  for (const Checked& checked : run.requirements) {
    const Requirement requirement = checked.verdict.requirement;
    if (requirement == Requirement::fits || requirement == Requirement::min_headroom_gib) continue;
    parts.emplace_back(requirement_sentence(checked.verdict, units));
  }
  return parts;
}

/// "2 other requirements hold: fits, MFU 45.9% >= 38%"
std::string holding_text(const CheckedRun& run, Units units) {
  std::string list;
  std::size_t count = 0;
  for (const Checked& checked : run.requirements) {
    if (!checked.verdict.holds) continue;
    list += (count++ == 0 ? "" : ", ") + requirement_sentence(checked.verdict, units);
  }
  if (count == 0) return {};
  return fmt::format("{} other requirement{}: {}", count, count == 1 ? " holds" : "s hold", list);
}

std::string failure_line(const CheckedRun& run, const Checked& checked, Units units) {
  const plan::Verdict& verdict = checked.verdict;
  std::string line = fmt::format("{}: {}", name(verdict.requirement),
                                 verdict.requirement == Requirement::fits ? run.over : comparison(verdict, units));
  if (verdict.requirement != Requirement::fits && checked.line > 1) {
    line += fmt::format("  (require at line {})", checked.line);
  }
  return line;
}

/// What is said of one file, its lines not yet indented.
std::vector<Text> lines_of(const CheckedRun& run, Units units, std::size_t width) {
  std::vector<Text> lines;
  const auto add = [&](const Text& line) {
    for (Text& part : wrap(line, width, 2)) lines.push_back(std::move(part));
  };
  if (run.status == CheckStatus::error) {
    const std::size_t more = run.problems.size() - 1;
    add(Text(problem_text(run.problems.front())));
    if (more > 0) add(Text(fmt::format("{} more problem{}, on standard error", more, more == 1 ? "" : "s"), Role::dim));
    return lines;
  }
  if (run.status == CheckStatus::pass) {
    lines = join_wrapped(passing_parts(run, units), width, 2);
  } else {
    for (const Checked& checked : run.requirements) {
      if (!checked.verdict.holds) add(Text(failure_line(run, checked, units)));
    }
    add(run.fix.empty() ? Text("nothing that was tried makes it pass", Role::dim)
                        : Text("try " + run.fix, Role::heading) + Text(fmt::format(" ({})", run.fix_effect)));
    const std::string holding = holding_text(run, units);
    if (!holding.empty()) add(Text(holding, Role::dim));
  }
  if (run.compared) add(Text(changes_text(run, units), Role::dim));
  return lines;
}

}  // namespace

std::string check_headline(const plan::CheckCounts& counts) {
  if (counts.failed + counts.errors == 0) {
    return fmt::format("PASS  {} {}", runs_text(counts.total()), counts.total() == 1 ? "passes" : "pass");
  }
  std::string text = counts.failed > 0 || counts.errors == 0 ? "FAIL  " : "ERROR  ";
  if (counts.failed > 0) {
    text += fmt::format("{} of {} {}", counts.failed, runs_text(counts.total()), counts.failed == 1 ? "fails" : "fail");
  }
  if (counts.errors > 0) {
    text += counts.failed > 0 ? fmt::format(", {} cannot be read", counts.errors)
                              : fmt::format("{} of {} cannot be read", counts.errors, runs_text(counts.total()));
  }
  return text;
}

std::string problem_text(const Diagnostic& problem) {
  std::string place = problem.pointer;
  if (place.empty() && problem.line > 0) place = fmt::format("line {}, column {}", problem.line, problem.column);
  std::string text = place.empty() ? problem.message : fmt::format("{}: {}", place, problem.message);
  if (!problem.way_out.empty()) text += fmt::format("; {}", problem.way_out);
  return text;
}

std::string over_text(const Run& run, const Estimate& estimate, Units units) {
  const std::string line = estimate_headline(run, estimate, units);
  constexpr std::string_view verdict = "DOES NOT FIT";
  const std::size_t begin = line.find_first_not_of(' ', line.rfind(verdict, 0) == 0 ? verdict.size() : 0);
  return line.substr(begin, line.find(" | ") - begin);
}

std::string failure_text(const CheckedRun& run, const plan::Verdict& verdict, Units units) {
  return verdict.requirement == Requirement::fits ? run.over : requirement_sentence(verdict, units);
}

std::string check_text(std::span<const CheckedRun> runs, const Style& style, bool quiet) {
  const plan::CheckCounts counts = plan::count(runs);
  const bool good = counts.failed + counts.errors == 0;
  const std::string head = check_headline(counts);
  const std::size_t word = head.find(' ');
  std::vector<Text> lines = {Text(head.substr(0, word), good ? Role::good : Role::bad) + Text(head.substr(word))};
  if (quiet) return render(lines, style);
  constexpr std::size_t longest_path = 48;
  std::size_t path_width = 0;
  for (const CheckedRun& run : runs) {
    const std::size_t width = display_width(run.path);
    if (width <= longest_path) path_width = std::max(path_width, width);
  }
  const std::size_t page = static_cast<std::size_t>(std::max(style.width, 20));
  constexpr std::size_t word_width = 7;  // "ERROR" and two spaces
  std::size_t indent = word_width + path_width + 3;
  constexpr std::size_t least = 40;  // columns of a readable sentence
  const bool beside = indent + least <= page;
  if (!beside) indent = word_width;
  for (const CheckedRun& run : runs) {
    Text line = pad_right(verdict_word(run.status), word_width) + Text(run.path);
    bool is_first = beside && line.width() + 3 <= indent;
    if (!is_first) lines.push_back(line);
    for (const Text& part : lines_of(run, style.units, page - indent)) {
      lines.push_back((is_first ? pad_right(line, indent) : spaces(indent)) + part);
      is_first = false;
    }
  }
  return render(lines, style);
}

std::string check_csv(std::span<const CheckedRun> runs) {
  std::string out = "path,status,requirement,limit,actual,holds,fix,problem\n";
  for (const CheckedRun& run : runs) {
    const std::string path = csv_field(run.path);
    for (const Diagnostic& problem : run.problems) {
      out += fmt::format("{},{},,,,,,{}\n", path, name(run.status), csv_field(problem_text(problem)));
    }
    // Nothing is required of it.
    if (run.requirements.empty() && run.problems.empty()) out += fmt::format("{},{},,,,,,\n", path, name(run.status));
    for (const Checked& checked : run.requirements) {
      const plan::Verdict& verdict = checked.verdict;
      out += fmt::format("{},{},{},{},{},{},{},\n", path, name(run.status), name(verdict.requirement), verdict.limit,
                         verdict.actual, verdict.holds ? "true" : "false", csv_field(run.fix));
    }
  }
  return out;
}

}  // namespace shardplan::report
