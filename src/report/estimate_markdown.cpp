#include <fmt/format.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "facts.hpp"
#include "sections.hpp"
#include "shardplan/report/estimate_text.hpp"
#include "shardplan/report/number.hpp"
#include "shardplan/report/table.hpp"

namespace shardplan::report {
namespace {

std::string joined(const std::vector<std::string>& parts) {
  std::string line;
  for (const std::string& part : parts) line += (line.empty() ? "" : " - ") + markdown_cell(part);
  return line;
}

std::string memory_table(const Run& run, const Estimate& estimate, const EstimateTextOptions& options) {
  const Units units = options.style.units;
  std::vector<Column> columns = {left(std::string(stage_word(run))), right("layers"), right("in flight")};
  for (const PartName& part : part_names) columns.push_back(right(std::string(part.word)));
  columns.push_back(right(fmt::format("total {}", unit_name(units))));
  columns.push_back(left("peak at"));
  Table table(columns);
  for (const StageGroup& group : group_stages(estimate, units, !options.detail)) {
    std::vector<Text> cells = {group.label(run, estimate) + (group.peak ? " (peak)" : ""), count_text(group.layers),
                               count_text(group.live)};
    for (const std::int64_t part : group.parts) cells.emplace_back(hundredths_text(part));
    cells.emplace_back(hundredths_text(group.total));
    cells.emplace_back(moment_text(group.moment));
    table.add(std::move(cells));
  }
  return table.markdown();
}

std::string time_table(const Run& run, const Estimate& estimate) {
  const TimeScale scale = step_scale(run, estimate);
  const double quantum = scale.quantum();
  const std::vector<TimeRow> rows = time_rows(run, estimate);
  std::vector<double> times;
  times.reserve(rows.size());
  for (const TimeRow& row : rows) times.push_back(row.time_s);
  const std::vector<std::int64_t> rounded = round_parts(times, quantum);
  const std::vector<std::int64_t> shares = round_shares(times);
  Table table({left("step"), right(std::string(scale.unit)), right("share"), left("")});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    table.add({rows[i].label, scale.text(static_cast<double>(rounded[i]) * quantum),
               fixed_text(static_cast<double>(shares[i]) / 10, 1) + "%", rows[i].note});
  }
  const std::int64_t total = std::accumulate(rounded.begin(), rounded.end(), std::int64_t{0});
  table.add({"total", scale.text(static_cast<double>(total) * quantum), "100.0%"});
  return table.markdown();
}

std::string communication_table(const Run& run, const Estimate& estimate, Units units) {
  const TimeScale scale = step_scale(run, estimate);
  Table table({left("name"), left("group"), right("ranks"), left("link"), left("collective"), right("calls"),
               right("message"), right("sent"), right(fmt::format("time {}", scale.unit)),
               right(fmt::format("exposed {}", scale.unit))});
  for (const CommunicationCall& call : estimate.communication) {
    table.add({call.name, name(call.group), count_text(call.group_size), link_text(run, call.scope),
               collective_text(call.op), count_text(call.calls_per_step), auto_size(call.message_bytes, units),
               auto_size(call.sent_bytes_per_step, units), scale.text(call.time_s), scale.text(call.exposed_s)});
  }
  return table.markdown();
}

}  // namespace

std::string estimate_markdown(const Run& run, const Estimate& estimate, const EstimateTextOptions& options) {
  const Units units = options.style.units;
  std::string headline = estimate_headline(run, estimate, units);
  // Bold verdict, the rest of the line as it is in text.
  const std::size_t gap = headline.find("  ");
  std::string out = fmt::format("**{}** {}\n", headline.substr(0, gap), markdown_cell(headline.substr(gap + 2)));
  if (options.quiet) return out;

  out += "\n" + joined(model_line(run, estimate)) + "  \n" + joined(layout_line(run, options.defaults)) + "\n";
  out += fmt::format("\nMemory per GPU, {}:\n\n{}", unit_name(units), memory_table(run, estimate, options));
  for (const std::string& note : {bytes_per_parameter(run, estimate), host_text(run, estimate, units)}) {
    if (!note.empty()) out += "\n" + markdown_cell(note) + "\n";
  }
  out += fmt::format("\nTime of a step{}:\n\n{}", is_measured(run) ? "" : " (about)", time_table(run, estimate));
  out += "\n" + markdown_cell(mfu_text(run, estimate)) + "\n";
  if (options.detail && estimate.communication.count > 0) {
    out += "\nCommunication of one GPU per step:\n\n" + communication_table(run, estimate, units);
  }
  if (!options.actions.empty()) {
    Table table({left(estimate.fits ? "next" : "fix"), left("effect"), left("reason")});
    for (std::size_t i = 0; i < options.actions.size() && i < 3; ++i) {
      table.add({options.actions[i].flags, options.actions[i].effect, options.actions[i].reason});
    }
    out += "\n" + table.markdown();
  }
  return out;
}

}  // namespace shardplan::report
