// One constant a schedule, each defined in the file of its name.
#pragma once

#include "shardplan/schedule/facts.hpp"

namespace shardplan::schedule::rows {

#define SHARDPLAN_DECLARE(identifier, word) extern const ScheduleFacts identifier;
SHARDPLAN_SCHEDULES(SHARDPLAN_DECLARE)
#undef SHARDPLAN_DECLARE

}  // namespace shardplan::schedule::rows
