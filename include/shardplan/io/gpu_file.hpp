// A GPU as JSON: an entry of `list gpus --json`, a built-in fact sheet, or an object inside a cluster file.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "shardplan/core/cluster.hpp"
#include "shardplan/core/diagnostic.hpp"
#include "shardplan/io/catalog_source.hpp"

namespace shardplan::io {

/// Reads a GPU object. `file` and `pointer` say where it stands, for the messages. Every problem is reported.
/// Required: name, memory_cuda_gib or memory_reported_mib or memory_gb, memory_bandwidth_gb_s, dense_tflops with at
/// least one rate. docs/catalog.md lists the fields.
Result<Gpu> read_gpu(const nlohmann::json& object, std::string_view file, std::string_view pointer);

/// A built-in GPU by name or alias, case ignored; an unknown name is one problem with a "did you mean".
Result<Gpu> find_gpu(std::string_view name, std::string_view file, std::string_view pointer, const CatalogSource&);

}  // namespace shardplan::io
