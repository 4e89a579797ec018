// One row a schedule.
#pragma once

#include <array>

#include "orders.hpp"
#include "shardplan/schedule/shape.hpp"

namespace shardplan::schedule {

struct ScheduleRow {
  ScheduleKind kind;
  Placement placement;
  bool splits_backward;
  void (*write)(const Shape& shape, int rank, RankWriter& out);
};

// In the order of ScheduleKind.
inline constexpr std::array<ScheduleRow, 10> schedule_table = {{
    {ScheduleKind::naive, Placement::loop, false, write_naive},
    {ScheduleKind::gpipe, Placement::loop, false, write_gpipe},
    {ScheduleKind::one_f_one_b, Placement::loop, false, write_one_f_one_b},
    {ScheduleKind::interleaved, Placement::loop, false, write_interleaved},
    {ScheduleKind::bfs, Placement::loop, false, write_bfs},
    {ScheduleKind::zb_h1, Placement::loop, true, write_zb_h1},
    {ScheduleKind::zb_h2, Placement::loop, true, write_zb_h2},
    {ScheduleKind::zb_v, Placement::vee, true, write_zb_v},
    {ScheduleKind::dualpipe, Placement::bidirectional, true, write_dualpipe},
    {ScheduleKind::dualpipe_v, Placement::vee, true, write_dualpipe_v},
}};

constexpr const ScheduleRow& row_of(ScheduleKind kind) noexcept {
  return schedule_table[static_cast<std::size_t>(kind)];
}

}  // namespace shardplan::schedule
