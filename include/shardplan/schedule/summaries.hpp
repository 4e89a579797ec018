// One line about each pipeline schedule: what it does, what it needs, where it comes from.
#pragma once

#include <array>
#include <string_view>

#include "shardplan/core/run.hpp"

namespace shardplan::schedule {

struct Summary {
  ScheduleKind kind = ScheduleKind::naive;
  std::string_view what;
  std::string_view needs;   ///< of p stages, m microbatches, v chunks a rank; empty: nothing
  std::string_view bubble;  ///< of the step: equal stages, F = B = W, no communication, m >= 2p
  std::string_view source;
};

inline constexpr std::array<Summary, names_of<ScheduleKind>.size()> summaries = {{
    {ScheduleKind::naive, "one microbatch at a time through all stages", "", "(p-1)/p", "definition"},
    {ScheduleKind::gpipe, "all forwards, then all backwards", "", "(p-1)/(m+p-1)", "Huang et al. 2018 (1811.06965)"},
    {ScheduleKind::one_f_one_b, "a backward follows each forward", "", "(p-1)/(m+p-1)",
     "Narayanan et al. 2021 (2104.04473)"},
    {ScheduleKind::interleaved, "1f1b over v chunks a rank, depth first", "p, v >= 2, m = k p", "(p-1)/(vm+p-1)",
     "Narayanan et al. 2021 (2104.04473)"},
    {ScheduleKind::bfs, "gpipe over v chunks a rank, breadth first", "", "(p-1)/(vm+p-1)",
     "Lamy-Poirier 2022 (2211.05953)"},
    {ScheduleKind::zb_h1, "weight gradients fill the tail of 1f1b", "v = 1", "(p-1)/(3m+p-1)",
     "Qi et al. 2023 (2401.10241)"},
    {ScheduleKind::zb_h2, "zb-h1 with 2p-1 microbatches in flight", "v = 1", "(p-1)/(3m+p-1)",
     "Qi et al. 2023 (2401.10241)"},
    {ScheduleKind::zb_v, "two chunks a rank in a V, split backward", "v = 2", "(p-1)/(6m+p-1)",
     "Qi et al. 2024 (2405.15362)"},
    {ScheduleKind::dualpipe, "both ends at once, two copies of the weights", "p, m even, m >= 2p", "(p-2)/(3m+p-2)",
     "DeepSeek-AI 2024 (2412.19437)"},
    {ScheduleKind::dualpipe_v, "half of dualpipe folded into a V, one copy", "v = 2, m >= 2p", "(p-1)/(3m+p-1)",
     "DeepSeek-AI 2025 (github.com/deepseek-ai/DualPipe)"},
}};

}  // namespace shardplan::schedule
