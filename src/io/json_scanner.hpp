// The pass over a text before nlohmann sees it: grammar, comments, trailing commas, duplicate keys.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/core/diagnostic.hpp"

namespace shardplan::io {

/// 1-based line and column (in characters) of an offset.
struct TextPosition {
  int line = 1;
  int column = 1;
};
TextPosition text_position(std::string_view text, std::size_t offset);

/// The characters that a JSON string's inside (without quotes, already checked) stands for.
std::string unescape(std::string_view inside);

/// Checks `text` to be JSON and blanks comments and trailing commas in it. True when nlohmann can read what is left;
/// the problems may then still name duplicate keys. `python_constants`: NaN and Infinity are blanked to {}.
bool scan_json(std::string& text, const std::string& file, bool python_constants, Diagnostics& problems);

}  // namespace shardplan::io
