#include "shardplan/report/bar.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

namespace shardplan::report {
namespace {

constexpr std::array<std::string_view, 8> eighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};

std::string blocks(std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += "█";
  return out;
}

bool draws_blocks(const Style& style) noexcept { return style.color && !style.ascii; }

}  // namespace

Text stacked_bar(std::span<const BarPart> parts, double capacity, std::size_t cells, const Style& style) {
  if (cells == 0 || !(capacity > 0)) return {};
  const double scale = static_cast<double>(cells) / capacity;
  double total = 0;
  for (const BarPart& part : parts) total += part.value * scale;
  const bool over = total > static_cast<double>(cells) * (1 + 1e-12);
  const std::size_t room = over ? cells - 1 : cells;
  const bool draw_blocks = draws_blocks(style);

  Text bar;
  std::size_t used = 0;
  double end = 0;
  Role last = Role::plain;
  // With blocks the cell that the last part ends in is drawn below, in eighths.
  const std::size_t whole = draw_blocks && !over ? static_cast<std::size_t>(total) : room;
  for (const BarPart& part : parts) {
    end += part.value * scale;
    const std::size_t stop = std::min(static_cast<std::size_t>(std::llround(end)), whole);
    if (stop > used) bar += Text(draw_blocks ? blocks(stop - used) : std::string(stop - used, part.letter), part.role);
    if (stop > used || std::llround(end) > static_cast<long long>(used)) last = part.role;
    used = std::max(used, stop);
  }
  if (draw_blocks && !over) {
    const std::size_t eighth = static_cast<std::size_t>(std::llround((total - static_cast<double>(used)) * 8));
    if (eighth > 0 && used < cells) {
      bar += Text(eighth >= 8 ? std::string_view("█") : eighths[eighth], last);
      ++used;
    }
  }
  if (over) return bar + spaces(room - used) + Text(">", Role::bad);
  std::string free;
  for (std::size_t i = used; i < cells; ++i) free += draw_blocks ? "·" : ".";
  return bar + Text(free, Role::dim);
}

Text share_bar(double share, std::size_t cells, const Style& style) {
  const double length = std::clamp(share, 0.0, 1.0) * static_cast<double>(cells);
  if (!draws_blocks(style)) return Text(std::string(static_cast<std::size_t>(std::llround(length)), '#'));
  const std::size_t eighth = static_cast<std::size_t>(std::llround(length * 8));
  return Text(blocks(eighth / 8) + std::string(eighths[eighth % 8]));
}

}  // namespace shardplan::report
