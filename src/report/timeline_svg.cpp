#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "timeline_parts.hpp"
#include "xml.hpp"

namespace shardplan::report {
namespace {

// Pixels.
constexpr double left = 70;
constexpr double width = 1200;
constexpr double block = 22;
constexpr double curve = 18;
constexpr double row = block + curve + 10;
constexpr double top = 40;
constexpr double letter_width = 6.2;

std::string_view fill_of(const Piece& piece) {
  const bool odd = piece.chunk % 2 == 1;
  switch (piece.letter) {
    case 'F': return odd ? "#9ec5f0" : "#4a86d8";
    case 'B': return odd ? "#f5dd94" : "#e8b93c";
    case 'W': return odd ? "#a9d9ae" : "#57a862";
    default: return odd ? "#cbb3e6" : "#9a6fcf";
  }
}

}  // namespace

std::string timeline_svg(const schedule::StepView& step, const TimelineOptions& options) {
  const double makespan = step.result.makespan;
  const double from = std::min(options.from, makespan);
  const double to = options.to > from ? std::min(options.to, makespan) : makespan;
  const double scale = to > from ? width / (to - from) : 0;
  const auto x = [&](double time) { return left + (std::clamp(time, from, to) - from) * scale; };
  const double most = most_held(step);
  const double height = top + row * step.ranks() + 34;

  std::string out;
  const auto add = [&out](auto format, const auto&... values) {
    fmt::format_to(std::back_inserter(out), fmt::runtime(format), values...);
  };
  add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" font-family=\"sans-serif\" "
      "font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
      left + width + 80, height);
  add("<text x=\"8\" y=\"22\" font-size=\"14\">{}, p = {}, m = {}: {}</text>\n", name(step.spec.shape.kind),
      step.spec.shape.p, step.spec.shape.m, xml_text(summary_of(step, options)));
  for (int rank = 0; rank < step.ranks(); ++rank) {
    const double y = top + row * rank;
    add("<text x=\"8\" y=\"{:.1f}\">stage {}</text>\n", y + 15, rank);
    add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" fill=\"#f0f0f0\"/>\n", left, y, width,
        block);
    for (const Piece& piece : pieces_of(step, rank)) {
      if (piece.end <= from || piece.start >= to || piece.end <= piece.start) continue;
      const double begin = x(piece.start);
      const double wide = x(piece.end) - begin;
      add("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.0f}\" fill=\"{}\" stroke=\"#ffffff\" "
          "stroke-width=\"0.4\"><title>{} {}-{}</title></rect>\n",
          begin, y, wide, block, fill_of(piece), xml_text(piece.label), time_text(piece.start, options),
          time_text(piece.end, options));
      if (wide < letter_width * static_cast<double>(piece.label.size()) + 3) continue;
      add("<text x=\"{:.2f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", begin + wide / 2, y + 15,
          xml_text(piece.label));
    }
    const double floor = y + block + curve;
    std::string path = fmt::format("M{:.2f} {:.1f}", x(from), floor);
    for (const schedule::HeldPoint& point : schedule::held_over_time(step, rank)) {
      const double level = most > 0 ? floor - (curve - 2) * point.bytes / most : floor;
      fmt::format_to(std::back_inserter(path), " H{:.2f} V{:.2f}", x(point.time), level);
    }
    fmt::format_to(std::back_inserter(path), " H{:.2f} V{:.1f} Z", x(to), floor);
    add("<path d=\"{}\" fill=\"#d9d9e6\" stroke=\"#77778f\" stroke-width=\"0.6\"/>\n", path);
    add("<text x=\"{:.1f}\" y=\"{:.1f}\">in flight {:.4g}</text>\n", left + width + 8, y + 15,
        stages_held(step, static_cast<std::size_t>(rank)));
  }
  add("<text x=\"{:.0f}\" y=\"{:.1f}\">F forward (blue), B input gradient (yellow), W weight gradient (green), F&amp;B "
      "pair "
      "(violet); odd chunks are lighter; below each stage the activations held</text>\n</svg>\n",
      left, height - 10);
  return out;
}

}  // namespace shardplan::report
