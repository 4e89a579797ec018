// What a search asks: the run that is the same for all layouts, and the values that the variables can have.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shardplan/io/catalog_source.hpp"
#include "shardplan/io/run_file.hpp"
#include "shardplan/plan/change.hpp"
#include "shardplan/plan/search_space.hpp"

namespace shardplan::advise {

struct SearchQuestion {
  io::RunInput input;  ///< the run file and the overrides that are no variable, framework and batch stated
  io::ReadRun read;    ///< of it with the least layout
  plan::Draft base;    ///< for plan::search, with read.run
  plan::SearchSpace space;
  bool gpus_vary = false;             ///< several numbers of GPUs were asked for, whole nodes or not
  std::optional<io::ReadRun> stated;  ///< the run as stated, where it is a legal one
  std::vector<std::string> notes;
  Diagnostics problems;

  bool ok() const noexcept { return problems.empty(); }
};

/// Overrides of variables take a value, a list ("1,2,4") or a range ("1..8", "64..1024*2"); `free` is the default
/// range. What a run file says of a variable is not kept, but for layers_per_stage, whose stages it fixes.
SearchQuestion search_question(const io::RunInput& input, const io::CatalogSource& catalog);

/// An input read once more, with further overrides.
io::ReadRun read_with(const io::RunInput& input, const std::vector<io::Override>& more,
                      const io::CatalogSource& catalog);

/// The run of a question with one layout: legal, with its run file in `run_json`. `more`: overrides besides.
io::ReadRun read_layout(const SearchQuestion& question, const Layout& layout, const io::CatalogSource& catalog,
                        std::vector<io::Override> more = {});

}  // namespace shardplan::advise
