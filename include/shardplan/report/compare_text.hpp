// Runs side by side for people.
#pragma once

#include <string>

#include "shardplan/plan/compare.hpp"
#include "shardplan/report/style.hpp"

namespace shardplan::report {

/// The answer in a line, then the inputs that differ and the results; beside two runs what changed and what of the
/// inputs, or which part of memory and step, it comes from. `all`: equal rows too.
std::string compare_text(const plan::Comparison& comparison, const Style& style, bool quiet, bool all);
std::string compare_markdown(const plan::Comparison& comparison, const Style& style, bool quiet, bool all);

/// path and one column a run: plain values.
std::string compare_csv(const plan::Comparison& comparison, bool all);

}  // namespace shardplan::report
