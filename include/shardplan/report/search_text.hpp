// A search's answer as a page of text, as markdown, and as CSV.
#pragma once

#include <string>

#include "shardplan/plan/search_report.hpp"
#include "shardplan/report/style.hpp"
#include "shardplan/report/table.hpp"

namespace shardplan::report {

struct SearchTextOptions {
  Style style;
  bool quiet = false;   ///< the first line only
  bool detail = false;  ///< every rule that refused layouts, and what the bounds cut
};

/// The best layout, where the run as stated stands, the table of the best, why the neighbours lose, what was left out,
/// what to type. Where nothing fits: the nearest layout and what would make one fit.
std::string search_text(const plan::SearchReport& report, const SearchTextOptions& options);

std::string search_markdown(const plan::SearchReport& report, const SearchTextOptions& options);

/// One row a layout: the best ones, then the front. Exact numbers.
std::string search_csv(const plan::SearchReport& report);

}  // namespace shardplan::report
