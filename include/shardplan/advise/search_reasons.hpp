// Why a search's best layout is the best, and what would help where none fits.
#pragma once

#include <string>
#include <vector>

#include "shardplan/advise/search_question.hpp"
#include "shardplan/plan/search_report.hpp"

namespace shardplan::advise {

/// The layouts one step away from a layout, each legal, `most` at most: those that do not fit but would be faster
/// first, then by step time. A degree's data follows. `base`: of plan::search_base().
std::vector<plan::WhyNot> neighbours(const plan::Draft& base, const Layout& best, std::size_t most);

/// One layout beside the best one: the best layout with these fields ("tp=4,pp=8") changed, or, where that is not
/// legal, the best of all layouts of the question that have them.
Result<plan::WhyNot> why_not(const SearchQuestion& question, const plan::SearchOptions& options,
                             const plan::SearchRow& best, const std::string& fields, const io::CatalogSource& catalog);

/// More GPUs, a shorter sequence, and the host's memory where the search left that out: the first of each that fits.
std::vector<plan::WayToFit> ways_to_fit(const SearchQuestion& question, const plan::SearchOptions& options);

/// Where no layout is legal: the stated values of each variable without which there would be one, or, where several are
/// in the way, those that no layout has whatever the others are.
std::vector<plan::Refusal> refusals(const SearchQuestion& question);

/// The best layouts on hardware with twice of each: memory, FLOP/s, memory bandwidth, link, NIC.
std::vector<plan::Sensitivity> sensitivity_of(const SearchQuestion& question, const plan::SearchOptions& options,
                                              const plan::Found& best);

}  // namespace shardplan::advise
