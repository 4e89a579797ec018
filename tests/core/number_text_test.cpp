#include "shardplan/core/number_text.hpp"

#include <cstdint>
#include <limits>
#include <string>

#include "support/catch.hpp"

using shardplan::double_from_chars;
using shardplan::number_of;

TEST_CASE("texts that are numbers, to the last bit") {
  struct Row {
    const char* text;
    double value;
  };
  for (const Row& row :
       {Row{"0", 0.0}, Row{"-0.5", -0.5}, Row{"1.", 1.0}, Row{".25", 0.25}, Row{"7e9", 7e9}, Row{"1E+3", 1000.0},
        Row{"0.1", 0.1}, Row{"2.5e-3", 0.0025}, Row{"9007199254740993", 9007199254740992.0},
        Row{"1.7976931348623157e308", std::numeric_limits<double>::max()},
        Row{"2.2250738585072014e-308", std::numeric_limits<double>::min()},
        Row{"123456789012345678901234567890", 1.2345678901234568e29}}) {
    CAPTURE(row.text);
    const std::optional<double> value = double_from_chars(row.text);
    REQUIRE(value.has_value());
    CHECK(*value == row.value);
  }
}

TEST_CASE("texts that are no numbers") {
  for (const char* const text : {"", "-", ".", "+1", " 1", "1 ", "1,5", "1e", "1e+", "e5", "--1", "0x10", "1.2.3", "1f",
                                 "inf", "nan", "1e999", "-1e999", "seven"}) {
    CAPTURE(text);
    CHECK_FALSE(double_from_chars(text).has_value());
    CHECK_FALSE(number_of<double>(text).has_value());
  }
}

TEST_CASE("whole numbers fit their type or are none") {
  CHECK(number_of<int>("-12") == -12);
  CHECK(number_of<std::int64_t>("9223372036854775807") == std::numeric_limits<std::int64_t>::max());
  CHECK_FALSE(number_of<std::int64_t>("9223372036854775808").has_value());
  CHECK_FALSE(number_of<int>("4294967296").has_value());
  CHECK_FALSE(number_of<int>("1.0").has_value());
  CHECK_FALSE(number_of<unsigned>("-1").has_value());
  CHECK(number_of<unsigned>("fF", 16) == 255U);
}
