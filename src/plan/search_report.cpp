#include "shardplan/plan/search_report.hpp"

#include <utility>

namespace shardplan::plan {

SearchRow row_of(const Draft& base, const Found& found) {
  SearchRow row;
  row.found = found;
  resolve(with_layout(base, found.layout), row.run);
  estimate(row.run, row.estimate);
  return row;
}

SearchOptions for_best_alone(const SearchOptions& options) {
  SearchOptions alone = options;
  alone.top = 1;
  alone.pareto = false;
  alone.rank_of = nullptr;
  alone.progress = nullptr;
  return alone;
}

}  // namespace shardplan::plan
