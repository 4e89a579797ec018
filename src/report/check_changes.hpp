// What changed in a run since its baseline.
#pragma once

#include <string>

#include "shardplan/plan/check.hpp"
#include "shardplan/report/style.hpp"

namespace shardplan::report {

/// "baseline: peak +1.8 GiB (+3.1%), MFU -0.5 points, GPU hours +2.0%"; "baseline: no change"; "baseline: new".
std::string changes_text(const plan::CheckedRun& run, Units units);

/// "+3.1%"; empty where it rounds to nothing.
std::string relative(double now, double before);

/// "+1.8", "-0.3": a difference of sizes.
std::string signed_size(std::int64_t bytes, Units units);

/// One figure as it is, with its change in brackets: "59.8 (+1.8)". A change that rounds to nothing is left out.
std::string size_change(std::int64_t now, const std::int64_t* before, Units units);
std::string percent_change(double now, const double* before);
/// "32.45 s (-12.0%)"
std::string relative_change(const std::string& now_text, double now, const double* before);

}  // namespace shardplan::report
