// The points of a sweep, estimated: on all cores, with the same result on any number of them.
#pragma once

#include <cstddef>
#include <functional>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/io/catalog_source.hpp"
#include "shardplan/io/run_file.hpp"
#include "shardplan/plan/sweep.hpp"

namespace shardplan::advise {

/// What holds while fields vary.
struct SweepRules {
  bool keep_tokens = false;  ///< the tokens of a step: the global batch follows the sequences
  bool gpus_follow = false;  ///< num_gpus is what the layout makes
};

/// Fills `points` and `broken` of a sweep whose axes are set. Problems are values that cannot be read, each once, in
/// the order of the points; after 20 of them it stops. `progress`, where there is one, hears from the calling thread
/// how many points are done.
Diagnostics estimate_points(const io::RunInput& input, const io::CatalogSource& catalog, const SweepRules& rules,
                            plan::Sweep& sweep, const std::function<void(std::size_t done)>& progress = {});

}  // namespace shardplan::advise
