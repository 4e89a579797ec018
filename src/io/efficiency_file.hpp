// The `efficiency` block of a cluster file: the user's own measured tables.
#pragma once

#include "object_reader.hpp"
#include "shardplan/core/cluster.hpp"

namespace shardplan::io {

/// Reads `efficiency` of the object that `reader` reads into the cluster, whose GPU and links are known by then: what
/// is faster than they can be is a problem. Nothing happens where it is absent.
void read_efficiency(ObjectReader& reader, Cluster& cluster);

}  // namespace shardplan::io
