// What went wrong, as lines for standard error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/report/style.hpp"

namespace shardplan::cli {

/// What was done in spite of the problems: nothing, or the inputs that have none.
enum class Computed : unsigned char { nothing, others };

/// `file: /pointer: message`, the way out indented below it, and after two or more a line that counts them. Sorted by
/// file and position. With `show_source` the line of the file follows, carets under the place; a file that cannot be
/// read again (standard input) is left out. Lines are never wrapped.
std::string render_problems(Diagnostics problems, const report::Style& style, bool show_source,
                            Computed computed = Computed::nothing);

/// `note: text` and `warning: code: message`, one line each.
std::string render_remarks(const std::vector<std::string>& notes, const Warnings& warnings, const report::Style& style);

/// Characters of the JSON token that starts at a 1-based column (in characters) of a line; at least 1.
std::size_t token_width(std::string_view line, std::size_t column);

}  // namespace shardplan::cli
