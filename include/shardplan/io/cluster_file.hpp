// Cluster files: nodes, links and hosts around a GPU.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "shardplan/core/cluster.hpp"
#include "shardplan/core/diagnostic.hpp"
#include "shardplan/io/catalog_source.hpp"

namespace shardplan::io {

/// Reads a cluster object; a GPU named in it is looked up in `catalog`. `file` and `pointer` say where it stands (""
/// for a file of its own). Every problem is reported; on problems the value is not to be used.
/// What the file leaves out: gpus_per_node 8, scale_up_domain the node (72 for GB200 and GB300), intra_node the GPU's
/// link or its PCIe, inter_node InfiniBand at 50 GB/s, host not stated.
Result<Cluster> read_cluster(const nlohmann::json& object, std::string_view file, std::string_view pointer,
                             const CatalogSource& catalog);

/// A built-in cluster by name or alias, case ignored; an unknown name is one problem with a "did you mean".
Result<Cluster> find_cluster(std::string_view name, std::string_view file, std::string_view pointer,
                             const CatalogSource& catalog);

/// Usable bytes/s per direction of a x16 slot, by PCIe generation; 0 when it is not known.
double pcie_bandwidth(int generation) noexcept;

}  // namespace shardplan::io
