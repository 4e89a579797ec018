// Several values of a field on the command line: "1,2,4,8", "1..8", "64..1024*2", "8..64+8", and mixtures.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/core/number_text.hpp"

namespace shardplan::io {

/// A..B[*K|+K]
template <class Number>
struct Range {
  Number first{};
  Number last{};
  Number by = 1;
  bool multiplies = false;
};

/// Nothing where the text is no range: a path may hold two points as well.
template <class Number>
std::optional<Range<Number>> parse_range(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(dots + 2);
  const std::size_t sign = rest.find_first_of("*+");
  const auto first = number_of<Number>(text.substr(0, dots)), last = number_of<Number>(rest.substr(0, sign));
  if (!first || !last) return std::nullopt;
  Range<Number> range{*first, *last};
  if (sign == std::string_view::npos) return range;
  const auto by = number_of<Number>(rest.substr(sign + 1));
  if (!by) return std::nullopt;
  range.by = *by;
  range.multiplies = rest[sign] == '*';
  return range;
}

/// Why a range has no values, or never ends; empty: it is a good one.
template <class Number>
std::string_view range_problem(const Range<Number>& range) {
  if (range.last < range.first) return "it goes down: the smaller end comes first";
  if (range.multiplies && (range.by <= 1 || range.first <= 0)) return "*K needs K above 1 and a first value above 0";
  if (!range.multiplies && range.by <= 0) return "+K needs K above 0";
  return {};
}

/// The pieces between commas, without spaces around them.
std::vector<std::string_view> list_items(std::string_view text);

/// Every number of a list of numbers and ranges, ascending, each once. "A..B" steps by 1, "A..B+K" by K, "A..B*K"
/// multiplies by K. `flag`: for messages ("--tp"). At most 100,000 numbers, each from `least` on.
Result<std::vector<std::int64_t>> parse_integers(std::string_view flag, std::string_view text, std::int64_t least = 1);

}  // namespace shardplan::io
