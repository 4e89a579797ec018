// The report of `check` in the formats of build servers.
#pragma once

#include <span>
#include <string>

#include "shardplan/plan/check.hpp"
#include "shardplan/report/style.hpp"

namespace shardplan::report {

/// JUnit XML as Jenkins and GitLab read it: a suite a file, a case a requirement; an input error is an <error>. `file`
/// and `line` of a case are the common extension.
std::string check_junit(std::span<const plan::CheckedRun> runs, Units units);

/// Workflow commands of GitHub Actions: `::error file=F,line=L,col=C,title=T::message`, worst first, at most ten since
/// GitHub shows no more of a step, the others counted in the last; then a `::notice` with the summary.
std::string check_github(std::span<const plan::CheckedRun> runs, Units units);

}  // namespace shardplan::report
