// A name of the catalog as JSON, or the problem that there is none.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/io/catalog_source.hpp"

namespace shardplan::io {

/// The parsed entry, or nullptr and one problem at file and pointer.
std::shared_ptr<const nlohmann::json> look_up(CatalogKind kind, std::string_view name, std::string_view file,
                                              std::string_view pointer, const CatalogSource& catalog,
                                              Diagnostics& problems);

}  // namespace shardplan::io
