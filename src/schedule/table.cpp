#include <string>

#include "rows.hpp"

namespace shardplan::schedule {

#define SHARDPLAN_ROW(identifier, word) &rows::identifier,
constinit const std::array<const ScheduleFacts*, schedule_count> schedule_table = {SHARDPLAN_SCHEDULES(SHARDPLAN_ROW)};
#undef SHARDPLAN_ROW

std::string bubble_text(ScheduleKind kind, bool chunks) {
  const ScheduleFacts& facts = facts_of(kind);
  const std::string idle = "p-" + std::to_string(facts.bubble.less);
  if (facts.one_at_a_time) return "(" + idle + ")/p";
  const std::string passes = facts.bubble.passes > 0 ? std::to_string(facts.bubble.passes) : chunks ? "v" : "";
  return "(" + idle + ")/(" + passes + "m+" + idle + ")";
}

}  // namespace shardplan::schedule
