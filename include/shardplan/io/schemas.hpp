// The JSON Schemas (draft 7) of the files that are read and of what is printed, for editors and other programs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/io/catalog_source.hpp"

namespace shardplan::io {

/// "run", "cluster", "model", "output".
std::vector<std::string_view> schema_names();

/// The schema of that name, a whole document; nothing where there is none. `catalog`: whose names a file may spell.
/// What no schema can say (one number divides another, a file exists) only the readers check.
std::optional<std::string> schema_text(std::string_view name, const CatalogSource& catalog);

}  // namespace shardplan::io
