#include "shardplan/report/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace shardplan::report {
namespace {

/// A comma between the thousands of a text that starts with digits (or a minus sign).
std::string with_commas(std::string text) {
  const std::size_t first = text.empty() || text[0] != '-' ? 0 : 1;
  std::size_t point = std::min(text.find('.'), text.size());
  while (point > first + 3) text.insert(point -= 3, 1, ',');
  return text;
}

/// Hands the units that rounding down lost to the largest remainders.
template <class Remainder>
void give_remainders(std::vector<std::int64_t>& rounded, const std::vector<Remainder>& remainders,
                     std::int64_t missing) {
  std::vector<std::size_t> order(rounded.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  for (const std::size_t i : order) {
    if (missing <= 0 || !(remainders[i] > Remainder{0})) return;
    ++rounded[i];
    --missing;
  }
}

/// bytes * steps / unit without overflow, and what is left in units of 1/unit.
struct Scaled {
  std::int64_t whole;
  std::int64_t rest;
};
Scaled scaled(std::int64_t bytes, std::int64_t unit, std::int64_t steps) noexcept {
  const std::int64_t part = bytes % unit * steps;
  return {bytes / unit * steps + part / unit, part % unit};
}

std::int64_t power_of_ten(int exponent) noexcept {
  std::int64_t power = 1;
  for (int i = 0; i < exponent; ++i) power *= 10;
  return power;
}

}  // namespace

std::string_view unit_name(Units units) noexcept { return units == Units::gib ? "GiB" : "GB"; }

std::int64_t unit_bytes(Units units) noexcept {
  return units == Units::gib ? std::int64_t{1} << 30 : std::int64_t{1'000'000'000};
}

std::int64_t hundredths_of(std::int64_t bytes, Units units) noexcept {
  if (bytes < 0) return -hundredths_of(-bytes, units);
  const std::int64_t unit = unit_bytes(units);
  const Scaled value = scaled(bytes, unit, 100);
  return value.whole + (2 * value.rest >= unit ? 1 : 0);
}

std::string size_text(std::int64_t bytes, Units units, int decimals) {
  if (bytes < 0) return "-" + size_text(-bytes, units, decimals);
  const std::int64_t unit = unit_bytes(units);
  const std::int64_t steps = power_of_ten(decimals);
  const Scaled value = scaled(bytes, unit, steps);
  const std::int64_t rounded = value.whole + (2 * value.rest >= unit ? 1 : 0);
  std::string text = count_text(rounded / steps);
  if (decimals > 0) text += fmt::format(".{:0{}}", rounded % steps, decimals);
  return text;
}

std::string size_with_unit(std::int64_t bytes, Units units, int decimals) {
  return fmt::format("{} {}", size_text(bytes, units, decimals), unit_name(units));
}

std::string auto_size(std::int64_t bytes, Units units) {
  static constexpr std::array<std::string_view, 6> binary = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  static constexpr std::array<std::string_view, 6> decimal = {"B", "kB", "MB", "GB", "TB", "PB"};
  const double base = units == Units::gib ? 1024 : 1000;
  double value = static_cast<double>(bytes);
  std::size_t step = 0;
  // 999.95 MiB would print as 1,000.0 MiB: the next unit takes over just before.
  while (step + 1 < binary.size() && std::abs(value) >= base - (step == 0 ? 0 : 0.05)) {
    value /= base;
    ++step;
  }
  const std::string_view name = units == Units::gib ? binary[step] : decimal[step];
  if (step == 0) return fmt::format("{} {}", bytes, name);
  return fmt::format("{} {}", fixed_text(value, step >= 3 && std::abs(value) < 99.995 ? 2 : 1), name);
}

std::string hundredths_text(std::int64_t hundredths) {
  if (hundredths < 0) return "-" + hundredths_text(-hundredths);
  return fmt::format("{}.{:02}", count_text(hundredths / 100), hundredths % 100);
}

std::string count_text(std::int64_t count, std::int64_t from) {
  const bool wide = count >= from || count <= -from;
  return wide ? with_commas(fmt::format("{}", count)) : fmt::format("{}", count);
}

std::string fixed_text(double value, int decimals, double commas_from) {
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find_first_not_of("-0.") == std::string::npos && text[0] == '-') text.erase(0, 1);
  return std::abs(value) >= commas_from ? with_commas(std::move(text)) : text;
}

std::string short_count(double count, int digits) {
  static constexpr std::array<std::string_view, 5> suffixes = {"", "k", "M", "B", "T"};
  if (!(count > 0)) return "0";
  // Rounded to its digits first, so that 999.6 becomes 1.00k.
  const int exponent = static_cast<int>(std::floor(std::log10(count)));
  const double quantum = std::pow(10.0, exponent - digits + 1);
  double value = std::round(count / quantum) * quantum;
  std::size_t step = 0;
  while (step + 1 < suffixes.size() && value >= 1000 * (1 - 1e-12)) {
    value /= 1000;
    ++step;
  }
  const int before = value >= 99.9999 ? 3 : value >= 9.99999 ? 2 : 1;
  const int decimals = std::clamp(digits - before, 0, 2);
  return fmt::format("{:.{}f}{}", value, decimals, suffixes[step]);
}

std::string long_count(std::int64_t count) {
  const double value = static_cast<double>(count);
  if (value >= 999'995e6) return fixed_text(value / 1e12, 2) + " T";
  if (value >= 999'995e3) return fixed_text(value / 1e9, 2) + " B";
  if (value >= 999'995) return fixed_text(value / 1e6, 2) + " M";
  return count_text(count);
}

std::string percent_text(double fraction, int decimals) { return fixed_text(100 * fraction, decimals) + "%"; }

TimeScale time_scale(double time_s) noexcept {
  TimeScale scale;
  if (time_s < 0.9995e-3) {
    scale.unit = "us";
    scale.seconds = 1e-6;
  } else if (time_s < 0.9995) {
    scale.unit = "ms";
    scale.seconds = 1e-3;
  }
  const double value = time_s / scale.seconds;
  scale.decimals = value >= 999.95 ? 0 : value >= 99.995 ? 1 : value >= 9.9995 ? 2 : 3;
  return scale;
}

std::string TimeScale::text(double time_s) const { return fixed_text(time_s / seconds, decimals, 1000); }

double TimeScale::quantum() const noexcept { return seconds / static_cast<double>(power_of_ten(decimals)); }

std::string TimeScale::with_unit(double time_s) const { return fmt::format("{} {}", text(time_s), unit); }

std::string seconds_text(double time_s) { return time_s == 0 ? "0 s" : time_scale(time_s).with_unit(time_s); }

std::vector<std::int64_t> round_parts(std::span<const std::int64_t> parts, std::int64_t unit, std::int64_t steps) {
  std::vector<std::int64_t> rounded;
  std::vector<std::int64_t> remainders;
  std::int64_t total = 0;
  std::int64_t sum = 0;
  for (const std::int64_t part : parts) {
    const Scaled value = scaled(part, unit, steps);
    rounded.push_back(value.whole);
    remainders.push_back(value.rest);
    total += part;
    sum += value.whole;
  }
  const Scaled whole = scaled(total, unit, steps);
  give_remainders(rounded, remainders, whole.whole + (2 * whole.rest >= unit ? 1 : 0) - sum);
  return rounded;
}

std::vector<std::int64_t> round_parts(std::span<const double> parts, double step) {
  std::vector<std::int64_t> rounded;
  std::vector<double> remainders;
  double total = 0;
  std::int64_t sum = 0;
  for (const double part : parts) {
    const double whole = std::floor(part / step);
    rounded.push_back(static_cast<std::int64_t>(whole));
    remainders.push_back(part / step - whole);
    total += part;
    sum += rounded.back();
  }
  give_remainders(rounded, remainders, static_cast<std::int64_t>(std::llround(total / step)) - sum);
  return rounded;
}

std::vector<std::int64_t> round_shares(std::span<const double> parts) {
  const double total = std::accumulate(parts.begin(), parts.end(), 0.0);
  if (!(total > 0)) return std::vector<std::int64_t>(parts.size(), 0);
  std::vector<double> shares;
  for (const double part : parts) shares.push_back(part / total);
  return round_parts(shares, 1e-3);
}

}  // namespace shardplan::report
