// Memory per stage, or per part where there is one stage.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sections.hpp"
#include "shardplan/core/runtime.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/report/bar.hpp"
#include "shardplan/report/number.hpp"
#include "shardplan/report/table.hpp"

namespace shardplan::report {
namespace {

constexpr std::size_t most_groups = 7;

/// How much of the table is merged: a narrower page merges more.
enum class Fold : std::uint8_t { none, other, states };

struct PartColumn {
  std::string head;
  char letter;
  Role role;
  std::vector<std::size_t> parts;
};

std::vector<PartColumn> part_columns(Fold fold, bool show_communication) {
  const auto column = [](std::size_t i) {
    const PartName& part = part_names[i];
    return PartColumn{std::string(part.head), part.letter, part.role, {i}};
  };
  std::vector<PartColumn> columns;
  if (fold == Fold::states) {
    columns.push_back({"states", 'S', Role::parameters, {0, 1, 2}});
  } else {
    for (std::size_t i = 0; i < 3; ++i) columns.push_back(column(i));
  }
  columns.push_back(column(3));
  if (fold != Fold::none) {
    columns.push_back({"other", 'O', Role::framework, {4, 5, 6}});
    if (fold == Fold::other) columns.back().letter = 'X';  // O is the optimizer's
    return columns;
  }
  columns.push_back(column(4));
  if (show_communication) {
    columns.push_back(column(communication_part));
  } else {
    columns.back().parts.push_back(communication_part);
  }
  columns.push_back(column(6));
  return columns;
}

std::int64_t sum_of(const StageGroup& group, const PartColumn& column) {
  std::int64_t sum = 0;
  for (const std::size_t part : column.parts) sum += group.parts[part];
  return sum;
}

Text bar_of(const StageGroup& group, const std::vector<PartColumn>& columns, double capacity, std::size_t cells,
            const Style& style) {
  std::vector<BarPart> parts;
  parts.reserve(columns.size());
  for (const PartColumn& column : columns) {
    parts.push_back({static_cast<double>(sum_of(group, column)), column.letter, column.role});
  }
  return stacked_bar(parts, capacity, cells, style);
}

/// "0" and the capacity at the two ends of a bar.
std::string bar_scale(std::size_t cells, std::int64_t capacity_hundredths) {
  const std::string end = hundredths_text(capacity_hundredths);
  if (cells < end.size() + 2) return {};
  return "0" + std::string(cells - 1 - end.size(), ' ') + end;
}

std::string range_text(std::int64_t low, std::int64_t high) {
  return low == high ? hundredths_text(low) : hundredths_text(low) + " to " + hundredths_text(high);
}

struct TableShape {
  std::vector<PartColumn> parts;
  bool layers = true;
  bool in_flight = true;
  std::size_t bar = 0;
};

Table stage_table(const Run& run, const Estimate& estimate, const std::vector<StageGroup>& groups,
                  const std::vector<bool>& shown, const TableShape& shape, const Style& style) {
  const std::int64_t capacity = hundredths_of(estimate.capacity_bytes, style.units);
  std::vector<Column> columns = {Column{std::string(stage_word(run)), Align::left, "", 0, "", 0}};
  if (shape.layers) columns.push_back(right("layers"));
  if (shape.in_flight) columns.push_back(right("in flight"));
  for (const PartColumn& part : shape.parts) columns.push_back(right(part.head));
  columns.push_back(right("total"));
  if (shape.bar > 0) columns.push_back(Column{bar_scale(shape.bar, capacity), Align::left, "", 0, "", 0});

  Table table(columns);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (!shown[i]) {
      const std::size_t begin = i;
      while (i + 1 < groups.size() && !shown[i + 1]) ++i;
      const auto [low, high] = std::minmax_element(groups.begin() + static_cast<std::ptrdiff_t>(begin),
                                                   groups.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                                   [](const auto& a, const auto& b) { return a.total < b.total; });
      table.add_note(Text(fmt::format("  {}-{}  between: {} {} (--detail lists them)",
                                      estimate.stages[groups[begin].first].stage, estimate.stages[groups[i].last].stage,
                                      range_text(low->total, high->total), unit_name(style.units)),
                          Role::dim));
      continue;
    }
    const StageGroup& group = groups[i];
    const Role role = group.peak ? Role::heading : Role::plain;
    std::vector<Text> cells = {Text((group.peak ? " *" : "  ") + group.label(run, estimate), role)};
    if (shape.layers) cells.emplace_back(count_text(group.layers), role);
    if (shape.in_flight) cells.emplace_back(count_text(group.live), role);
    for (const PartColumn& part : shape.parts) cells.emplace_back(hundredths_text(sum_of(group, part)), role);
    cells.emplace_back(hundredths_text(group.total), role);
    if (shape.bar > 0) {
      cells.push_back(bar_of(group, shape.parts, static_cast<double>(capacity), shape.bar, style));
    }
    table.add(std::move(cells));
  }
  return table;
}

/// Which groups have a row: all, or the first, the last and those that matter.
std::vector<bool> shown_groups(const Estimate& estimate, const std::vector<StageGroup>& groups, bool all) {
  std::vector<bool> shown(groups.size(), all || groups.size() <= most_groups);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::size_t binding = static_cast<std::size_t>(estimate.binding_stage);
    if (i < 2 || i + 2 >= groups.size() || groups[i].peak ||
        (groups[i].first <= binding && binding <= groups[i].last)) {
      shown[i] = true;
    }
  }
  return shown;
}

std::vector<Text> stage_lines(const Run& run, const Estimate& estimate, const EstimateTextOptions& options) {
  const Style& style = options.style;
  const std::size_t page = static_cast<std::size_t>(std::max(style.width, 1));
  const std::vector<StageGroup> groups = group_stages(estimate, style.units, !options.detail);
  const std::vector<bool> shown = shown_groups(estimate, groups, options.detail);
  // Buffers under a hundredth of the stage stand among the transient ones.
  const bool communication = std::any_of(groups.begin(), groups.end(), [](const StageGroup& group) {
    return 100 * group.parts[communication_part] >= group.total;
  });
  struct Width {
    Fold fold;
    bool layers;
  };
  TableShape shape;
  for (const auto& [fold, layers] : {Width{Fold::none, true}, Width{Fold::none, false}, Width{Fold::other, true},
                                     Width{Fold::other, false}, Width{Fold::states, false}}) {
    shape = {part_columns(fold, communication), layers, fold != Fold::states, 0};
    const std::size_t width = stage_table(run, estimate, groups, shown, shape, style).width();
    if (width > page) continue;
    const std::size_t room = page - width;
    const std::size_t least = fold == Fold::none ? 16 : 12;
    shape.bar = room >= least + 2 ? std::min<std::size_t>(room - 2, 48) : 0;
    break;
  }
  const Table table = stage_table(run, estimate, groups, shown, shape, style);
  return style.width < 40 ? table.records(style.width) : table.lines(style.width);
}

/// "stages peak at: 0-2 backward, 3 loss" where they differ, else nothing.
std::string peaks_text(const Run& run, const Estimate& estimate) {
  std::string text;
  std::size_t first = 0;
  int spans = 0;
  const std::vector<StageEstimate>& stages = estimate.stages;
  for (std::size_t i = 1; i <= stages.size(); ++i) {
    if (i < stages.size() && stages[i].peak_moment == stages[first].peak_moment) continue;
    text += fmt::format("{}{}{} {}", text.empty() ? "" : ", ", stages[first].stage,
                        i - 1 > first ? fmt::format("-{}", stages[i - 1].stage) : "",
                        moment_text(stages[first].peak_moment));
    first = i;
    ++spans;
  }
  return spans > 1 ? fmt::format("{}s peak at: {}", stage_word(run), text) : std::string();
}

/// What stands behind one part where the run has one stage.
std::string part_note(const Run& run, const Estimate& estimate, std::size_t part) {
  const Training& training = run.training;
  const StageEstimate& stage = estimate.stages.front();
  const auto per = [&](State state, std::int64_t bytes, std::int64_t count) {
    return fmt::format("{} x {} B", long_count(count), bytes_for_one(run, state, bytes, count));
  };
  const std::int64_t trainable = training.peft.active() ? estimate.model.trainable_parameters : stage.parameters;
  switch (part) {
    case 0: {
      const Quantization quant = training.peft.quant;
      return per(State::parameters, stage.peak().parameters, stage.parameters) +
             (training.peft.active() && quant != Quantization::none ? fmt::format(", {} base", name(quant)) : "");
    }
    case 1:
      return fmt::format("{}, {}", per(State::gradients, stage.peak().gradients, trainable), name(training.grad_dtype));
    case 2: return fmt::format("{}, {}", per(State::optimizer, stage.peak().optimizer, trainable), training.optimizer);
    case 3: {
      const std::string recompute = recompute_text(training.recompute);
      return fmt::format("{} x {} tokens{}", count_text(training.micro_batch_size), count_text(training.seq_length),
                         recompute.empty() ? "" : ", recompute " + recompute);
    }
    case 4: {
      const bool gathers = run.parallel.fsdp != Fsdp::none || run.parallel.zero_stage >= 3;
      std::string note =
          stage.peak_moment == Moment::loss ? fmt::format("logits and loss ({})", name(training.loss)) : "";
      if (gathers) note += note.empty() ? "gathered weights, working copies" : ", gathered weights";
      return note.empty() ? "working copies" : note;
    }
    case 6: {
      const Runtime runtime = runtime_of(run.cluster.gpu.vendor);
      return run.num_gpus > 1 ? fmt::format("{}, {}", runtime.context, runtime.collectives)
                              : std::string(runtime.context);
    }
    default: return {};
  }
}

std::vector<Text> part_lines(const Run& run, const Estimate& estimate, const EstimateTextOptions& options) {
  const Style& style = options.style;
  const MemoryParts& peak = estimate.stages.front().peak();
  const auto parts = rounded_parts(peak, style.units);
  const auto bytes = parts_of(peak);
  const std::vector<double> values(bytes.begin(), bytes.end());
  const std::vector<std::int64_t> shares = round_shares(values);

  std::vector<Column> columns = {{"part", Align::left, "", 0, "", 0},
                                 {std::string(unit_name(style.units)), Align::right, "", 0, "", 0},
                                 {"share", Align::right, "", 0, "", 0},
                                 {"", Align::left, "", 2, "", 0},
                                 {"", Align::left, "", 1, "", 0}};
  double largest = 1.0 / 40;
  const auto fill = [&](Table& table, std::size_t cells) {
    for (std::size_t i = 0; i < part_count; ++i) {
      if (bytes[i] == 0) continue;
      const BarPart bar = {values[i], part_names[i].letter, part_names[i].role};
      const double share = values[i] / static_cast<double>(peak.total());
      const std::size_t own = static_cast<std::size_t>(std::llround(share * static_cast<double>(cells)));
      largest = std::max(largest, share);
      table.add({Text(part_names[i].word), hundredths_text(parts[i]),
                 fixed_text(static_cast<double>(shares[i]) / 10, 1) + "%",
                 stacked_bar({&bar, 1}, values[i], own, style), Text(part_note(run, estimate, i), Role::dim)});
    }
    table.add({Text("total", Role::heading),
               Text(hundredths_text(std::accumulate(parts.begin(), parts.end(), std::int64_t{0})), Role::heading),
               "100.0%"});
  };
  // 40 cells are the total, fewer where the notes need the room.
  Table bare(columns);
  fill(bare, 0);
  const std::size_t page = static_cast<std::size_t>(std::max(style.width, 1));
  const std::size_t room = page > bare.width() ? page - bare.width() : 0;
  Table out(columns);
  fill(out, std::min<std::size_t>(40, static_cast<std::size_t>(static_cast<double>(room) / largest)));
  return out.lines(style.width);
}

}  // namespace

std::string StageGroup::label(const Run& run, const Estimate& estimate) const {
  const int from = estimate.stages[first].stage;
  // The last entry of torch.nn.DataParallel stands for every GPU but the first.
  const bool others = facts_of(run.training.framework).single_process && last > 0;
  const int to = others ? run.num_gpus - 1 : estimate.stages[last].stage;
  return from == to ? fmt::format("{}", from) : fmt::format("{}-{}", from, to);
}

std::vector<StageGroup> group_stages(const Estimate& estimate, Units units, bool collapse) {
  std::vector<StageGroup> groups;
  for (std::size_t i = 0; i < estimate.stages.size(); ++i) {
    const StageEstimate& stage = estimate.stages[i];
    StageGroup group;
    group.first = group.last = i;
    group.parts = rounded_parts(stage.peak(), units);
    group.total = std::accumulate(group.parts.begin(), group.parts.end(), std::int64_t{0});
    group.layers = stage.layers;
    group.live = stage.in_flight_microbatches;
    group.moment = stage.peak_moment;
    group.peak = static_cast<std::size_t>(estimate.peak_stage) == i;
    if (collapse && !groups.empty()) {
      StageGroup& before = groups.back();
      if (before.parts == group.parts && before.layers == group.layers && before.live == group.live &&
          before.moment == group.moment) {
        before.last = i;
        before.peak = before.peak || group.peak;
        continue;
      }
    }
    groups.push_back(group);
  }
  return groups;
}

std::vector<Text> section_head(const std::string& text, std::string_view word, const EstimateTextOptions& options) {
  const Text head(text, Role::heading);
  const std::size_t page = static_cast<std::size_t>(std::max(options.style.width, 1));
  const std::string hint = fmt::format("--explain {}", word);
  if (!options.explain_hints || head.width() + 2 + hint.size() > page) return wrap(head, page, 2);
  return {pad_right(head, page - hint.size()) + Text(hint, Role::dim)};
}

std::vector<Text> memory_section(const Run& run, const Estimate& estimate, const EstimateTextOptions& options) {
  const std::string unit(unit_name(options.style.units));
  const std::size_t page = static_cast<std::size_t>(std::max(options.style.width, 1));
  const bool one_stage = estimate.stages.size() == 1;
  std::vector<Text> lines;

  if (one_stage) {
    append(lines,
           section_head(fmt::format("Memory per GPU at the peak {}", peak_place(run, estimate)), "memory", options));
    append(lines, part_lines(run, estimate, options));
  } else {
    append(lines, section_head(fmt::format("Memory per GPU, {}, at each {}'s peak", unit, stage_word(run)), "memory",
                               options));
    append(lines, stage_lines(run, estimate, options));
  }
  const Text bytes(bytes_per_parameter(run, estimate), Role::dim);
  if (!bytes.empty()) append(lines, wrap(bytes, page, 2));
  append(lines,
         join_wrapped({Text(peaks_text(run, estimate), Role::dim), Text(host_text(run, estimate, options.style.units))},
                      page, 0));
  return lines;
}

}  // namespace shardplan::report
