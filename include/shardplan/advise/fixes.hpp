// The cheapest change after which a run meets everything that it requires.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shardplan/advise/trials.hpp"
#include "shardplan/io/overrides.hpp"

namespace shardplan::advise {

struct FoundFix {
  std::optional<Tried> fix;
  std::size_t left_out = 0;  ///< legal changes that were not tried: steps of so many microbatches are long to simulate
};

/// A single change, else a pair, else the strong ones in pairs, else more GPUs: of those that meet every requirement
/// the fastest, of more GPUs the fewest. Each is tried, none guessed; nothing where none of what was tried is enough.
/// `draft` is what was stated and `run` its resolution, `verdicts` are of the run as it is.
FoundFix cheapest_fix(const plan::Draft& draft, const Run& run, const Estimate& estimate,
                      const std::vector<plan::Verdict>& verdicts, const io::CatalogSource& catalog,
                      EstimateWorkspace& workspace);

/// What of the command line gives way to a change that is pasted behind it: "--attention eager"; "" for nothing. A flag
/// that is given twice is refused.
std::string gives_way(const plan::Change& fix, std::span<const io::Override> typed);

}  // namespace shardplan::advise
