// The members of files whose readers describe them as well.
#pragma once

#include "object_reader.hpp"
#include "shardplan/core/cluster.hpp"
#include "shardplan/io/catalog_source.hpp"

namespace shardplan::io {

void read_cluster_members(ObjectReader& reader, const CatalogSource& catalog, Cluster& cluster);
void read_gpu_members(ObjectReader& reader, Gpu& gpu);

}  // namespace shardplan::io
