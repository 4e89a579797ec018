// What a `search` line means: the run that is the same for all layouts, and the values that the variables can have.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command.hpp"
#include "shardplan/io/run_file.hpp"
#include "shardplan/plan/change.hpp"
#include "shardplan/plan/search_space.hpp"

namespace shardplan::cli {

struct SearchInput {
  io::RunInput input;  ///< the run file and the flags that are no variable, framework and batch stated
  io::ReadRun read;    ///< of it with the least layout
  plan::Draft base;    ///< for plan::search
  plan::SearchSpace space;
  bool gpus_vary = false;             ///< several numbers of GPUs were asked for, whole nodes or not
  std::optional<io::ReadRun> stated;  ///< the run as stated, where it is a legal one
  std::vector<std::string> notes;
  Diagnostics problems;

  bool ok() const noexcept { return problems.empty(); }
};

/// Flags (and --set) of variables take a value, a list ("1,2,4") or a range ("1..8", "64..1024*2"); `free` is the
/// default range. What a run file says of a variable is not kept, but for layers_per_stage, whose stages it fixes.
SearchInput read_search_input(const Arguments& arguments);

/// An override of one field by a value as a flag states it.
io::Override set_to(plan::Field field, std::string value);

/// An input read once more, with further overrides.
io::ReadRun read_with(const io::RunInput& input, const std::vector<io::Override>& more);

/// A change as overrides of SearchInput::input.
std::vector<io::Override> overrides_of(const plan::Change& change);

/// The run with one layout: legal, with its run file in `run_json`.
io::ReadRun read_layout(const SearchInput& input, const Layout& layout);

}  // namespace shardplan::cli
