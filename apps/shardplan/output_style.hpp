// How results and errors are to look, from the output flags, the environment and the terminal.
#pragma once

#include "command.hpp"

namespace shardplan::cli {

/// Problems name the flag and its legal values.
Result<OutputStyle> output_style(const Arguments& arguments);

/// Colour and characters of standard error.
report::Style error_style(const Arguments& arguments);

}  // namespace shardplan::cli
