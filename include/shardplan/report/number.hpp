// Numbers as people read them. Every text is independent of the locale.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/report/style.hpp"

namespace shardplan::report {

/// "GiB" or "GB", and its bytes.
std::string_view unit_name(Units units) noexcept;
std::int64_t unit_bytes(Units units) noexcept;

/// Bytes in the unit, to the nearest 10^-decimals: "32.47". No unit.
std::string size_text(std::int64_t bytes, Units units, int decimals = 2);
/// With its unit: "32.47 GiB".
std::string size_with_unit(std::int64_t bytes, Units units, int decimals = 2);
/// In the binary or decimal unit that suits the size: "512 B", "8.0 MiB", "8.46 GiB", "2.1 TiB".
std::string auto_size(std::int64_t bytes, Units units);

/// An integer in hundredths: 3247 is "32.47".
std::string hundredths_text(std::int64_t hundredths);

/// 1024, 9,920 with `from` 1000, 30,720: a comma between thousands from `from` on.
std::string count_text(std::int64_t count, std::int64_t from = 10'000);
/// A fixed number of decimals, a comma between thousands from 10,000 on.
std::string fixed_text(double value, int decimals, double commas_from = 10'000);

/// Three digits and a suffix: "129k", "2.90k", "812", "1.29M". With two digits: "2.9k".
std::string short_count(double count, int digits = 3);
/// Two decimals and a word's letter, for parameters and tokens: "70.55 B", "4.19 M"; below a million the count.
std::string long_count(std::int64_t count);

/// A fraction as a percentage: 0.459 is "45.9%".
std::string percent_text(double fraction, int decimals = 1);

/// The unit and decimals that show a time with four digits: 32.45 s, 3.245 s, 324.5 ms.
struct TimeScale {
  std::string_view unit = "s";
  double seconds = 1;  ///< of the unit
  int decimals = 2;
  std::string text(double time_s) const;       ///< without the unit
  std::string with_unit(double time_s) const;  ///< "32.45 s"
  double quantum() const noexcept;             ///< seconds of the last digit
};
TimeScale time_scale(double time_s) noexcept;
/// A time with its own scale.
std::string seconds_text(double time_s);

/// Rounds parts so that their sum is the rounded sum (largest remainder, lower index first at a tie): in units of
/// `unit` / `steps`, e.g. unit 2^30 and steps 100 give hundredths of a GiB. Parts are not negative.
std::vector<std::int64_t> round_parts(std::span<const std::int64_t> parts, std::int64_t unit, std::int64_t steps);
/// The same for real numbers, in multiples of `step`.
std::vector<std::int64_t> round_parts(std::span<const double> parts, double step);
/// Percentages in tenths that sum to 1000 (all 0 where the parts are).
std::vector<std::int64_t> round_shares(std::span<const double> parts);

/// Bytes in hundredths of the unit, to the nearest.
std::int64_t hundredths_of(std::int64_t bytes, Units units) noexcept;

}  // namespace shardplan::report
