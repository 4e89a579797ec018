// The whole answer of a search, as data: `plan::SearchReport`, which reports print.
#pragma once

#include <string>
#include <vector>

#include "shardplan/advise/search_question.hpp"
#include "shardplan/plan/search_report.hpp"

namespace shardplan::advise {

/// What is to be told beside the best layouts.
struct SearchExtras {
  std::vector<std::string> why_not;  ///< layouts to set beside the best one: "tp=4,pp=8"
  bool neighbours = true;            ///< one step from the best
  bool ways = true;                  ///< where nothing fits: what makes something fit
  bool sensitivity = false;          ///< the search again on other hardware
};

/// Searches the space of a question. `options.require` is the run's own. Problems are those of `why_not`. Of the
/// report, `stated`, `file` and `use` are the caller's.
Result<plan::SearchReport> search_answer(const SearchQuestion& question, const plan::SearchOptions& options,
                                         const SearchExtras& extras, const io::CatalogSource& catalog);

/// The row of the run as stated, which has to be legal.
plan::SearchRow stated_row(const SearchQuestion& question);

}  // namespace shardplan::advise
