#include "describe.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shardplan::plan {

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
