// Run files and what they are estimated to need: read by the same reader as the program's.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shardplan/io/run_file.hpp"
#include "shardplan/plan/estimate.hpp"

namespace test {

using Overrides = std::vector<std::pair<std::string, std::string>>;  ///< JSON pointer, JSON value

/// Reads a run, with built-in names looked up in the catalog.
shardplan::io::ReadRun read_run(std::string_view json, const Overrides& overrides = {});

/// Every problem, one a line: pointer and message.
std::string problems_of(const shardplan::io::ReadRun& read);

/// Reads and estimates a run that is expected to be legal; throws std::runtime_error with its problems otherwise.
shardplan::Estimate estimate_of(std::string_view json, const Overrides& overrides = {});

/// Paths of the run files of configs/runs, sorted.
std::vector<std::string> run_files();

}  // namespace test
