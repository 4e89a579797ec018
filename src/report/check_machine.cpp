#include "shardplan/report/check_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "shardplan/report/check_text.hpp"
#include "shardplan/report/requirement_text.hpp"
#include "xml.hpp"

namespace shardplan::report {
namespace {

using plan::Checked;
using plan::CheckedRun;
using plan::CheckStatus;

/// "runs/a.json:7:5", as editors and terminals read it. The published schemas have no attribute for it in a case.
std::string place_text(const std::string& file, int line, int column) {
  if (line <= 0) return file;
  return column > 0 ? fmt::format("{}:{}:{}", file, line, column) : fmt::format("{}:{}", file, line);
}

std::string try_text(const CheckedRun& run) {
  return run.fix.empty() ? std::string() : fmt::format("try {} ({})", run.fix, run.fix_effect);
}

void add_suite(std::string& out, const CheckedRun& run, Units units) {
  const bool error = run.status == CheckStatus::error;
  std::size_t failures = 0;
  for (const Checked& checked : run.requirements) failures += checked.verdict.holds ? 0 : 1;
  const std::string path = xml_text(run.path);
  out += fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\">\n", path,
                     error ? 1 : run.requirements.size(), failures, error ? 1 : 0);
  if (error) {
    out += fmt::format("    <testcase classname=\"{}\" name=\"input\">\n", path);
    std::string all;
    for (const Diagnostic& problem : run.problems) {
      const std::string place = place_text(plan::place_of(run, problem), problem.line, problem.column);
      // The place is there already.
      const Diagnostic plain{problem.file, problem.pointer, problem.message, problem.way_out, 0, 0};
      all += fmt::format("{}: {}\n", place, problem_text(plain));
    }
    out += fmt::format("      <error type=\"input\" message=\"{}\">{}</error>\n    </testcase>\n",
                       xml_text(problem_text(run.problems.front())), xml_text(all));
  }
  for (const Checked& checked : run.requirements) {
    const plan::Verdict& verdict = checked.verdict;
    out += fmt::format("    <testcase classname=\"{}\" name=\"{}\"", path, name(verdict.requirement));
    if (verdict.holds) {
      out += "/>\n";
      continue;
    }
    const std::string missed = failure_text(run, verdict, units);
    const std::string help = try_text(run);
    const std::string text = fmt::format("{}: {}\n{}{}", place_text(run.path, checked.line, checked.column), missed,
                                         help, help.empty() ? "" : "\n");
    out += fmt::format(">\n      <failure type=\"{}\" message=\"{}\">{}</failure>\n    </testcase>\n",
                       name(verdict.requirement), xml_text(missed), xml_text(text));
  }
  out += "  </testsuite>\n";
}

/// The escapes of github.com/actions/toolkit, packages/core/src/command.ts.
std::string github(std::string_view text, bool property) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '%': out += "%25"; break;
      case '\r': out += "%0D"; break;
      case '\n': out += "%0A"; break;
      case ':': out += property ? "%3A" : ":"; break;
      case ',': out += property ? "%2C" : ","; break;
      default: out += c;
    }
  }
  return out;
}

std::string annotation(const std::string& file, int line, int column, std::string_view title,
                       const std::string& message) {
  std::string place;
  if (line > 0) place = fmt::format(",line={}", line);
  if (line > 0 && column > 0) place += fmt::format(",col={}", column);
  return fmt::format("::error file={}{},title={}::{}\n", github(file, true), place,
                     github(fmt::format("shardplan {}", title), true), github(message, false));
}

}  // namespace

std::string check_junit(std::span<const CheckedRun> runs, Units units) {
  std::size_t tests = 0;
  std::size_t failures = 0;
  const plan::CheckCounts counts = plan::count(runs);
  for (const CheckedRun& run : runs) {
    tests += run.status == CheckStatus::error ? 1 : run.requirements.size();
    for (const Checked& checked : run.requirements) failures += checked.verdict.holds ? 0 : 1;
  }
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"shardplan\" tests=\"{}\" failures=\"{}\" errors=\"{}\">\n",
      tests, failures, counts.errors);
  for (const CheckedRun& run : runs) add_suite(out, run, units);
  return out + "</testsuites>\n";
}

std::string check_github(std::span<const CheckedRun> runs, Units units) {
  std::vector<const CheckedRun*> order;
  for (const CheckedRun& run : runs) order.push_back(&run);
  std::stable_sort(order.begin(), order.end(),
                   [](const CheckedRun* a, const CheckedRun* b) { return plan::badness(*a) > plan::badness(*b); });
  std::vector<std::string> errors;
  for (const CheckedRun* const run : order) {
    for (const Diagnostic& problem : run->problems) {
      errors.push_back(
          annotation(plan::place_of(*run, problem), problem.line, problem.column, "input", problem_text(problem)));
    }
    for (const Checked& checked : run->requirements) {
      const plan::Verdict& verdict = checked.verdict;
      if (verdict.holds) continue;
      const std::string help = try_text(*run);
      errors.push_back(annotation(run->path, checked.line, checked.column, name(verdict.requirement),
                                  failure_text(*run, verdict, units) + (help.empty() ? "" : "\n" + help)));
    }
  }
  constexpr std::size_t most = 10;
  const std::size_t shown = errors.size() <= most ? errors.size() : most - 1;
  std::string out;
  for (std::size_t i = 0; i < shown; ++i) out += errors[i];
  if (shown < errors.size()) out += fmt::format("::error title=shardplan::{} more\n", errors.size() - shown);
  const std::string head = check_headline(plan::count(runs));
  return out + fmt::format("::notice title=shardplan::{}\n",
                           github(head.substr(head.find_first_not_of(' ', head.find(' '))), false));
}

}  // namespace shardplan::report
