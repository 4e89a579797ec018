// What --help says, generated from the rows of the commands and flags.
#pragma once

#include <string>

#include "command.hpp"

namespace shardplan::cli {

/// Bare `shardplan`: what it is, two examples, the commands.
std::string short_help();

/// `shardplan --help`: the short help, a line for each command, exit statuses.
std::string long_help();

/// `shardplan COMMAND --help`: examples, flags by group with the field that each sets, exit statuses.
std::string command_help(const Command& command);

}  // namespace shardplan::cli
