#include "describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shardplan::plan {

WayOut set(Field field, std::string value, std::string words) {
  return {{{std::string(name(field)), std::move(value)}}, std::move(words)};
}

WayOut set(Field field, std::string value, Field also, std::string also_value, std::string words) {
  return with(set(field, std::move(value), std::move(words)), also, std::move(also_value));
}

WayOut with(WayOut way, Field field, std::string value) {
  way.settings.push_back({std::string(name(field)), std::move(value)});
  return way;
}

std::vector<WayOut> say(std::string words) {
  if (words.empty()) return {};
  return {{{}, std::move(words)}};
}

std::vector<WayOut> say(std::string words, std::vector<WayOut> ways) {
  if (!words.empty()) ways.insert(ways.begin(), WayOut{{}, std::move(words)});
  return ways;
}

std::string text_of(const std::vector<WayOut>& ways) {
  std::string text;
  for (const WayOut& way : ways) {
    std::string one;
    for (const WayOut::Setting& setting : way.settings) {
      one += one.empty() ? "" : " and ";
      one += setting.value == "null" ? fmt::format("leave {} out", setting.pointer)
                                     : fmt::format("set {} to {}", setting.pointer, setting.value);
    }
    if (one.empty()) {
      one = way.words;
    } else if (!way.words.empty()) {
      one += fmt::format(" ({})", way.words);
    }
    text += (text.empty() ? "" : ", or ") + one;
  }
  return text;
}

std::string join(const std::vector<std::int64_t>& values) {
  std::string out;
  for (const std::int64_t value : values) out += (out.empty() ? "" : ", ") + std::to_string(value);
  return out;
}

std::string join_words(const std::vector<std::string>& words, const char* conjunction) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? fmt::format(" {} ", conjunction) : std::string(", ");
    out += words[i];
  }
  return out;
}

std::vector<std::int64_t> divisors_near(std::int64_t number, std::int64_t value) {
  constexpr std::size_t most = 7;
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    divisors.push_back(d);
    if (d != number / d) divisors.push_back(number / d);
  }
  std::sort(divisors.begin(), divisors.end());
  if (divisors.size() <= most) return divisors;
  const auto above = std::lower_bound(divisors.begin(), divisors.end(), value) - divisors.begin();
  const auto last_first = static_cast<std::ptrdiff_t>(divisors.size() - most);
  const auto first = std::clamp<std::ptrdiff_t>(above - static_cast<std::ptrdiff_t>(most / 2), 0, last_first);
  return {divisors.begin() + first, divisors.begin() + first + static_cast<std::ptrdiff_t>(most)};
}

std::string nearest_multiples(std::int64_t value, std::int64_t step, std::int64_t most) {
  std::vector<std::int64_t> values;
  const std::int64_t below = value / step * step;
  if (below >= step) values.push_back(below);
  if (below + step <= most) values.push_back(below + step);
  return values.empty() ? std::string() : "nearest: " + join(values);
}

}  // namespace shardplan::plan
