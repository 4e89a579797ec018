// Terms of a stage's memory that are no moment's: host and NVMe, what the allocator reserves, bytes of one parameter.
#pragma once

#include "shardplan/plan/rank_memory.hpp"
#include "term_builder.hpp"

namespace shardplan::explain {

/// After the moments of the stage.
void add_memory_facts(TermBuilder& builder, const RankMemory& memory, const StageEstimate& stage);

}  // namespace shardplan::explain
