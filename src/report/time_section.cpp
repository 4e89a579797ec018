// The step's time by what it goes to, and the MFU conventions.
#include <fmt/format.h>

#include <algorithm>

#include "sections.hpp"
#include "shardplan/report/bar.hpp"
#include "shardplan/report/number.hpp"
#include "shardplan/report/table.hpp"

namespace shardplan::report {
namespace {

constexpr std::size_t most_rows = 7;

/// One row that names them for the smallest, where there are more rows than one screen has room for.
void merge_smallest(std::vector<TimeRow>& rows) {
  if (rows.size() <= most_rows) return;
  TimeRow rest{"rest", 0, "", false};
  for (std::size_t i = most_rows - 1; i < rows.size(); ++i) {
    rest.time_s += rows[i].time_s;
    rest.note += (rest.note.empty() ? "" : ", ") + rows[i].label;
  }
  rows.resize(most_rows - 1);
  rows.push_back(rest);
}

}  // namespace

std::vector<Text> time_section(const Run& run, const Estimate& estimate, const EstimateTextOptions& options) {
  const Style& style = options.style;
  const std::size_t page = static_cast<std::size_t>(std::max(style.width, 1));
  const TimeScale scale = step_scale(run, estimate);
  std::vector<TimeRow> rows = time_rows(run, estimate);
  if (!options.detail) merge_smallest(rows);

  std::vector<double> times;
  double longest = 0;
  for (const TimeRow& row : rows) {
    times.push_back(row.time_s);
    longest = std::max(longest, row.time_s / estimate.time.step_s);
  }
  const double quantum = scale.quantum();
  const std::vector<std::int64_t> rounded = round_parts(times, quantum);
  const std::vector<std::int64_t> shares = round_shares(times);

  const auto build = [&](std::size_t cells, bool notes) {
    std::vector<Column> columns(notes ? 5 : 4);
    columns[1].align = columns[2].align = Align::right;
    columns[3].fold = 1;
    Table table(std::move(columns));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::vector<Text> cells_of_row = {rows[i].label, scale.with_unit(static_cast<double>(rounded[i]) * quantum),
                                        fixed_text(static_cast<double>(shares[i]) / 10, 1) + "%",
                                        share_bar(times[i] / estimate.time.step_s, cells, style)};
      if (notes) cells_of_row.emplace_back(rows[i].note, Role::dim);
      table.add(std::move(cells_of_row));
    }
    return table;
  };
  // 40 cells are the whole step, fewer where the notes need the room; on a narrow page the notes go before the bar.
  const bool notes = build(0, true).width() <= page;
  const std::size_t bare = build(0, notes).width();
  const std::size_t room = page > bare ? page - bare : 0;
  const bool bar = room >= 10 && longest > 0;
  const std::size_t cells =
      bar ? std::min<std::size_t>(40, static_cast<std::size_t>(static_cast<double>(room) / longest)) : 0;
  const Table table = build(cells, notes);

  std::string head = fmt::format("Step {}{}", is_measured(run) ? "" : "about ", scale.with_unit(estimate.time.step_s));
  if (estimate.time.band_high_s > estimate.time.band_low_s) {
    head += fmt::format(" ({}-{} in 80%)", scale.text(estimate.time.band_low_s), scale.text(estimate.time.band_high_s));
  }
  if (estimate.stages.size() > 1) head += fmt::format(", mean over {}s", stage_word(run));
  std::vector<Text> lines = section_head(head, "time", options);
  for (Text& line : table.lines(style.width)) lines.push_back(std::move(line));
  for (Text& line : wrap(Text(mfu_text(run, estimate)), page, 2)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace shardplan::report
