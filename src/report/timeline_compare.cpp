// Other schedules beside the one that is drawn.
#include <fmt/format.h>

#include <algorithm>

#include "shardplan/report/number.hpp"
#include "timeline_parts.hpp"

namespace shardplan::report {
namespace {

using schedule::Alternative;

double most_of(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }

std::string peaks_text(const std::vector<double>& peaks) {
  constexpr std::size_t most_listed = 16;
  if (peaks.size() > most_listed) return fmt::format(" up to {:.4g}", most_of(peaks));
  std::string text;
  for (const double peak : peaks) text += fmt::format(" {:.4g}", peak);
  return text;
}

/// What makes of one schedule another: flags, or the spec's fields with the same times a stage.
std::string change_text(const schedule::Shape& to, const schedule::Shape& from, const TimelineOptions& options) {
  if (!options.from_spec) {
    return fmt::format("--schedule {}{}", name(to.kind), to.v != from.v ? fmt::format(" --vpp {}", to.v) : "");
  }
  std::string text = fmt::format("\"schedule\": \"{}\"", name(to.kind));
  if (to.v != from.v) {
    text += fmt::format(", \"v\": {} with {}/{} of F, B and W each", to.v, from.v, to.v);
  }
  return text;
}

/// Faster, no more parameters, and no more activations or at least none of the memory-hungry kind.
const Alternative* better(const std::vector<Alternative>& all, const Alternative& now, bool same_chunks) {
  const Alternative* best = nullptr;
  for (const Alternative& other : all) {
    if (same_chunks && other.shape.v != now.shape.v) continue;
    if (other.makespan >= now.makespan || other.parameter_copies > now.parameter_copies) continue;
    if (most_of(other.peak_stages) > most_of(now.peak_stages) * (1 + 1e-9)) continue;
    if (best == nullptr || other.makespan < best->makespan) best = &other;
  }
  return best;
}

}  // namespace

std::vector<Text> next_lines(const schedule::StepView& step, const std::vector<Alternative>& all,
                             const TimelineOptions& options) {
  std::vector<std::string> lines;
  const schedule::Shape& shape = step.spec.shape;
  const auto now =
      std::find_if(all.begin(), all.end(), [&](const Alternative& a) { return a.shape.kind == shape.kind; });
  if (now != all.end()) {
    const Alternative* best = better(all, *now, true);
    if (best == nullptr) best = better(all, *now, false);
    if (best != nullptr) {
      // Unit times are of a pass through a chunk: typed, a schedule with more chunks takes longer by their number.
      const double unit = options.from_spec ? 1.0 : static_cast<double>(best->shape.v) / shape.v;
      lines.push_back(fmt::format("{}   bubble {}, makespan {}, in flight{}{}: {}",
                                  change_text(best->shape, shape, options), percent_text(best->bubble),
                                  time_text(unit * best->makespan, options), peaks_text(best->peak_stages),
                                  best->shape.v > 1 ? " full stages" : "", schedule::facts_of(best->shape.kind).helps));
    }
  }
  // (p - 1)/(vm + p - 1) <= 5% where vm >= 19 (p - 1).
  constexpr double small_bubble = 0.05;
  const schedule::ScheduleFacts& facts = schedule::facts_of(shape.kind);
  const bool closed = facts.bubble.passes == 0 && facts.bubble.always && !facts.one_at_a_time;
  if (closed && shape.p > 1 && step.result.bubble_of_total() > small_bubble) {
    int m = (19 * (shape.p - 1) + shape.v - 1) / shape.v;
    if (facts.in_groups) m = (m + shape.p - 1) / shape.p * shape.p;
    lines.push_back(
        shape.v == 1
            ? fmt::format("m >= {} for a bubble <= 5% (19(p-1)); the common \"m >= 20p\" asks for {}", m, 20 * shape.p)
            : fmt::format("m >= {} for a bubble <= 5% (19(p-1)/v, a multiple of p)", m));
  }
  std::vector<Text> texts;
  for (const std::string& line : lines) {
    const Text head(texts.empty() ? "Next  " : "      ", Role::heading);
    bool first = true;
    for (const Text& part : wrap(Text(line), static_cast<std::size_t>(options.style.width) - 6, 2)) {
      texts.push_back((first ? head : spaces(6)) + part);
      first = false;
    }
  }
  return texts;
}

Table alternatives_table(const std::vector<Alternative>& all, ScheduleKind current, const TimelineOptions& options,
                         bool data) {
  Table table({{"schedule"},
               {"vpp", Align::right, {}, 2},
               {"bubble", Align::right, {}, 0, "bubble_fraction"},
               {"makespan", Align::right},
               {"held", Align::right, "full stages"},
               {"parameters", Align::right, "x model", 1}});
  for (const Alternative& row : all) {
    const bool marked = row.shape.kind == current;
    table.add(
        {Text(fmt::format("{}{}", name(row.shape.kind), marked && !data ? " *" : ""),
              marked ? Role::heading : Role::plain),
         Text(std::to_string(row.shape.v)), Text(data ? fmt::format("{:.6g}", row.bubble) : percent_text(row.bubble)),
         Text(data ? fmt::format("{:.10g}", row.makespan) : time_text(row.makespan, options)),
         Text(fmt::format("{:.4g}", most_of(row.peak_stages))), Text(fmt::format("{:.4g}", row.parameter_copies))});
  }
  return table;
}

}  // namespace shardplan::report
