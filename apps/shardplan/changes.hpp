// Changes of a run that may help it: each as flags to paste and as the run's new statement.
#pragma once

#include <string>
#include <vector>

#include "levers.hpp"
#include "shardplan/io/catalog_source.hpp"
#include "shardplan/plan/resolve.hpp"

namespace shardplan::cli {

/// One change as flags, and what it makes of the statement of the run.
struct Change {
  std::string flags;
  std::string reason;
  plan::Draft draft;
};

/// Applies levers to a statement. Where they move a framework that nobody stated, the flags and the reason say so: what
/// is gained may then be the framework's doing. `change` is overwritten, its memory used again.
void change_of(const plan::Draft& draft, const std::vector<const Lever*>& levers, const io::CatalogSource& catalog,
               Change& change);

/// Single steps from a run: for one that fits those that may be faster, for one that does not those that free memory.
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

}  // namespace shardplan::cli
