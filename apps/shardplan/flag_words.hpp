// The words that may stand behind a flag or a command, for shells to complete.
#pragma once

#include <string>
#include <vector>

#include "command.hpp"

namespace shardplan::cli {

/// What follows a flag or a command.
struct WordList {
  std::vector<std::string> words;
  bool files = false;     ///< JSON files and folders too
  bool any_file = false;  ///< files of any kind
};

/// The values of a flag: the names of the tables and of the catalog; nothing for numbers.
WordList words_of(const Flag& flag, const Command& command);

/// The words behind a command that are no flags.
WordList words_of(const Command& command);

}  // namespace shardplan::cli
