#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <utility>

#include "shardplan/report/number.hpp"
#include "timeline_parts.hpp"

namespace shardplan::report {
namespace {

constexpr std::array<std::string_view, 8> levels = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

/// One character of a row.
struct Cell {
  std::string text;
  Role role = Role::plain;
};
using Cells = std::vector<Cell>;

Role role_of(char letter) {
  switch (letter) {
    case 'F': return Role::parameters;
    case 'B': return Role::activations;
    case 'W': return Role::good;
    default: return Role::heading;
  }
}

/// A part of the step and the columns that it is drawn in.
struct Segment {
  double from = 0;
  double to = 0;
  int column = 0;
  int columns = 0;

  double scale() const noexcept { return columns / (to - from); }
  int column_of(double time) const noexcept {
    const double inside = std::clamp(time, from, to) - from;
    return column + static_cast<int>(std::lround(inside * scale()));
  }
  double middle(int at) const noexcept { return from + (at - column + 0.5) / scale(); }
};

/// What is drawn: one segment, or the two ends of the step around a gap.
struct Layout {
  std::vector<Segment> segments;
  int columns = 0;

  bool has_gap() const noexcept { return segments.size() > 1; }
  double gap_from() const noexcept { return segments.front().to; }
  double gap_to() const noexcept { return segments.back().from; }
};

/// Columns for one unit of time.
struct Scale {
  double readable = 0;  ///< the label of the shortest piece fits
  double unit =
      0;  ///< all times are multiples of it, so that whole columns for it draw every piece alike; 0: they are not

  /// The largest scale up to `most` that draws pieces alike.
  double at_most(double most) const noexcept {
    const double scale = std::min(most, readable);
    const double columns = std::floor(scale * unit + 1e-9);
    return columns >= 1 ? columns / unit : scale;
  }
};

Scale scale_of(const schedule::PipelineSpec& spec) {
  double shortest = std::numeric_limits<double>::infinity();
  const std::array<std::span<const double>, 3> all = {spec.forward, spec.backward, spec.weight};
  for (const std::span<const double> times : all) {
    for (const double time : times) {
      if (time > 0) shortest = std::min(shortest, time);
    }
  }
  if (!std::isfinite(shortest)) return {};
  const auto is_multiple = [shortest](double time) {
    return std::abs(time / shortest - std::round(time / shortest)) < 1e-9;
  };
  bool whole = is_multiple(spec.p2p) && spec.alpha == 1;
  for (const std::span<const double> times : all) whole = whole && std::all_of(times.begin(), times.end(), is_multiple);
  const auto label = static_cast<double>(1 + std::to_string(spec.shape.m - 1).size());
  return {label / shortest, whole ? shortest : 0};
}

/// Until every rank has run two backwards, and from where some rank has two forwards left.
std::pair<double, double> warmup_and_drain(const schedule::StepView& step) {
  double warm = 0;
  double drain = step.result.makespan;
  for (int rank = 0; rank < step.ranks(); ++rank) {
    int backwards = 0;
    double before_last = 0;
    double last = 0;
    for (const Piece& piece : pieces_of(step, rank)) {
      if ((piece.letter == 'B' || piece.letter == '&') && ++backwards == 2) warm = std::max(warm, piece.end);
      if (piece.letter == 'F' || piece.letter == '&') before_last = std::exchange(last, piece.start);
    }
    drain = std::min(drain, before_last);
  }
  return {warm, drain};
}

Layout lay_out(const schedule::StepView& step, const TimelineOptions& options, int columns) {
  const double makespan = step.result.makespan;
  const bool part = options.from > 0 || options.to > 0;
  const double from = std::min(options.from, makespan);
  const double to = options.to > 0 ? std::min(options.to, makespan) : makespan;
  const Scale scale = scale_of(step.spec);
  if (!(to > from) || !(scale.readable > 0)) return {{{0, std::max(makespan, 1.0), 0, columns}}, columns};
  const auto columns_for = [](double time, double at) { return std::max(1, static_cast<int>(std::lround(time * at))); };

  const double span = to - from;
  constexpr int few = 16;
  if (span * scale.readable <= columns + 0.5 || part || step.spec.shape.m <= few) {
    const int width = columns_for(span, scale.at_most(columns / span));
    return {{{from, to, 0, width}}, width};
  }

  // The steady state is left out: as much as fits of warm-up and drain is drawn.
  constexpr int gap = 20;
  const int drawn = std::max(columns - gap, 2);
  auto [left, right] = warmup_and_drain(step);
  right = makespan - right;
  const double best = scale.at_most(drawn / (left + right));
  double more = (drawn / best - left - right) / 2;
  if (scale.unit > 0) more = std::floor(more / scale.unit + 1e-9) * scale.unit;
  left += std::max(more, 0.0);
  right += std::max(more, 0.0);
  constexpr double most_of_it = 0.8;
  if (left + right > most_of_it * makespan) {
    const int width = columns_for(span, scale.at_most(columns / span));
    return {{{from, to, 0, width}}, width};
  }
  const int before = columns_for(left, best);
  const int after = std::min(columns_for(right, best), drawn - before);
  return {{{0, left, 0, before}, {makespan - right, makespan, before + gap, after}}, before + gap + after};
}

void put(Cells& cells, int column, std::string_view text, Role role) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t at = static_cast<std::size_t>(column) + i;
    if (at < cells.size()) cells[at] = {std::string(1, text[i]), role};
  }
}

Text text_of(const Cells& cells) {
  Text line;
  for (std::size_t i = 0; i < cells.size();) {
    std::size_t j = i;
    std::string run;
    while (j < cells.size() && cells[j].role == cells[i].role) run += cells[j++].text;
    line += Text(run, cells[i].role);
    i = j;
  }
  return line;
}

/// The middle of the step that is not drawn: how many forwards run there.
std::string gap_text(const schedule::StepView& step, const Layout& layout, const std::vector<Piece>& pieces) {
  const auto count = std::count_if(pieces.begin(), pieces.end(), [&](const Piece& piece) {
    return (piece.letter == 'F' || piece.letter == '&') && piece.start >= layout.gap_from() &&
           piece.start < layout.gap_to();
  });
  return fmt::format(" ... {} x {} ...", count, schedule::splits_backward(step.spec.shape.kind) ? "F B W" : "F B");
}

Text work_row(const schedule::StepView& step, const Layout& layout, int rank, const Style& style) {
  Cells cells(static_cast<std::size_t>(layout.columns), Cell{style.ascii ? "." : "·", Role::dim});
  const std::vector<Piece> pieces = pieces_of(step, rank);
  for (const Segment& segment : layout.segments) {
    for (const Piece& piece : pieces) {
      if (piece.end <= segment.from || piece.start >= segment.to) continue;
      const int begin = segment.column_of(piece.start);
      const int end = segment.column_of(piece.end);
      if (end <= begin) continue;
      const auto width = static_cast<std::size_t>(end - begin);
      std::string text = piece.label.size() <= width ? piece.label : std::string(1, piece.letter);
      text.resize(width, '-');
      if (piece.chunk % 2 == 1) {
        for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      }
      put(cells, begin, text, role_of(piece.letter));
    }
  }
  if (layout.has_gap()) {
    const Segment& left = layout.segments.front();
    const int begin = left.column + left.columns;
    const auto width = static_cast<std::size_t>(layout.segments.back().column - begin);
    std::string text = gap_text(step, layout, pieces);
    text.resize(width, ' ');
    put(cells, begin, text, Role::dim);
  }
  return text_of(cells);
}

/// Whether a digit can be the count of microbatches itself.
bool counts_fit_digits(const schedule::StepView& step, double most) {
  return step.spec.activation_bytes.empty() && step.spec.shape.v == 1 && most <= 9;
}

Text held_row(const schedule::StepView& step, const Layout& layout, int rank, double most, const Style& style) {
  Cells cells(static_cast<std::size_t>(layout.columns), Cell{" ", Role::plain});
  const std::vector<schedule::HeldPoint> points = schedule::held_over_time(step, rank);
  const bool small_counts = counts_fit_digits(step, most);
  for (const Segment& segment : layout.segments) {
    for (int column = segment.column; column < segment.column + segment.columns; ++column) {
      const double time = segment.middle(column);
      const auto after = std::upper_bound(points.begin(), points.end(), time,
                                          [](double t, const schedule::HeldPoint& point) { return t < point.time; });
      const double held = after == points.begin() ? 0 : std::prev(after)->bytes;
      Cell& cell = cells[static_cast<std::size_t>(column)];
      if (style.ascii) {
        const double digit = small_counts ? std::ceil(held - 1e-9) : std::ceil(9 * held / most - 1e-9);
        cell.text = std::to_string(static_cast<int>(digit));
      } else if (held > 1e-9 * most) {
        const auto level = static_cast<std::size_t>(std::ceil(8 * held / most - 1e-9));
        cell.text = std::string(levels[std::clamp<std::size_t>(level, 1, levels.size()) - 1]);
      }
    }
  }
  return text_of(cells);
}

std::string most_text(const schedule::StepView& step, double most, const TimelineOptions& options) {
  if (options.seconds) return size_with_unit(static_cast<std::int64_t>(most), options.style.units);
  return fmt::format("{:.4g}{}", most / step.spec.shape.v, chunks_per_rank(step.spec.shape) > 1 ? " full stages" : "");
}

Text legend(const schedule::StepView& step, double most, const TimelineOptions& options) {
  const bool ascii = options.style.ascii;
  std::string text = fmt::format("F forward  B input gradient  W weight gradient  {} bubble", ascii ? "." : "·");
  if (chunks_per_rank(step.spec.shape) > 1) text += "  lower case: odd chunks";
  if (ascii) {
    text += counts_fit_digits(step, most) ? "   digits: activations held" : "   digits: activations held (9 = ";
  } else {
    text += "   bars: activations held (█ = ";
  }
  if (text.ends_with("= ")) text += most_text(step, most, options) + ")";
  return Text(text, Role::dim);
}

}  // namespace

std::vector<Text> timeline_lines(const schedule::StepView& step, const TimelineOptions& options) {
  std::vector<Text> lines;
  std::vector<Text> parts;
  const std::string summary = summary_of(step, options);
  for (std::size_t begin = 0; begin <= summary.size();) {
    const std::size_t end = std::min(summary.find(" | ", begin), summary.size());
    parts.emplace_back(summary.substr(begin, end - begin), Role::heading);
    begin = end + 3;
  }
  for (Text& line : join_wrapped(parts, static_cast<std::size_t>(options.style.width), 2))
    lines.push_back(std::move(line));
  if (options.quiet) {
    lines.resize(1);
    return lines;
  }

  const std::size_t digits = std::to_string(step.ranks() - 1).size();
  const std::size_t head = std::string_view("stage ").size() + digits + 1;
  std::size_t digits_held = 0;
  for (std::size_t rank = 0; rank < step.result.peak_inflight.size(); ++rank) {
    digits_held = std::max(digits_held, fmt::format("{:.4g}", stages_held(step, rank)).size());
  }
  const std::size_t tail = std::string_view("|| in flight ").size() + digits_held;
  constexpr int least = 20;
  const int columns = std::min(88, std::max(least, options.style.width - static_cast<int>(head + tail)));
  const Layout layout = lay_out(step, options, columns);
  const double most = most_held(step);
  constexpr int most_with_bars = 16;
  for (int rank = 0; rank < step.ranks(); ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    lines.push_back(pad_right(Text(fmt::format("stage {}", rank)), head) + Text("|") +
                    work_row(step, layout, rank, options.style) + Text("| ") +
                    Text(fmt::format("in flight {:.4g}", stages_held(step, i))));
    if (step.ranks() > most_with_bars || !(most > 0)) continue;
    lines.push_back(spaces(head) + Text("|") + held_row(step, layout, rank, most, options.style) + Text("|"));
  }
  for (const Text& line :
       wrap(legend(step, most, options), static_cast<std::size_t>(options.style.width) - head - 1, 0)) {
    lines.push_back(spaces(head + 1) + line);
  }
  return lines;
}

}  // namespace shardplan::report
