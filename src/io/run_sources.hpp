// The model and the cluster that a run names, wherever they are.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/io/catalog_source.hpp"
#include "shardplan/plan/resolve.hpp"

namespace shardplan::io {

/// Where a field's text came from: paths are relative to the run file's folder or to the working directory.
struct Origin {
  std::string file;    ///< for messages
  std::string folder;  ///< of the run file, or "" for the working directory
};

/// A model or cluster as JSON, and where it stands.
struct Source {
  std::shared_ptr<const nlohmann::json> value;  ///< nullptr: there is none, and a problem says so
  std::string file;                             ///< the file it stands in, for messages
  std::string pointer;                          ///< in that file
  std::string name;                             ///< of a built-in entry or a file; "" for an object
  std::string stated;                           ///< JSON text that states it in another run file
};

/// Finds what `value` (a name, a path, "-" or an object) means.
Source find_source(CatalogKind kind, const nlohmann::json& value, const Origin& origin, const CatalogSource& catalog,
                   Diagnostics& problems);

/// Reads a source into the draft, or marks the field unusable.
void read_model_source(const Source& source, plan::Draft& draft, Diagnostics& problems);
void read_cluster_source(const Source& source, const CatalogSource& catalog, plan::Draft& draft, Diagnostics& problems);

/// peft.targets, which needs the model: absent, q_proj and v_proj as PEFT has it.
void read_targets(const nlohmann::json* targets, std::string_view file, plan::Draft& draft, Diagnostics& problems);

}  // namespace shardplan::io
