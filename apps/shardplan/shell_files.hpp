// Files for shells and man(1), generated from the rows of the commands and flags.
#pragma once

#include <string>

namespace shardplan::cli {

std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

/// shardplan(1) in the man macros.
std::string man_page();

}  // namespace shardplan::cli
