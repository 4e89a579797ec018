// What changes of a run bring, in words.
#pragma once

#include <string>
#include <vector>

#include "shardplan/advise/fixes.hpp"
#include "shardplan/advise/next_actions.hpp"
#include "shardplan/report/estimate_text.hpp"
#include "shardplan/report/style.hpp"

namespace shardplan::report {

/// Next actions of a run as lines: flags, "MFU 45.9%, 28.6 s (-12.0%), peak 40.1 GiB", reason. `now`: of the run as it
/// is.
std::vector<Action> actions_of(const std::vector<advise::NextAction>& actions, const Run& run, const Estimate& now,
                               Units units);

/// What changes in what was missed, and what is paid for it: "frees 40.0 GiB, 12% slower". `verdicts`: of the run as it
/// is.
std::string fix_effect(const advise::Tried& fix, const Estimate& now, const std::vector<plan::Verdict>& verdicts,
                       Units units);

}  // namespace shardplan::report
