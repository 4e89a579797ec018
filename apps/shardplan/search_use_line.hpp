// A layout of a search as words to type, and what a file that holds it has to name otherwise.
#pragma once

#include <string>
#include <vector>

#include "command.hpp"
#include "shardplan/advise/search_question.hpp"

namespace shardplan::cli {

/// `shardplan estimate RUN.json --tp 4 ..`: what to type for a layout.
std::string use_line(const Arguments& arguments, const advise::SearchQuestion& question, const Layout& layout);

/// Overrides that make paths of model and cluster absolute: one that a run file states is from its own folder, and the
/// new file may lie elsewhere.
std::vector<io::Override> absolute_paths(const advise::SearchQuestion& question);

}  // namespace shardplan::cli
