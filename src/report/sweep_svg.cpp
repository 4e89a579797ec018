// A sweep as a picture: curves of one field, a heat map of two.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "shardplan/report/number.hpp"
#include "shardplan/report/sweep_text.hpp"
#include "sweep_parts.hpp"
#include "xml.hpp"

namespace shardplan::report {
namespace {

using plan::PointStatus;
using plan::ResultField;
using plan::Sweep;
using plan::SweepPoint;

// Pixels.
constexpr double left = 90;
constexpr double top = 56;
constexpr double plot_width = 640;
constexpr double plot_height = 150;
constexpr double gap = 46;

class Svg {
 public:
  template <class... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Values>(values)...);
  }
  std::string take() { return std::move(out_) + "</svg>\n"; }

 private:
  std::string out_;
};

void begin(Svg& svg, double width, double height, const std::string& title) {
  svg.add(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" font-family=\"sans-serif\" "
      "font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
      "<text x=\"8\" y=\"22\" font-size=\"14\">{}</text>\n",
      width, height, xml_text(title));
}

/// Dark blue for the worst, green for the best.
std::string color_of(double rank) {
  constexpr std::array<std::array<double, 3>, 3> stops = {{{49, 54, 149}, {69, 160, 180}, {102, 189, 99}}};
  const double at = std::clamp(rank, 0.0, 1.0) * 2;
  const std::size_t low = at >= 1 ? 1 : 0;
  const double part = at - static_cast<double>(low);
  std::string color = "#";
  for (std::size_t i = 0; i < 3; ++i) {
    color += fmt::format("{:02x}", std::lround(stops[low][i] + part * (stops[low + 1][i] - stops[low][i])));
  }
  return color;
}

/// Where the cells and labels of a heat map stand.
struct HeatGrid {
  double cell_width = 0;
  double cell_height = 0;
  double label = 46;      ///< width of the longest label above a column
  double margin = left;   ///< width of the labels before the rows
  bool labelled = false;  ///< the cells have room for their numbers
};

// Letters of 11 pixels are about 6.2 wide, those of the title 14 and about 7.6.
constexpr double letter = 6.2;
constexpr double title_letter = 7.6;

HeatGrid grid_of(const plan::SweepAxis& down, const plan::SweepAxis& across) {
  HeatGrid grid;
  grid.cell_width = std::clamp(900.0 / static_cast<double>(across.values.size()), 9.0, 76.0);
  grid.cell_height = std::clamp(600.0 / static_cast<double>(down.values.size()), 9.0, 30.0);
  grid.labelled = grid.cell_width >= 46 && grid.cell_height >= 15;
  const auto width_of = [](const plan::SweepAxis& axis, std::size_t i, std::size_t spaces) {
    return letter * static_cast<double>(axis.label.size() + spaces + axis_value(axis.shown(i)).size());
  };
  for (std::size_t j = 0; j < across.values.size(); ++j) grid.label = std::max(grid.label, width_of(across, j, 2));
  for (std::size_t i = 0; i < down.values.size(); ++i) grid.margin = std::max(grid.margin, 16 + width_of(down, i, 1));
  return grid;
}

/// One point's cell, top left at x, y.
void heat_cell(Svg& svg, const Sweep& sweep, std::size_t at, const ValueSpan& span, const HeatGrid& grid, double x,
               double y, bool best, Units units) {
  const SweepPoint& point = sweep.points[at];
  const ResultField& field = *sweep.shown.front();
  std::string fill = "#d9d9d9";
  std::string text = "-";
  if (point.status == PointStatus::does_not_fit) {
    fill = "#d73027";
    text = excess_text(point, units);
  } else if (point.status == PointStatus::fits) {
    const double value = plan::figure(point, field);
    fill = color_of(rank_in(span, field, value));
    text = figure_text(field, value, units) + (best ? "*" : "");
  }
  svg.add(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\" stroke=\"#ffffff\" "
      "stroke-width=\"0.5\"><title>{}: {}</title></rect>\n",
      x, y, grid.cell_width, grid.cell_height, fill, xml_text(point_name(sweep, at)), xml_text(text));
  if (!grid.labelled) return;
  svg.add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"{}\">{}</text>\n", x + grid.cell_width / 2,
          y + grid.cell_height / 2 + 4, point.status == PointStatus::illegal ? "#555555" : "#ffffff", xml_text(text));
}

std::string heat_map(const Sweep& sweep, Units units) {
  const plan::SweepAxis& down = sweep.axes[0];
  const plan::SweepAxis& across = sweep.axes[1];
  const ResultField& field = *sweep.shown.front();
  const ValueSpan span = span_of(sweep, field);
  const HeatGrid grid = grid_of(down, across);
  const std::string title = sweep_headline(sweep, units);
  const double columns = grid.cell_width * static_cast<double>(across.values.size());
  const double shown_width = grid.margin + std::max(columns, grid.label) + 20;
  const double width = std::max({shown_width, 640.0, 16 + title_letter * static_cast<double>(title.size())});
  const double height = top + 20 + grid.cell_height * static_cast<double>(down.values.size()) + 40;
  Svg svg;
  begin(svg, width, height, title);
  svg.add("<text x=\"8\" y=\"42\">{}; red: memory beyond the card, {}; grey: illegal</text>\n",
          xml_text(head_of(field, units)), unit_name(units));
  const auto skip = [](double size, double least) { return static_cast<std::size_t>(std::ceil(least / size)); };
  for (std::size_t j = 0; j < across.values.size(); j += skip(grid.cell_width, grid.label)) {
    svg.add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{} {}</text>\n",
            grid.margin + grid.cell_width * (static_cast<double>(j) + 0.5), top + 14, xml_text(across.label),
            xml_text(axis_value(across.shown(j))));
  }
  const std::size_t best = plan::best_point(sweep);
  for (std::size_t i = 0; i < down.values.size(); ++i) {
    const double y = top + 20 + grid.cell_height * static_cast<double>(i);
    if (i % skip(grid.cell_height, 14) == 0) {
      svg.add("<text x=\"8\" y=\"{:.1f}\">{} {}</text>\n", y + grid.cell_height / 2 + 4, xml_text(down.label),
              xml_text(axis_value(down.shown(i))));
    }
    for (std::size_t j = 0; j < across.values.size(); ++j) {
      const double x = grid.margin + grid.cell_width * static_cast<double>(j);
      const std::size_t at = i * across.values.size() + j;
      heat_cell(svg, sweep, at, span, grid, x, y, at == best, units);
    }
  }
  return svg.take();
}

/// One panel: a curve through the legal points, those that do not fit hollow and red.
void panel(Svg& svg, const Sweep& sweep, const ResultField& field, double y, Units units) {
  const plan::SweepAxis& axis = sweep.axes.front();
  double most = 0;
  double least = 0;
  for (const SweepPoint& point : sweep.points) {
    const double value = plan::figure(point, field);
    if (!std::isfinite(value)) continue;
    most = std::max(most, value);
    least = std::min(least, value);
  }
  const double capacity =
      field.word == "need" || field.word == "peak" ? static_cast<double>(plan::common_capacity(sweep)) : 0;
  most = std::max(most, capacity);
  if (!(most > 0) && !(least < 0)) most = 1;
  const double step = plot_width / static_cast<double>(std::max<std::size_t>(axis.values.size(), 1));
  const auto x_of = [&](std::size_t i) { return left + step * (static_cast<double>(i) + 0.5); };
  const auto y_of = [&](double value) {
    return y + plot_height - (value - least) / (most - least) * (plot_height - 12);
  };
  svg.add("<text x=\"{:.1f}\" y=\"{:.1f}\" font-weight=\"bold\">{}</text>\n", left, y - 4,
          xml_text(head_of(field, units)));
  svg.add("<path d=\"M{:.1f} {:.1f} V{:.1f} H{:.1f}\" fill=\"none\" stroke=\"#888888\"/>\n", left, y, y + plot_height,
          left + plot_width);
  svg.add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", left - 6, y_of(most) + 4,
          xml_text(figure_text(field, most, units)));
  svg.add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">0</text>\n", left - 6, y_of(0));
  if (least < 0) {
    svg.add("<path d=\"M{:.1f} {:.1f} H{:.1f}\" stroke=\"#888888\"/>\n", left, y_of(0), left + plot_width);
    svg.add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", left - 6, y + plot_height,
            xml_text(figure_text(field, least, units)));
  }
  if (capacity > 0) {
    svg.add("<path d=\"M{:.1f} {:.1f} H{:.1f}\" stroke=\"#d73027\" stroke-dasharray=\"4 3\"/>\n", left, y_of(capacity),
            left + plot_width);
  }
  std::string path;
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const double value = plan::figure(sweep.points[i], field);
    if (!std::isfinite(value)) continue;
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x_of(i), y_of(value));
  }
  svg.add("<path d=\"{}\" fill=\"none\" stroke=\"#4a86d8\" stroke-width=\"1.5\"/>\n", path);
  const std::size_t every = std::max<std::size_t>(1, axis.values.size() / 12);
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const SweepPoint& point = sweep.points[i];
    if (i % every == 0) {
      svg.add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", x_of(i), y + plot_height + 14,
              xml_text(axis_value(axis.shown(i))));
    }
    const double value = plan::figure(point, field);
    if (!std::isfinite(value)) continue;
    const bool fits = point.status == PointStatus::fits;
    svg.add("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\" stroke=\"{}\"><title>{}: {}{}</title></circle>\n",
            x_of(i), y_of(value), fits ? "#4a86d8" : "#ffffff", fits ? "#4a86d8" : "#d73027",
            xml_text(point_name(sweep, i)), xml_text(figure_text(field, value, units)), fits ? "" : ", does not fit");
  }
}

}  // namespace

std::string sweep_svg(const Sweep& sweep, Units units) {
  if (sweep.axes.size() == 2) return heat_map(sweep, units);
  const double panels = static_cast<double>(sweep.shown.size());
  Svg svg;
  const std::string title = sweep_headline(sweep, units);
  begin(svg, std::max(left + plot_width + 30, 16 + title_letter * static_cast<double>(title.size())),
        top + panels * (plot_height + gap) + 20, title);
  double y = top;
  for (const ResultField* const field : sweep.shown) {
    panel(svg, sweep, *field, y, units);
    y += plot_height + gap;
  }
  svg.add("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}; hollow: does not fit</text>\n",
          left + plot_width / 2, y - 8, xml_text(sweep.axes.front().label));
  return svg.take();
}

}  // namespace shardplan::report
