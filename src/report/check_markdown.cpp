// `check` for a comment on a pull request, and what changed since a baseline.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "check_changes.hpp"
#include "shardplan/report/check_text.hpp"
#include "shardplan/report/number.hpp"
#include "shardplan/report/requirement_text.hpp"
#include "shardplan/report/table.hpp"

namespace shardplan::report {
namespace {

using plan::Checked;
using plan::CheckedRun;
using plan::CheckStatus;
using plan::Figures;

std::string size_difference(std::int64_t now, std::int64_t before, Units units) {
  std::string text = signed_size(now - before, units);
  return text.substr(1) == "0.0" ? std::string() : text;
}

std::string points(double now, double before) {
  std::string text = fmt::format("{:+.1f}", 100 * (now - before));
  return text == "+0.0" || text == "-0.0" ? std::string() : text;
}

std::string with_change(std::string text, const std::string& change) {
  return change.empty() ? text : fmt::format("{} ({})", text, change);
}

std::string failures_of(const CheckedRun& run, Units units) {
  std::string text;
  const auto add = [&](const std::string& line) { text += (text.empty() ? "" : "<br>") + line; };
  if (run.status == CheckStatus::error) {
    for (const Diagnostic& problem : run.problems) add(markdown_cell(problem_text(problem)));
    return text;
  }
  for (const Checked& checked : run.requirements) {
    if (!checked.verdict.holds) add(markdown_cell(failure_text(run, checked.verdict, units)));
  }
  if (!run.fix.empty()) add(fmt::format("try `{}` ({})", run.fix, markdown_cell(run.fix_effect)));
  return text;
}

}  // namespace

std::string relative(double now, double before) {
  if (!(before > 0)) return {};
  std::string text = fmt::format("{:+.1f}%", 100 * (now / before - 1));
  return text == "+0.0%" || text == "-0.0%" ? std::string() : text;
}

std::string signed_size(std::int64_t bytes, Units units) {
  return (bytes < 0 ? "-" : "+") + size_text(std::abs(bytes), units, 1);
}

std::string size_change(std::int64_t now, const std::int64_t* before, Units units) {
  return with_change(size_text(now, units, 1), before == nullptr ? "" : size_difference(now, *before, units));
}

std::string percent_change(double now, const double* before) {
  return with_change(percent_text(now), before == nullptr ? "" : points(now, *before));
}

std::string relative_change(const std::string& now_text, double now, const double* before) {
  return with_change(now_text, before == nullptr ? "" : relative(now, *before));
}

std::string changes_text(const CheckedRun& run, Units units) {
  if (run.unknown_baseline) return "baseline: its file is no legal run";
  if (!run.baseline) return "baseline: none, the run is new";
  const Figures& now = run.figures;
  const Figures& before = *run.baseline;
  std::string text;
  const auto add = [&](std::string_view what, const std::string& change, const std::string& more) {
    if (change.empty()) return;
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", what, change, more.empty() ? "" : " (" + more + ")");
  };
  if (now.fits != before.fits) text = now.fits ? "fits now" : "did fit";
  const std::string memory = size_difference(now.peak_bytes, before.peak_bytes, units);
  add("peak", memory.empty() ? memory : fmt::format("{} {}", memory, unit_name(units)),
      relative(static_cast<double>(now.peak_bytes), static_cast<double>(before.peak_bytes)));
  const std::string mfu = points(now.mfu, before.mfu);
  add("MFU", mfu.empty() ? mfu : mfu + " points", "");
  add("step", relative(now.step_s, before.step_s), "");
  if (now.price && before.price) {
    add("price per token", relative(*now.price, *before.price), "");
  } else {
    add("GPU hours per token", relative(now.gpu_hours, before.gpu_hours), "");
  }
  return "baseline: " + (text.empty() ? "no change" : text);
}

std::string check_markdown(std::span<const CheckedRun> runs, const Style& style, bool quiet) {
  const Units units = style.units;
  std::string out = check_headline(plan::count(runs));
  const std::size_t word = out.find(' ');
  out = fmt::format("**{}** {}\n", out.substr(0, word), out.substr(out.find_first_not_of(' ', word)));
  if (quiet) return out;
  const bool priced = std::any_of(runs.begin(), runs.end(), [](const CheckedRun& run) {
    return run.figures.price.has_value() || (run.baseline && run.baseline->price);
  });
  out += fmt::format("\n| | run | peak {} | free {} | MFU | step | GPU hours per 1e12 tokens |{} what failed |\n",
                     unit_name(units), unit_name(units), priced ? " price |" : "");
  out += fmt::format("| --- | --- | ---: | ---: | ---: | ---: | ---: |{} --- |\n", priced ? " ---: |" : "");
  for (const CheckedRun& run : runs) {
    const char* const verdict = run.status == CheckStatus::pass   ? "PASS"
                                : run.status == CheckStatus::fail ? "**FAIL**"
                                                                  : "**ERROR**";
    out += fmt::format("| {} | {} |", verdict, markdown_cell(run.path));
    const Figures& now = run.figures;
    const Figures* const before = run.baseline ? &*run.baseline : nullptr;
    if (run.status == CheckStatus::error) {
      out += fmt::format(" | | | | |{}", priced ? " |" : "");
    } else {
      out +=
          fmt::format(" {} |", size_change(now.peak_bytes, before == nullptr ? nullptr : &before->peak_bytes, units));
      out += fmt::format(" {} |",
                         size_change(now.headroom_bytes, before == nullptr ? nullptr : &before->headroom_bytes, units));
      out += fmt::format(" {} |", percent_change(now.mfu, before == nullptr ? nullptr : &before->mfu));
      out += fmt::format(" {} |", relative_change(seconds_text(now.step_s), now.step_s,
                                                  before == nullptr ? nullptr : &before->step_s));
      out += fmt::format(" {} |", relative_change(fixed_text(now.gpu_hours, 0), now.gpu_hours,
                                                  before == nullptr ? nullptr : &before->gpu_hours));
      if (priced) {
        const double* const earlier = before == nullptr || !before->price ? nullptr : &*before->price;
        out += now.price ? fmt::format(" {} |", relative_change(fixed_text(*now.price, 0), *now.price, earlier))
                         : std::string(" |");
      }
    }
    const std::string failures = failures_of(run, units);
    const bool is_new = run.compared && before == nullptr && run.status != CheckStatus::error;
    const std::string_view news = !is_new ? "" : run.unknown_baseline ? "no baseline: it is no legal run" : "new";
    const std::string last = fmt::format("{}{}{}", news, news.empty() || failures.empty() ? "" : "<br>", failures);
    out += last.empty() ? " |\n" : fmt::format(" {} |\n", last);
  }
  if (std::any_of(runs.begin(), runs.end(), [](const CheckedRun& run) { return run.compared; })) {
    out += "\nIn brackets: the change since the baseline (MFU in points).\n";
  }
  return out;
}

}  // namespace shardplan::report
