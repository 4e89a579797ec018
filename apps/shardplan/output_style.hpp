// How results and errors are to look, from the output flags, the environment and the terminal.
#pragma once

#include <span>
#include <string_view>

#include "command.hpp"

namespace shardplan::cli {

/// Problems name the flag and its legal values. `pictures`: what --format takes besides the usual four.
Result<OutputStyle> output_style(const Arguments& arguments, std::span<const std::string_view> pictures = {});

/// Colour and characters of standard error.
report::Style error_style(const Arguments& arguments);

}  // namespace shardplan::cli
