// `--explain TERM[@STAGE]`: one number of an estimate, opened.
#pragma once

#include <string_view>

#include "command.hpp"
#include "shardplan/plan/estimate.hpp"

namespace shardplan::cli {

/// The flag of every command that prints an estimate.
inline constexpr Flag explain_flag = {"explain",
                                      "",
                                      ValueKind::optional_text,
                                      FlagGroup::output,
                                      "TERM[@STAGE]",
                                      "open a number: formula, values, parts, source; without TERM the list",
                                      "why trace formula",
                                      ""};

/// The term, or the list of addresses where `term` is empty; an unknown one is a problem with suggestions.
Outcome explained(const Run& run, std::string_view term, const OutputStyle& style);

}  // namespace shardplan::cli
