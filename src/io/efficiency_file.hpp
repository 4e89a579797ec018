// The `efficiency` block of a cluster file: the user's own measured tables.
#pragma once

#include "object_reader.hpp"
#include "shardplan/core/cluster.hpp"

namespace shardplan::io {

/// Reads `efficiency` of the object that `cluster` reads. Nothing happens where it is absent.
void read_efficiency(ObjectReader& cluster, MeasuredEfficiency& measured);

}  // namespace shardplan::io
