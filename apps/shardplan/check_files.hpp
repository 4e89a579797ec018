// The run files that the words of `check` mean.
#pragma once

#include <string>
#include <vector>

#include "shardplan/advise/baseline.hpp"
#include "shardplan/core/diagnostic.hpp"

namespace shardplan::cli {

struct CheckFiles {
  std::vector<std::string> paths;  ///< each once, in the order of the words; those of one word sorted
  std::vector<std::string> notes;
  Diagnostics problems;  ///< words that mean no file
};

/// A word is a file, "-", a folder (every run file in it, at any depth, hidden folders apart; JSON that is something
/// else is passed over with a note) or a pattern for shells that leave it alone: `*`, `?` and `[...]` within a name,
/// `**` for any folders.
CheckFiles check_files(const std::vector<std::string>& words);

/// Files as this machine has them.
advise::Files files_on_disk();

}  // namespace shardplan::cli
