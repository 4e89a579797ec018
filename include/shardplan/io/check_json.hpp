// The report of `check` for programs: shardplan/check/v1, SARIF 2.1.0, and check/v1 read back as a baseline.
#pragma once

#include <map>
#include <span>
#include <string>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/io/json_text.hpp"
#include "shardplan/plan/check.hpp"

namespace shardplan::io {

/// One object with a line feed at its end. `failures` of a file are the requirements that do not hold; a file that is
/// no legal run has `problems` instead. Of `fits` limit and actual are true and false.
std::string check_json(std::span<const plan::CheckedRun> runs);

/// A SARIF 2.1.0 log (OASIS standard, errata 01): a rule for each requirement and one for input errors, a result for
/// each that is missed. Paths become relative URIs.
std::string check_sarif(std::span<const plan::CheckedRun> runs);

/// The figures of each path in a shardplan/check/v1 document; files with errors have none.
Result<std::map<std::string, plan::Figures>> read_check(const JsonText& text);

/// Whether a document is the output of `check --json`.
bool is_check(const JsonText& text);

}  // namespace shardplan::io
