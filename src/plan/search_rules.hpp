// Which rules a level of the search tree asks: those whose last field it decides.
#pragma once

#include "shardplan/plan/search_space.hpp"

namespace shardplan::plan {

// virtual_alone and virtual_framework are about schedules that are not proposed otherwise, the layers_list rules hold
// by construction.
const RuleSet& grid_rules() noexcept;
const RuleSet& node_rules() noexcept;
const RuleSet& pipelining_rules() noexcept;
const RuleSet& sharding_rules() noexcept;

/// Counts the first of the broken rules of a level; true where there is one.
bool refuse(const RuleSet& broken, const RuleSet& level, RuleCounts& counts) noexcept;
void refuse(Rule rule, RuleCounts& counts) noexcept;

}  // namespace shardplan::plan
