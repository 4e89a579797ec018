#include "shardplan/io/ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace shardplan::io {
namespace {

constexpr std::size_t most_numbers = 100'000;
constexpr std::int64_t largest = std::int64_t{1} << 40;

}  // namespace

std::vector<std::string_view> list_items(std::string_view text) {
  std::vector<std::string_view> items;
  for (;;) {
    const std::size_t end = std::min(text.find(','), text.size());
    std::string_view item = text.substr(0, end);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    items.push_back(item);
    if (end == text.size()) return items;
    text.remove_prefix(end + 1);
  }
}

Result<std::vector<std::int64_t>> parse_integers(std::string_view flag, std::string_view text, std::int64_t least) {
  Result<std::vector<std::int64_t>> result;
  for (const std::string_view item : list_items(text)) {
    Range<std::int64_t> range;
    if (const auto number = number_of<std::int64_t>(item)) {
      range.first = range.last = *number;
    } else if (const auto found = parse_range<std::int64_t>(item); found && range_problem(*found).empty()) {
      range = *found;
    } else {
      result.problems.push_back(usage_diagnostic(fmt::format("{}: \"{}\" is neither a number nor a range", flag, item),
                                                 "for example 4, 1,2,4,8, 1..8, 64..1024*2 or 8..64+8"));
      continue;
    }
    if (range.first < least) {
      const bool single = range.first == range.last;
      const std::string what =
          single ? fmt::format("{}", item) : fmt::format("\"{}\" starts at {}, which", item, range.first);
      const std::string way =
          single || range.multiplies ? std::string() : fmt::format("for example {}..{}", least, range.last);
      result.problems.push_back(
          usage_diagnostic(fmt::format("{}: {} is below {}, the least value", flag, what, least), way));
      continue;
    }
    if (range.last > largest) {
      result.problems.push_back(usage_diagnostic(fmt::format("{}: {} is above 2^40", flag, item), {}));
      continue;
    }
    for (std::int64_t value = range.first; value <= range.last && result.value.size() <= most_numbers;) {
      result.value.push_back(value);
      value = range.multiplies ? value * range.by : value + range.by;
    }
  }
  if (result.value.size() > most_numbers) {
    result.problems.push_back(
        usage_diagnostic(fmt::format("{}: \"{}\" is more than {} numbers", flag, text, most_numbers), {}));
  }
  std::sort(result.value.begin(), result.value.end());
  result.value.erase(std::unique(result.value.begin(), result.value.end()), result.value.end());
  return result;
}

}  // namespace shardplan::io
