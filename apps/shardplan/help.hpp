// What --help says, generated from the rows of the commands and flags, in lines of at most `width` characters.
#pragma once

#include <cstddef>
#include <string>

#include "command.hpp"

namespace shardplan::cli {

/// Bare `shardplan`: what it is, two examples, the commands.
std::string short_help(std::size_t width);

/// `shardplan --help`: the short help, a line for each command, exit statuses.
std::string long_help(std::size_t width);

/// `shardplan COMMAND --help`: examples, flags by group with the field that each sets, exit statuses.
std::string command_help(const Command& command, std::size_t width);

}  // namespace shardplan::cli
