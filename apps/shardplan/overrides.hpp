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

/// What FIELD=VALUE writes at FIELD's pointer: VALUE, but of "no-sp" the opposite, and of offload PART=PLACE pairs as
/// an object, as the flags of these names take them. `flag` is for messages.
Result<std::string> field_value(std::string_view flag, std::string_view field, std::string_view pointer,
                                std::string_view value);

}  // namespace shardplan::cli
