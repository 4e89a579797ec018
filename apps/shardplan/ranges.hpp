// Several values of a field on the command line: "1,2,4,8", "1..8", "64..1024*2", "8..64+8", and mixtures.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "shardplan/core/diagnostic.hpp"

namespace shardplan::cli {

/// The pieces between commas, without spaces around them.
std::vector<std::string_view> list_items(std::string_view text);

/// Every number of a list of numbers and ranges, ascending, each once. "A..B" steps by 1, "A..B+K" by K, "A..B*K"
/// multiplies by K. `flag`: for messages ("--tp"). At most 100,000 numbers, each from `least` on.
Result<std::vector<std::int64_t>> parse_integers(std::string_view flag, std::string_view text, std::int64_t least = 1);

}  // namespace shardplan::cli
