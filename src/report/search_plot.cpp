#include "search_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "facts.hpp"
#include "shardplan/report/number.hpp"

namespace shardplan::report {
namespace {

/// A value's cell of `cells` between two ends.
std::size_t cell_of(double value, double low, double high, std::size_t cells) {
  if (!(high > low)) return 0;
  const double at = (value - low) / (high - low) * static_cast<double>(cells - 1);
  return static_cast<std::size_t>(std::llround(std::clamp(at, 0.0, static_cast<double>(cells - 1))));
}

}  // namespace

std::vector<Text> front_plot(const plan::SearchReport& report, const Style& style) {
  constexpr std::size_t rows = 12;
  constexpr std::size_t margin = 12;
  const std::size_t page = static_cast<std::size_t>(std::max(style.width, 40));
  const std::size_t columns = std::min<std::size_t>(page - margin, 72);
  if (report.pareto.empty()) return {};
  const auto rate = [](const plan::SearchRow& row) { return row.estimate.throughput.tokens_per_s; };
  const auto need = [](const plan::SearchRow& row) { return static_cast<double>(need_of(row.estimate).bytes); };
  double high = 0, low = 0;
  for (const plan::SearchRow& row : report.pareto) {
    high = std::max(high, rate(row));
    low = low == 0 ? rate(row) : std::min(low, rate(row));
  }
  const auto capacity = static_cast<double>(report.pareto.front().estimate.capacity_bytes);
  std::vector<std::string> grid(rows, std::string(columns, ' '));
  const auto put = [&](const plan::SearchRow& row, char mark) {
    grid[rows - 1 - cell_of(rate(row), low, high, rows)][cell_of(need(row), 0, capacity, columns)] = mark;
  };
  for (const plan::SearchRow& row : report.pareto) put(row, 'o');
  if (!report.best.empty()) put(report.best.front(), '*');
  std::vector<Text> lines;
  for (std::size_t i = 0; i < rows; ++i) {
    std::string label;
    if (i == 0) label = short_count(high, 4);
    if (i == rows - 1 && low < high) label = short_count(low, 4);
    lines.push_back(Text(fmt::format("{:>{}} |", label, margin - 2)) + Text(grid[i]));
  }
  const std::string end = size_with_unit(report.pareto.front().estimate.capacity_bytes, style.units);
  lines.emplace_back(fmt::format("{:>{}} +{}", "tokens/s", margin - 2, std::string(columns, '-')));
  lines.emplace_back(fmt::format("{:>{}}0{:>{}}", "", margin, "needs " + end, columns - 1));
  return lines;
}

}  // namespace shardplan::report
