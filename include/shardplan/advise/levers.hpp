// Changes of a run that may help it: which ones are worth a try. None is estimated here, and some may not be legal.
#pragma once

#include <string_view>
#include <vector>

#include "shardplan/plan/change.hpp"
#include "shardplan/plan/resolve.hpp"

namespace shardplan::advise {

/// A change and, in a few words, why it may help; no words where that is plain.
struct Lever {
  plan::Change change;
  std::string_view reason;
};

/// Single steps from a run: for one that fits those that may be faster, for one that does not those that free memory.
/// `draft` is what was stated, `run` its resolution.
std::vector<Lever> single_levers(const plan::Draft& draft, const Run& run, bool fits);

/// The same fields further than the next step: other degrees, micro-batches, counts of recomputed layers.
std::vector<Lever> far_levers(const plan::Draft& draft, const Run& run);

/// The strong levers of a run that no single step makes fit: the first of each pair, then what goes with it.
struct PairedLevers {
  std::vector<Lever> first;
  std::vector<Lever> second;
};
PairedLevers paired_levers(const plan::Draft& draft, const Run& run);

/// Sets of levers to try at more GPUs, the mildest first; the first is empty.
std::vector<std::vector<Lever>> lever_ladder(const plan::Draft& draft, const Run& run);

/// More GPUs with the layout of a replica as it is.
Lever more_gpus(int num_gpus);

}  // namespace shardplan::advise
