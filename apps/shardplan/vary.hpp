// `--vary FIELD=VALUES`: a field and the values that it is to take.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "command.hpp"
#include "shardplan/core/diagnostic.hpp"
#include "shardplan/plan/sweep.hpp"

namespace shardplan::cli {

inline constexpr std::size_t most_values = 100'000;

/// "tp=1,2,4", "zero=0..3", "seq=2048..32768*2", "mbs=1,2,4..16+4", "recompute=none,full": a list of values and of
/// ranges A..B, which go up by 1, by K (+K) or K-fold (*K) and end at B at the latest. Commas in brackets, braces and
/// quotes are part of a value.
Result<plan::SweepAxis> parse_vary(std::string_view text);

/// Every --vary of a command line; a field that is given twice, or that a flag sets, is a problem.
Result<std::vector<plan::SweepAxis>> axes_of(const Arguments& arguments);

}  // namespace shardplan::cli
