// Why the best layout is the best, and what would help where none fits.
#pragma once

#include <string>
#include <vector>

#include "search_input.hpp"
#include "shardplan/plan/search_report.hpp"

namespace shardplan::cli {

/// `--why-not FIELDS`: the best layout with these fields changed, or, where that is not legal, the best of all layouts
/// that have them.
Result<plan::WhyNot> asked_why_not(const SearchInput& input, const plan::SearchOptions& options,
                                   const plan::SearchRow& best, const std::string& fields);

/// More GPUs, a shorter sequence, and the host's memory where the search left that out: the first of each that fits.
std::vector<plan::WayToFit> ways_to_fit(const SearchInput& input, const plan::SearchOptions& options);

/// Where no layout is legal: the stated values of each variable without which there would be one, or, where several are
/// in the way, those that no layout has whatever the others are.
std::vector<plan::Refusal> refusals(const SearchInput& input);

/// `shardplan estimate RUN.json --tp 4 ..`: what to type for a layout.
std::string use_line(const Arguments& arguments, const SearchInput& input, const Layout& layout);

}  // namespace shardplan::cli
