// What is wrong with a run, in words: every broken rule at once, each with the way out.
#pragma once

#include <span>
#include <string_view>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/core/run.hpp"
#include "shardplan/plan/fields.hpp"
#include "shardplan/plan/legality.hpp"
#include "shardplan/plan/resolve.hpp"

namespace shardplan::plan {

/// Every rule that the run breaks. `run` is what resolve() made of the draft. A field that is unusable, or that a rule
/// has blamed, hides only the rules that need it. `file` of the diagnostics is empty.
Diagnostics validate(const Draft& draft, const Run& run);

/// The broken rules themselves; as validate(), but without hiding.
RuleSet broken_rules(const Draft& draft, const Run& run);

/// One rule that a run breaks: pointer, value and rule, way out. `layers_per_stage`: the list as stated, where the rule
/// is about it.
Diagnostic describe(Rule rule, const Run& run, std::span<const int> layers_per_stage = {});

/// The field that a rule's diagnostic points at.
Field blamed_field(Rule rule) noexcept;

/// What a user should know about a legal run, as far as the run alone tells: kv_heads_replicated,
/// moe_needs_sequence_parallel, rope_beyond_max_position, flash_needs_ampere, nothing_trainable,
/// zero_repeats_collectives.
Warnings run_warnings(const Run& run);

}  // namespace shardplan::plan
