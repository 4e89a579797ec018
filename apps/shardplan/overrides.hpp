// Flags of the command line as overrides of the run file's fields.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "command.hpp"
#include "shardplan/core/diagnostic.hpp"
#include "shardplan/io/overrides.hpp"

namespace shardplan::cli {

/// In command-line order, so that the later one wins. Flags that set no field of the run are passed over.
Result<std::vector<io::Override>> overrides_of(const Arguments& arguments);

}  // namespace shardplan::cli
