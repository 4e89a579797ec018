// The words behind a command's name, taken apart with CLI11.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "command.hpp"

namespace shardplan::cli {

/// What parsing made of the words.
struct ParsedLine {
  Arguments arguments;
  bool help = false;
  Diagnostics problems;
};

/// `words`: argv without the program's and the command's name. Unknown flags are all reported, with a suggestion.
ParsedLine parse_command_line(const Command& command, std::span<const char* const> words);

/// What to say about a first word that is no command.
Diagnostics unknown_command(std::string_view typed);

/// The flag that a mistyped one most likely meant, e.g. "--tp" for "tensor-parallel"; empty when none is near.
std::string suggest_flag(const Command& command, std::string_view typed);

}  // namespace shardplan::cli
