// What is built in: models, GPUs, clusters, stacks and example runs, compiled into the binary as JSON texts.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "shardplan/io/catalog_source.hpp"

namespace shardplan::catalog {

/// The built-in texts. Nothing is parsed until an entry is used.
const io::CatalogSource& builtin_catalog();

/// The text of an example run of configs/runs, by name, case ignored.
std::optional<std::string_view> find_run(std::string_view name);

/// The names of the example runs.
std::vector<std::string_view> run_names();

}  // namespace shardplan::catalog
