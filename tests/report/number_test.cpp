#include "shardplan/report/number.hpp"

#include <array>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace shardplan::report;

TEST_CASE("sizes are rounded exactly, in the unit that is printed") {
  struct Row {
    std::int64_t bytes;
    Units units;
    int decimals;
    std::string text;
  };
  const std::vector<Row> rows = {
      {0, Units::gib, 2, "0.00"},
      {1073741824, Units::gib, 2, "1.00"},
      {1073741824, Units::gb, 2, "1.07"},
      {4543086592, Units::gib, 2, "4.23"},
      {5368709, Units::gib, 2, "0.00"},  // 0.4999999 hundredths
      {5368710, Units::gib, 2, "0.01"},  // 0.5000001
      {-1073741824, Units::gib, 1, "-1.0"},
      {std::int64_t{1} << 53, Units::gib, 2, "8,388,608.00"},
      {1024ll * 9999 * 1048576, Units::gib, 0, "9999"},
      {INT64_MAX, Units::gb, 2, "9,223,372,036.85"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.bytes, row.decimals);
    CHECK(size_text(row.bytes, row.units, row.decimals) == row.text);
  }
  CHECK(size_with_unit(1073741824, Units::gib) == "1.00 GiB");
  CHECK(auto_size(512, Units::gib) == "512 B");
  CHECK(auto_size(150081536, Units::gib) == "143.1 MiB");
  CHECK(auto_size(67108864, Units::gib) == "64.0 MiB");
  CHECK(auto_size(1023ll * 1048576 + 1048000, Units::gib) == "1.00 GiB");
  CHECK(auto_size(9086173184, Units::gib) == "8.46 GiB");
  CHECK(auto_size(9086173184, Units::gb) == "9.09 GB");
}

TEST_CASE("counts, rates, shares and times") {
  CHECK(count_text(1024) == "1024");
  CHECK(count_text(10000) == "10,000");
  CHECK(count_text(-1234567) == "-1,234,567");
  CHECK(count_text(9920, 1000) == "9,920");
  CHECK(fixed_text(1009.86, 0, 1000) == "1,010");
  CHECK(fixed_text(-0.001, 1) == "0.0");
  CHECK(short_count(129262) == "129k");
  CHECK(short_count(2876, 2) == "2.9k");
  CHECK(short_count(999.6) == "1.00k");
  CHECK(short_count(999600) == "1.00M");
  CHECK(short_count(812.4) == "812");
  CHECK(short_count(12.34) == "12.3");
  CHECK(short_count(0.0123) == "0.01");
  CHECK(short_count(0) == "0");
  CHECK(long_count(70553706496) == "70.55 B");
  CHECK(long_count(4194304) == "4.19 M");
  CHECK(long_count(1008038348800) == "1.01 T");
  CHECK(long_count(999'996) == "1.00 M");
  CHECK(long_count(65536) == "65,536");
  CHECK(percent_text(0.4589) == "45.9%");
  CHECK(percent_text(0.259, 0) == "26%");
  CHECK(hundredths_text(3247) == "32.47");
  CHECK(hundredths_text(-5) == "-0.05");
  CHECK(seconds_text(32.448) == "32.45 s");
  CHECK(seconds_text(324.48) == "324.5 s");
  CHECK(seconds_text(3244.8) == "3,245 s");
  CHECK(seconds_text(3.2448) == "3.245 s");
  CHECK(seconds_text(0.71239) == "712.4 ms");
  CHECK(seconds_text(0.0123456) == "12.35 ms");
  CHECK(seconds_text(0.000456) == "456.0 us");
  CHECK(seconds_text(0.99996) == "1.000 s");
}

TEST_CASE("rounded parts sum to the rounded total") {
  std::mt19937_64 random(7);
  std::uniform_int_distribution<std::int64_t> bytes(0, std::int64_t{200} << 30);
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::int64_t> parts(1 + static_cast<std::size_t>(i % 9));
    for (std::int64_t& part : parts) part = i % 3 == 0 ? bytes(random) % 20'000'000 : bytes(random);
    if (i % 4 == 0) parts.front() = 0;
    const std::int64_t total = std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
    for (const Units units : {Units::gib, Units::gb}) {
      const std::vector<std::int64_t> rounded = round_parts(parts, unit_bytes(units), 100);
      REQUIRE(std::accumulate(rounded.begin(), rounded.end(), std::int64_t{0}) == hundredths_of(total, units));
      for (std::size_t k = 0; k < parts.size(); ++k) {
        // Never further than one unit from the part, and nothing out of nothing.
        const double exact = 100 * static_cast<double>(parts[k]) / static_cast<double>(unit_bytes(units));
        REQUIRE(std::abs(static_cast<double>(rounded[k]) - exact) < 1);
        if (parts[k] == 0) REQUIRE(rounded[k] == 0);
      }
    }
  }
}

TEST_CASE("times and shares round to their sum as well") {
  // One by one these give 22.40 + 8.40 + 1.43 + 0.13 + 0.08 + 0.01 = 32.45, and the first set 0.33 x 3 = 0.99.
  const std::array<double, 3> thirds = {1.0 / 3, 1.0 / 3, 1.0 / 3};
  CHECK(round_parts(thirds, 0.01) == std::vector<std::int64_t>{34, 33, 33});
  CHECK(round_shares(thirds) == std::vector<std::int64_t>{334, 333, 333});
  const std::array<double, 2> none = {0, 0};
  CHECK(round_shares(none) == std::vector<std::int64_t>{0, 0});
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> time(0, 50);
  for (int i = 0; i < 1000; ++i) {
    std::array<double, 7> parts{};
    for (double& part : parts) part = time(random);
    const std::vector<std::int64_t> shares = round_shares(parts);
    REQUIRE(std::accumulate(shares.begin(), shares.end(), std::int64_t{0}) == 1000);
    const std::vector<std::int64_t> rounded = round_parts(parts, 0.01);
    const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
    REQUIRE(std::accumulate(rounded.begin(), rounded.end(), std::int64_t{0}) == std::llround(sum / 0.01));
  }
}
