// Degrees of the layout as symbols: what the run file states, and what follows from it.
#pragma once

#include "shardplan/core/run.hpp"
#include "shardplan/explain/terms.hpp"

namespace shardplan::explain {

/// Data-parallel ranks: GPUs over the other degrees.
Sym data_degree(Terms& terms, const Run& run);

/// Ranks of a group, of a shard set or of its replicas; derived degrees have formulas. 1 leaves no trace.
Sym ranks_of(Terms& terms, const Run& run, GroupKind group, int size);

}  // namespace shardplan::explain
