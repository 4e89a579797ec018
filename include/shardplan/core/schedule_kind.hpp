// The pipeline schedules that are known: the one list of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "shardplan/core/names.hpp"

namespace shardplan {

/// A schedule's identifier and its word in files and output. What it is stands in src/schedule/<identifier>.cpp; a row
/// without that file does not link.
#define SHARDPLAN_SCHEDULES(ROW)  \
  ROW(naive, "naive")             \
  ROW(gpipe, "gpipe")             \
  ROW(one_f_one_b, "1f1b")        \
  ROW(interleaved, "interleaved") \
  ROW(bfs, "bfs")                 \
  ROW(zb_h1, "zb-h1")             \
  ROW(zb_h2, "zb-h2")             \
  ROW(zb_v, "zb-v")               \
  ROW(dualpipe, "dualpipe")       \
  ROW(dualpipe_v, "dualpipe-v")

#define SHARDPLAN_ENUMERATOR(identifier, word) identifier,
#define SHARDPLAN_WORD(identifier, word) word,
enum class ScheduleKind : std::uint8_t { SHARDPLAN_SCHEDULES(SHARDPLAN_ENUMERATOR) };
template <>
inline constexpr std::array names_of<ScheduleKind> =
    std::to_array<std::string_view>({SHARDPLAN_SCHEDULES(SHARDPLAN_WORD)});
#undef SHARDPLAN_ENUMERATOR
#undef SHARDPLAN_WORD

inline constexpr std::size_t schedule_count = names_of<ScheduleKind>.size();

}  // namespace shardplan
