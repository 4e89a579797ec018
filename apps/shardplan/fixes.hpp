// The cheapest change after which a run meets everything that it requires.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shardplan/io/catalog_source.hpp"
#include "shardplan/io/overrides.hpp"
#include "shardplan/plan/estimate.hpp"
#include "shardplan/plan/requirements.hpp"
#include "shardplan/plan/resolve.hpp"
#include "shardplan/plan/workspace.hpp"
#include "shardplan/report/style.hpp"

namespace shardplan::cli {

struct Fix {
  std::string flags;   ///< to paste
  std::string effect;  ///< "frees 40.0 GiB, 12% slower"
};

struct FoundFix {
  std::optional<Fix> fix;
  std::size_t left_out = 0;  ///< legal changes that were not tried: steps of so many microbatches are long to simulate
};

/// A single change, else a pair, else the strong ones in pairs, else more GPUs: of those that meet every requirement
/// the fastest, of more GPUs the fewest. Each is tried, none guessed; nothing where none of what was tried is enough.
/// `verdicts`: of the run as it is.
FoundFix cheapest_fix(const plan::Draft& draft, const Run& run, const Estimate& estimate,
                      const std::vector<plan::Verdict>& verdicts, report::Units units, const io::CatalogSource& catalog,
                      EstimateWorkspace& workspace);

/// What of the command line gives way to a change that is pasted behind it: "--attention eager"; "" for nothing. A flag
/// that is given twice is refused.
std::string gives_way(const std::string& fix, const std::vector<io::Override>& typed);

}  // namespace shardplan::cli
