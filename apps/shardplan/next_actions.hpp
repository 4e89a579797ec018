// The next best changes of a run: each one tried, none guessed.
#pragma once

#include <cstddef>
#include <vector>

#include "shardplan/io/catalog_source.hpp"
#include "shardplan/plan/estimate.hpp"
#include "shardplan/plan/resolve.hpp"
#include "shardplan/report/estimate_text.hpp"

namespace shardplan::cli {

/// At most three changes, as flags to paste. Of a run that fits those single ones that make it faster and still fit,
/// fastest first; of one that does not, those that make it fit, fastest first: single ones, else pairs, else more GPUs,
/// or else the nearest to it. Each effect is the estimate of the changed run. `left_out`: how many
/// legal changes were not tried, since a step of so many microbatches is long to simulate.
std::vector<report::Action> next_actions(const plan::Draft& draft, const Run& run, const Estimate& estimate,
                                         report::Units units, const io::CatalogSource& catalog,
                                         std::size_t* left_out = nullptr);

}  // namespace shardplan::cli
