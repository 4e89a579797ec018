// `--vary FIELD=VALUES`: a field and the values that it is to take.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/plan/sweep.hpp"

namespace shardplan::io {

inline constexpr std::size_t most_values = 100'000;

/// "tp=1,2,4", "zero=0..3", "seq=2048..32768*2", "mbs=1,2,4..16+4", "recompute=none,full": a list of values and of
/// ranges A..B, which go up by 1, by K (+K) or K-fold (*K) and end at B at the latest. Commas in brackets, braces and
/// quotes are part of a value.
Result<plan::SweepAxis> parse_sweep_axis(std::string_view text);

}  // namespace shardplan::io
