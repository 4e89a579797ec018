// The report of `check` for people: text, markdown for a pull request, CSV.
#pragma once

#include <span>
#include <string>

#include "shardplan/plan/check.hpp"
#include "shardplan/report/style.hpp"

namespace shardplan::report {

/// "FAIL  2 of 3 runs fail", or "PASS  3 runs pass".
std::string check_headline(const plan::CheckCounts& counts);

/// The headline, then one line a file; below a file that fails what failed with numbers, what would help, what holds.
std::string check_text(std::span<const plan::CheckedRun> runs, const Style& style, bool quiet);

/// A table for a comment on a pull request, beside a baseline with what changed; below it what failed.
std::string check_markdown(std::span<const plan::CheckedRun> runs, const Style& style, bool quiet);

/// One row a requirement: path, status, requirement, limit, actual, holds, fix. A file with problems is one row.
std::string check_csv(std::span<const plan::CheckedRun> runs);

/// "needs 87.9 of 79.65 GiB, 8.2 over (stage 0, backward)"
std::string over_text(const Run& run, const Estimate& estimate, Units units);

/// What a requirement that is missed says: "MFU 45.9% < 50%"; of `fits` what is lacking.
std::string failure_text(const plan::CheckedRun& run, const plan::Verdict& verdict, Units units);

/// "/parallel/tensor: 6 does not divide num_attention_heads 64"
std::string problem_text(const Diagnostic& problem);

}  // namespace shardplan::report
