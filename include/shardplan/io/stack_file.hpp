// Software profiles: kernels, loss, overlap, memory and time constants of a dated stack.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/core/stack.hpp"
#include "shardplan/io/catalog_source.hpp"

namespace shardplan::io {

/// A stack object with all that it takes over from the stack that it is `"like"`: members of nested objects one by one,
/// but for its name, description, source and `timing.measured`. A name that is none and a stack that is like itself are
/// problems. `file` and `pointer` say where it stands, for the messages.
Result<nlohmann::json> whole_stack(const nlohmann::json& object, std::string_view file, std::string_view pointer,
                                   const CatalogSource& catalog);

/// Reads whole_stack().
Result<Stack> read_stack(const nlohmann::json& object, std::string_view file, std::string_view pointer,
                         const CatalogSource& catalog);

/// A built-in stack by name, case ignored; an unknown name is one problem with a "did you mean".
Result<Stack> find_stack(std::string_view name, std::string_view file, std::string_view pointer,
                         const CatalogSource& catalog);

/// What holds when a run names no stack: the framework's own kernels and loss, the time constants of its newest stack.
/// Its name is empty.
Stack default_stack(Framework framework, const CatalogSource& catalog);

}  // namespace shardplan::io
