// Ways out of a problem, in the words that the user would type: flags for what flags stated, pointers for the file.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/io/overrides.hpp"

namespace shardplan::io {

/// What was stated where.
struct Statement {
  const nlohmann::json* file = nullptr;    ///< the run file as read, nullptr: none
  const std::vector<Override>* overrides;  ///< the flags
};

/// The statement's flags once a way out has been typed: a field left out takes its flag away, or is null where the file
/// has it. `on_command_line`: it is typed as flags; else the file is edited, which is an override of no flag.
std::vector<Override> overrides_with(const Statement& statement, const WayOut& way, bool on_command_line);

/// "--zero 1, or --framework deepspeed --fsdp full_shard without --zero". `on_command_line`: a flag caused the problem,
/// so a flag is what mends it. Of the ways that set something the first two that `helps` says yes to; one that changes
/// the framework may have to leave a stack out as well.
std::string ways_out_text(const std::vector<WayOut>& ways, const Statement& statement, bool on_command_line,
                          const std::function<bool(const WayOut&)>& helps);

}  // namespace shardplan::io
