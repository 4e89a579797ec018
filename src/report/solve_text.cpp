#include "shardplan/report/solve_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "facts.hpp"
#include "shardplan/report/number.hpp"
#include "shardplan/report/text.hpp"

namespace shardplan::report {
namespace {

/// The part of the peak that differs most between two estimates.
std::string_view largest_growth(const Estimate& from, const Estimate& to) {
  const auto peak = [](const Estimate& e) {
    const int last = static_cast<int>(e.stages.size()) - 1;
    return parts_of(e.stages[static_cast<std::size_t>(std::clamp(e.peak_stage, 0, last))].peak());
  };
  const auto before = peak(from), after = peak(to);
  std::size_t most = 0;
  for (std::size_t i = 1; i < part_count; ++i) {
    if (after[i] - before[i] > after[most] - before[most]) most = i;
  }
  return part_names[most].word;
}

std::string need_text(const plan::SolveAnswer& answer, Units units) {
  const Need need = need_of(answer.estimate);
  return fmt::format("{} of {} with reserve, peak {} {}", size_text(need.bytes, units, 1),
                     size_with_unit(answer.estimate.capacity_bytes, units),
                     size_text(answer.estimate.peak_bytes, units, 1), peak_place(answer.run, answer.estimate));
}

}  // namespace

std::string solve_text(const plan::SolveAnswer& answer, const Style& style, bool quiet) {
  const std::size_t page = quiet ? std::size_t{1} << 20 : static_cast<std::size_t>(std::max(style.width, 1));
  const plan::Solution& solution = answer.solution;
  const std::string_view goal = answer.largest ? "largest" : "smallest";
  std::vector<Text> lines;
  const auto add = [&](const Text& text) {
    for (Text& line : wrap(text, page, 8)) lines.push_back(std::move(line));
  };
  if (!solution.value) {
    std::string first =
        fmt::format("  {} {} already: {}", answer.word, count_text(solution.next.value_or(0)), answer.why);
    if (!answer.estimate.fits_gpu) {
      first = fmt::format("  {} {}{} needs {}", answer.word, count_text(solution.next.value_or(0)),
                          answer.largest ? " already" : "", need_text(answer, style.units));
    }
    add(Text("NONE", Role::bad) + Text(first));
    std::string lead = "Fix   ";
    for (const plan::Otherwise& other : answer.otherwise) {
      add(Text(fmt::format("{}{}: {} {}", lead, other.flags, answer.word, count_text(other.value.value_or(0)))));
      lead = "      ";
    }
    return render(lines, style);
  }
  const std::string value = count_text(*solution.value);
  Text head = Text(value, Role::heading);
  const bool required = answer.run.require.max_step_s || answer.run.require.min_mfu ||
                        answer.run.require.min_headroom_gib || answer.run.require.max_bubble;
  if (!solution.next && answer.largest && answer.listed) {
    head += Text(fmt::format("  largest legal {}, and it {}: needs {}", answer.word, required ? "holds" : "fits",
                             need_text(answer, style.units)));
  } else if (!solution.next && answer.largest) {
    head += Text(fmt::format("  no limit up to {}: needs {}", answer.limit, need_text(answer, style.units)));
  } else {
    std::string words = fmt::format("  {} {} that {}", goal, answer.word, required ? "holds" : "fits");
    if (answer.step > 1) words += fmt::format(" (step {})", count_text(answer.step));
    head += Text(words + ": needs " + need_text(answer, style.units));
    if (!solution.next) head += Text("; no smaller one is legal");
  }
  if (!answer.otherwise.empty()) {
    const std::optional<std::int64_t>& without = answer.otherwise.front().value;
    head += Text(fmt::format("; without recomputation: {}", without ? count_text(*without) : "none"));
  }
  add(head);
  if (quiet) return render(lines, style);
  if (solution.next) {
    std::string next = fmt::format("        next, {}: {}", count_text(*solution.next), answer.why);
    const std::int64_t growth = need_of(answer.next_estimate).bytes - need_of(answer.estimate).bytes;
    if (growth > 0 && answer.largest) {
      next += fmt::format(" | memory grows {} to there ({})", auto_size(growth, style.units),
                          largest_growth(answer.estimate, answer.next_estimate));
    }
    add(Text(next));
  }
  const ThroughputEstimate& t = answer.estimate.throughput;
  add(Text(fmt::format("        at {}: step {}, {} tokens/s, MFU {} with full scores, {} causal", value,
                       step_scale(answer.run, answer.estimate).with_unit(answer.estimate.time.step_s),
                       short_count(t.tokens_per_s), percent_text(t.mfu), percent_text(t.mfu_causal))));
  return render(lines, style);
}

}  // namespace shardplan::report
