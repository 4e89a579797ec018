// `--explain TERM[@STAGE]`: one number of an estimate, opened.
#pragma once

#include <span>
#include <string>
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

/// A run with the name that it has on the page.
struct NamedRun {
  std::string name;
  const Run* run = nullptr;
};

/// The term in each of several runs; one that some of them lack is said to be missing there.
Outcome explained(std::span<const NamedRun> runs, std::string_view term, const OutputStyle& style);

/// The term, or the list of addresses where `term` is empty; an unknown one is a problem with suggestions.
Outcome explained(const Run& run, std::string_view term, const OutputStyle& style);

}  // namespace shardplan::cli
