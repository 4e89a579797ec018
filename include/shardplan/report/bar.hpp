// Bars: letters without colour, blocks with it.
#pragma once

#include <cstddef>
#include <span>

#include "shardplan/report/style.hpp"
#include "shardplan/report/text.hpp"

namespace shardplan::report {

struct BarPart {
  double value = 0;
  char letter = '#';
  Role role = Role::plain;
};

/// Parts one after the other on a scale from 0 to `capacity` over `cells` characters, the free rest dotted. Ends of
/// parts are rounded to whole cells, so a part under half a cell may vanish; the last end is drawn in eighths where
/// there is colour and UTF-8. Where the parts pass the capacity the bar ends in '>'.
Text stacked_bar(std::span<const BarPart> parts, double capacity, std::size_t cells, const Style& style);

/// One quantity: `share` of `cells` characters, nothing after it.
Text share_bar(double share, std::size_t cells, const Style& style);

}  // namespace shardplan::report
