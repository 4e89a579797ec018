#include "shardplan/report/sweep_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "shardplan/core/number_text.hpp"
#include "shardplan/report/number.hpp"
#include "shardplan/report/table.hpp"
#include "shardplan/report/text.hpp"
#include "sweep_parts.hpp"

namespace shardplan::report {
namespace {

using plan::PointStatus;
using plan::Quantity;
using plan::ResultField;
using plan::Sweep;
using plan::SweepPoint;

constexpr std::array heat = {Role::heat1, Role::heat2, Role::heat3, Role::heat4, Role::heat5, Role::heat6};

Text cell_of(const ResultField& field, const ValueSpan& span, const SweepPoint& point, bool best, const Style& style) {
  if (point.status == PointStatus::illegal) return {"-", Role::dim};
  if (point.status == PointStatus::does_not_fit) return {excess_text(point, style.units), Role::bad};
  const double value = plan::figure(point, field);
  const std::string text = figure_text(field, value, style.units);
  if (best) return {text + "*", Role::heading};
  if (!style.palette || field.better == 0) return {text};
  const double rank = rank_in(span, field, value);
  const auto step = static_cast<std::size_t>(std::lround(rank * (heat.size() - 1)));
  return {text, heat[step]};
}

/// Two axes: rows and columns.
Table grid_of(const Sweep& sweep, const ResultField& field, const Style& style, bool marks) {
  const plan::SweepAxis& down = sweep.axes[0];
  const plan::SweepAxis& across = sweep.axes[1];
  constexpr int least_width = 8;
  std::vector<Column> columns = {
      {head_of(field, style.units) + (plan::count(sweep, PointStatus::does_not_fit) > 0
                                          ? fmt::format(", or {} over the card", unit_name(style.units))
                                          : std::string())}};
  for (const std::string& value : across.values) {
    columns.push_back({fmt::format("{} {}", across.label, axis_value(value)), Align::right, {}, 0, {}, least_width});
  }
  Table table(columns);
  const std::size_t best = plan::best_point(sweep);
  const ValueSpan span = span_of(sweep, field);
  const bool is_objective = &field == plan::objective_of(sweep);
  for (std::size_t i = 0; i < down.values.size(); ++i) {
    std::vector<Text> cells = {Text(fmt::format("{} {}", down.label, axis_value(down.shown(i))))};
    for (std::size_t j = 0; j < across.values.size(); ++j) {
      const std::size_t at = i * across.values.size() + j;
      cells.push_back(cell_of(field, span, sweep.points[at], marks && is_objective && at == best, style));
    }
    table.add(std::move(cells));
  }
  return table;
}

constexpr std::size_t card_cells = 16;
constexpr std::size_t bar_cells = 25;
constexpr int bar_fold = 100;

/// Memory against the card: "######          |", "################|#######>".
Text memory_bar(const SweepPoint& point, const Style& style) {
  if (point.status == PointStatus::illegal || point.capacity_bytes <= 0) return {};
  const double used = static_cast<double>(point.capacity_bytes - point.headroom_bytes);
  const double share = used / static_cast<double>(point.capacity_bytes);
  const auto cells = static_cast<std::size_t>(std::clamp(share * card_cells + 0.5, 0.0, 1000.0));
  const std::string block = style.color && !style.ascii ? "█" : "#";
  const auto blocks = [&](std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += block;
    return text;
  };
  if (point.status == PointStatus::fits || share <= 1) {
    const std::size_t inside = std::min(cells, card_cells);
    return Text(blocks(inside), Role::activations) + spaces(card_cells - inside) + Text("|", Role::dim);
  }
  const std::size_t room = bar_cells - card_cells - 2;
  const std::size_t outside = std::min(std::max(cells, card_cells) - card_cells, room);
  return Text(blocks(card_cells), Role::activations) + Text("|", Role::dim) + Text(blocks(outside), Role::bad) +
         (outside == room ? Text(">", Role::bad) : Text());
}

/// A row a point. With one axis the memory column gets a bar.
Table rows_of(const Sweep& sweep, const Style& style, bool bars) {
  std::vector<Column> columns;
  for (const plan::SweepAxis& axis : sweep.axes) {
    const bool numbers = std::all_of(axis.values.begin(), axis.values.end(),
                                     [](const std::string& value) { return double_from_chars(value).has_value(); });
    columns.push_back({axis.label, numbers ? Align::right : Align::left});
  }
  const std::int64_t capacity = plan::common_capacity(sweep);
  const ResultField* const need = plan::find_result("need");
  bars = bars && capacity > 0;
  for (const ResultField* const field : sweep.shown) {
    // On narrow pages the bar goes first, then the last of more than three figures.
    const auto place = static_cast<int>(columns.size() - sweep.axes.size());
    columns.push_back({head_of(*field, style.units), Align::right, {}, place > 3 ? place : 0});
    if (bars && field == need) {
      const std::string end = size_text(capacity, style.units);
      columns.push_back(
          {fmt::format("0{:>{}}", end, card_cells + end.size() / 2), Align::left, {}, bar_fold, {}, bar_cells});
    }
  }
  columns.push_back({""});
  Table table(columns);
  const std::size_t best = plan::best_point(sweep);
  const ResultField* const objective = plan::objective_of(sweep);
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const SweepPoint& point = sweep.points[i];
    const std::vector<std::size_t> places = plan::places_of(sweep, i);
    std::vector<Text> cells;
    for (std::size_t axis = 0; axis < places.size(); ++axis) {
      cells.emplace_back(axis_value(sweep.axes[axis].shown(places[axis])));
    }
    for (const ResultField* const field : sweep.shown) {
      const bool legal = point.status != PointStatus::illegal;
      cells.push_back(legal ? Text(figure_text(*field, plan::figure(point, *field), style.units))
                            : Text("-", Role::dim));
      if (bars && field == need) cells.push_back(memory_bar(point, style));
    }
    if (point.status == PointStatus::illegal) {
      cells.emplace_back(std::string(name(point.rule)), Role::dim);
    } else if (point.status == PointStatus::does_not_fit) {
      const std::string excess = excess_text(point, style.units);
      cells.emplace_back(
          excess.front() == '+' ? fmt::format("{} {} over", excess.substr(1), unit_name(style.units)) : excess,
          Role::bad);
    } else if (i == best && objective != nullptr) {
      cells.emplace_back("<- " + best_words(*objective), Role::heading);
    }
    table.add(std::move(cells));
  }
  return table;
}

/// "4 illegal, batch_multiple: 1024 is not a multiple of ..."
std::vector<std::string> remarks_of(const Sweep& sweep) {
  std::vector<std::string> remarks;
  for (const auto& broken : sweep.broken) {
    const auto count = std::count_if(sweep.points.begin(), sweep.points.end(), [&](const SweepPoint& point) {
      return point.status == PointStatus::illegal && point.rule == broken.first;
    });
    remarks.push_back(fmt::format("{} illegal ({}): {}", count, name(broken.first), broken.second));
  }
  const ResultField* const price = plan::find_result("price");
  const bool priced = std::any_of(sweep.points.begin(), sweep.points.end(),
                                  [&](const SweepPoint& point) { return std::isfinite(plan::figure(point, *price)); });
  if (!priced && std::count(sweep.shown.begin(), sweep.shown.end(), price) > 0) {
    remarks.emplace_back("the cluster states no price: --set cluster.price_per_gpu_hour=2.5");
  }
  if (sweep.axes.size() != 1 || sweep.axes[0].pointer != "/training/seq_length") return remarks;
  const ResultField& mfu = *plan::find_result("mfu");
  const ResultField& tokens = *plan::find_result("tokens");
  const bool both = std::count(sweep.shown.begin(), sweep.shown.end(), &mfu) > 0 &&
                    std::count(sweep.shown.begin(), sweep.shown.end(), &tokens) > 0;
  for (std::size_t i = 1; both && i < sweep.points.size(); ++i) {
    const SweepPoint& before = sweep.points[i - 1];
    const SweepPoint& after = sweep.points[i];
    if (plan::figure(after, mfu) > plan::figure(before, mfu) &&
        plan::figure(after, tokens) < plan::figure(before, tokens)) {
      remarks.emplace_back(
          "MFU rises while tokens/s falls: scores counted in full are half wasted under a causal mask");
      break;
    }
  }
  return remarks;
}

bool is_grid(const Sweep& sweep) { return sweep.axes.size() == 2 && !sweep.shown.empty(); }

}  // namespace

std::string axis_value(const std::string& value) {
  if (value.size() > 1 && value.front() == '"' && value.back() == '"') return value.substr(1, value.size() - 2);
  const std::optional<double> number = double_from_chars(value);
  constexpr double exact = 9e15;
  if (number && std::floor(*number) == *number && std::abs(*number) < exact &&
      value.find_first_of(".eE") == std::string::npos) {
    return count_text(static_cast<std::int64_t>(*number), 1000);
  }
  return value;
}

std::string point_name(const Sweep& sweep, std::size_t point) {
  std::string text;
  const std::vector<std::size_t> places = plan::places_of(sweep, point);
  for (std::size_t axis = 0; axis < places.size(); ++axis) {
    text += fmt::format("{}{} {}", axis == 0 ? "" : ", ", sweep.axes[axis].label,
                        axis_value(sweep.axes[axis].shown(places[axis])));
  }
  return text;
}

std::string best_words(const ResultField& objective) {
  return fmt::format("{} {}", objective.better > 0 ? "most" : "least", objective.head);
}

std::string head_of(const ResultField& field, Units units) {
  return field.quantity == Quantity::bytes ? fmt::format("{} {}", field.head, unit_name(units))
                                           : std::string(field.head);
}

std::string excess_text(const SweepPoint& point, Units units) {
  if (point.headroom_bytes >= 0) return "host";  // the card holds it, host memory or NVMe does not
  return "+" + size_text(-point.headroom_bytes, units, 1);
}

ValueSpan span_of(const Sweep& sweep, const ResultField& field) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  ValueSpan span{infinite, -infinite};
  for (const SweepPoint& point : sweep.points) {
    const double value = plan::figure(point, field);
    if (point.status != PointStatus::fits || !std::isfinite(value)) continue;
    span.least = std::min(span.least, value);
    span.most = std::max(span.most, value);
  }
  return span;
}

double rank_in(const ValueSpan& span, const ResultField& field, double value) noexcept {
  if (!(span.most > span.least) || !std::isfinite(value)) return 1;
  const double share = std::clamp((value - span.least) / (span.most - span.least), 0.0, 1.0);
  return field.better < 0 ? 1 - share : share;
}

std::string figure_text(const ResultField& field, double value, Units units) {
  if (!std::isfinite(value)) return "?";
  switch (field.quantity) {
    case Quantity::bytes: return size_text(static_cast<std::int64_t>(value), units, 1);
    case Quantity::seconds: return seconds_text(value);
    case Quantity::fraction: return percent_text(value);
    case Quantity::count: return count_text(static_cast<std::int64_t>(value), 1000);
    case Quantity::rate: return value >= 100'000 ? short_count(value, 4) : fixed_text(value, value < 100 ? 1 : 0, 1000);
    case Quantity::amount: return fixed_text(value, 0, 1000);
  }
  return {};
}

namespace {

/// "tp 1, 2, 4; gbs 4 .. 40,000 (10,000 values)"
std::string varied_text(const Sweep& sweep) {
  constexpr std::size_t most_named = 6;
  std::string text;
  for (const plan::SweepAxis& axis : sweep.axes) {
    text += fmt::format("{}{} ", text.empty() ? "" : "; ", axis.label);
    const std::size_t count = axis.values.size();
    if (count > most_named) {
      text += fmt::format("{} .. {} ({} values)", axis_value(axis.shown(0)), axis_value(axis.shown(count - 1)),
                          count_text(static_cast<std::int64_t>(count)));
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + axis_value(axis.shown(i));
  }
  return text;
}

}  // namespace

std::string sweep_headline(const Sweep& sweep, Units units) {
  const std::size_t fit = plan::count(sweep, PointStatus::fits);
  const std::string counts = fmt::format(" | {} of {} fit", fit, sweep.points.size());
  if (fit == 0) {
    const std::size_t nearest = plan::smallest_point(sweep);
    const SweepPoint& point = sweep.points[nearest];
    const std::string lacks = point.headroom_bytes < 0
                                  ? fmt::format("{} over", size_with_unit(-point.headroom_bytes, units, 1))
                                  : std::string("host memory or NVMe is too small");
    return fmt::format("NOTHING FITS  nearest is {}: {}{}", point_name(sweep, nearest), lacks, counts);
  }
  const std::size_t best = plan::best_point(sweep);
  if (best == sweep.points.size()) return "SWEEP  " + varied_text(sweep) + counts;
  const SweepPoint& point = sweep.points[best];
  std::string text = fmt::format("BEST  {}: ", point_name(sweep, best));
  const ResultField* const objective = plan::objective_of(sweep);
  if (objective != nullptr && objective->quantity != Quantity::bytes) {
    text += fmt::format("{} {}, ", objective->head, figure_text(*objective, plan::figure(point, *objective), units));
  }
  return text + fmt::format("{} of {} needed{}", size_text(point.capacity_bytes - point.headroom_bytes, units, 1),
                            size_with_unit(point.capacity_bytes, units), counts);
}

std::string sweep_text(const Sweep& sweep, const Style& style, bool quiet) {
  const std::string head = sweep_headline(sweep, style.units);
  const std::size_t word = head.find("  ");
  const Role role = head.rfind("NOTHING", 0) == 0 ? Role::bad : head.rfind("BEST", 0) == 0 ? Role::good : Role::heading;
  std::vector<Text> lines = {Text(head.substr(0, word), role) + Text(head.substr(word))};
  if (quiet) return render(lines, style);
  const std::size_t page = static_cast<std::size_t>(std::max(style.width, 20));
  bool grids = is_grid(sweep);
  for (const ResultField* const field : sweep.shown) {
    grids = grids && grid_of(sweep, *field, style, true).width() <= page;
  }
  if (grids) {
    for (const ResultField* const field : sweep.shown) {
      if (field != sweep.shown.front()) lines.emplace_back();
      for (Text& line : grid_of(sweep, *field, style, true).lines(style.width)) lines.push_back(std::move(line));
    }
  } else {
    for (Text& line : rows_of(sweep, style, sweep.axes.size() == 1).lines(style.width))
      lines.push_back(std::move(line));
  }
  for (const std::string& remark : remarks_of(sweep)) {
    for (Text& line : wrap(Text(remark, Role::dim), page, 2)) lines.push_back(std::move(line));
  }
  return render(lines, style);
}

std::string sweep_markdown(const Sweep& sweep, const Style& style, bool quiet) {
  const std::string head = sweep_headline(sweep, style.units);
  const std::size_t word = head.find("  ");
  std::string out = fmt::format("**{}** {}\n", head.substr(0, word), markdown_cell(head.substr(word + 2)));
  if (quiet) return out;
  Style plain = style;
  plain.color = plain.palette = false;
  if (is_grid(sweep)) {
    for (const ResultField* const field : sweep.shown) out += "\n" + grid_of(sweep, *field, plain, false).markdown();
  } else {
    out += "\n" + rows_of(sweep, plain, false).markdown();
  }
  for (const std::string& remark : remarks_of(sweep)) out += fmt::format("\n{}\n", markdown_cell(remark));
  return out;
}

std::string sweep_csv(const Sweep& sweep) {
  std::string out;
  for (const plan::SweepAxis& axis : sweep.axes) out += csv_field(axis.label) + ",";
  out += "status,rule";
  for (const ResultField& field : plan::result_fields()) {
    out += "," + plan::key_of(field);
  }
  out += "\n";
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const SweepPoint& point = sweep.points[i];
    const std::vector<std::size_t> places = plan::places_of(sweep, i);
    for (std::size_t axis = 0; axis < places.size(); ++axis)
      out += csv_field(sweep.axes[axis].shown(places[axis])) + ",";
    const bool legal = point.status != PointStatus::illegal;
    out += fmt::format("{},{}", name(point.status), legal ? std::string_view() : name(point.rule));
    for (const ResultField& field : plan::result_fields()) {
      const double value = plan::figure(point, field);
      const bool whole = field.quantity == Quantity::bytes || field.quantity == Quantity::count;
      out += !std::isfinite(value) ? "," : whole ? fmt::format(",{:.0f}", value) : fmt::format(",{}", value);
    }
    out += "\n";
  }
  return out;
}

}  // namespace shardplan::report
