#include "shardplan/plan/search_report.hpp"

#include <functional>
#include <utility>

#include "shardplan/plan/change.hpp"

namespace shardplan::plan {

SearchRow row_of(const Draft& base, const Found& found) {
  SearchRow row;
  row.found = found;
  resolve(with_layout(base, found.layout), row.run);
  estimate(row.run, row.estimate);
  return row;
}

std::vector<Sensitivity> sensitivity_of(const Draft& base, const Run& run, const SearchSpace& space,
                                        const SearchOptions& options, const Found& best) {
  struct Part {
    std::string_view what;
    void (*twice)(Cluster&);
  };
  static constexpr std::array<Part, 5> parts = {{
      {"memory x2", [](Cluster& c) { c.gpu.memory_cuda_bytes *= 2; }},
      {"FLOP/s x2",
       [](Cluster& c) {
         for (double& rate : c.gpu.peak_flop_per_s) rate *= 2;
       }},
      {"memory bandwidth x2", [](Cluster& c) { c.gpu.memory_bandwidth *= 2; }},
      {"link in the node x2",
       [](Cluster& c) {
         c.intra_node.bandwidth *= 2;
         c.gpu.link_bandwidth *= 2;
       }},
      {"network x2", [](Cluster& c) { c.inter_node.bandwidth *= 2; }},
  }};
  std::vector<Sensitivity> list;
  SearchOptions again = options;
  again.top = 1;
  again.pareto = false;
  again.rank_of = nullptr;
  again.progress = nullptr;
  const auto cost = [](const Found& found) { return found.step_s * found.layout.num_gpus; };
  for (const Part& part : parts) {
    Draft changed = base;
    part.twice(changed.run.cluster);
    Run changed_run = run;
    part.twice(changed_run.cluster);
    const SearchResult result = search(changed, changed_run, space, again);
    if (!result.complete || result.best.empty()) break;
    Sensitivity one;
    one.what = part.what;
    one.step_s = result.best.front().step_s;
    one.gain = cost(best) / cost(result.best.front()) - 1;
    one.layout = flags_of(change_between(best.layout, result.best.front().layout));
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace shardplan::plan
