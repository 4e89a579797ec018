#include "ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "command.hpp"

namespace shardplan::cli {
namespace {

constexpr std::size_t most_numbers = 100'000;
constexpr std::int64_t largest = std::int64_t{1} << 40;

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

struct Range {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t by = 1;
  bool multiplies = false;
};

std::optional<Range> range_of(std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(dots + 2);
  Range range;
  const std::size_t sign = rest.find_first_of("*+");
  if (sign != std::string_view::npos) {
    const auto by = number_of(rest.substr(sign + 1));
    range.multiplies = rest[sign] == '*';
    if (!by || *by < (range.multiplies ? 2 : 1)) return std::nullopt;
    range.by = *by;
    rest = rest.substr(0, sign);
  }
  const auto first = number_of(text.substr(0, dots)), last = number_of(rest);
  if (!first || !last || *first > *last || (range.multiplies && *first < 1)) return std::nullopt;
  range.first = *first;
  range.last = *last;
  return range;
}

Diagnostic problem(std::string message, std::string way_out) {
  return usage_problem(std::move(message), std::move(way_out)).problems.front();
}

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
    Range range;
    if (const auto number = number_of(item)) {
      range.first = range.last = *number;
    } else if (const auto found = range_of(item)) {
      range = *found;
    } else {
      result.problems.push_back(problem(fmt::format("{}: \"{}\" is neither a number nor a range", flag, item),
                                        "for example 4, 1,2,4,8, 1..8, 64..1024*2 or 8..64+8"));
      continue;
    }
    if (range.first < least || range.last > largest) {
      result.problems.push_back(problem(fmt::format("{}: {} is out of range ({} to 2^40)", flag, item, least), {}));
      continue;
    }
    for (std::int64_t value = range.first; value <= range.last && result.value.size() <= most_numbers;) {
      result.value.push_back(value);
      value = range.multiplies ? value * range.by : value + range.by;
    }
  }
  if (result.value.size() > most_numbers) {
    result.problems.push_back(problem(fmt::format("{}: \"{}\" is more than {} numbers", flag, text, most_numbers), {}));
  }
  std::sort(result.value.begin(), result.value.end());
  result.value.erase(std::unique(result.value.begin(), result.value.end()), result.value.end());
  return result;
}

}  // namespace shardplan::cli
