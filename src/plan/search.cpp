#include "shardplan/plan/search.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <deque>
#include <map>

#include "search_node.hpp"
#include "shardplan/core/threads.hpp"
#include "shardplan/plan/validate.hpp"

namespace shardplan::plan {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) noexcept {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Ranked {
  Node node;
  SearchKey bound;
  std::int64_t layouts = 0;
};

class Searcher {
 public:
  Searcher(const Draft& base, const Run& run, const SearchSpace& space, const SearchOptions& options)
      : start_(Clock::now()),
        options_(options),
        tree_(base, run, space),
        task_{tree_, options, {}, false},
        threads_(std::max(1, options.threads)),
        total_(options) {
    const Requirements& require = options.require;
    task_.requires_time = require.min_mfu || require.max_bubble || require.max_step_s ||
                          require.min_tokens_per_s_per_gpu || require.max_gpu_hours_per_1e12_tokens;
    if (options.rank_of != nullptr) {
      Estimate estimate;
      shardplan::estimate(*options.rank_of, estimate);
      task_.rank_key = key_of(options.objective, found_of(*options.rank_of, estimate));
    }
    for (int i = 0; i < threads_; ++i) workers_.emplace_back(task_);
  }

  SearchResult run() {
    total_.counts.illegal = tree_.illegal;
    const std::vector<std::vector<std::size_t>> counts = grids_of_counts();
    for (std::size_t i = 0; i < counts.size() && !(i > 0 && gives_up(0)); ++i) {
      share_done_ = static_cast<double>(i) / static_cast<double>(counts.size());
      share_next_ = static_cast<double>(i + 1) / static_cast<double>(counts.size());
      list_nodes(counts[i], i + 1 == counts.size());
      visit_nodes();
    }
    return conclude();
  }

 private:
  struct Total : Harvest {
    explicit Total(const SearchOptions& options) { best = BestList(options.top); }
  };

  static Found found_of(const Run& run, const Estimate& estimate) {
    Found found;
    found.layout = layout_of(run);
    found.peak_bytes = estimate.peak_bytes;
    found.reserved_bytes = estimate.reserved_bytes;
    found.headroom_bytes = estimate.headroom_bytes;
    found.step_s = estimate.time.step_s;
    return found;
  }

  bool stopped() {
    if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed)) stopped_ = true;
    if (options_.most_s > 0 && seconds_since(start_) > options_.most_s) stopped_ = true;
    return stopped_;
  }

  /// Grids that differ in pipeline, data and GPUs alone: one thread takes them, and what it folds serves all.
  struct Group {
    Folds folds;
    std::vector<std::size_t> grids;  ///< of the number of GPUs at hand
  };

  /// The grids of each number of GPUs, those first that cut the most of the others.
  std::vector<std::vector<std::size_t>> grids_of_counts() const {
    std::map<int, std::vector<std::size_t>> counts;
    for (std::size_t i = 0; i < tree_.grids.size(); ++i) counts[tree_.grids[i].num_gpus].push_back(i);
    std::vector<std::vector<std::size_t>> list;
    list.reserve(counts.size());
    for (auto& [num_gpus, grids] : counts) list.push_back(std::move(grids));
    const bool largest_first = options_.objective == Objective::throughput || options_.objective == Objective::headroom;
    if (largest_first) std::reverse(list.begin(), list.end());
    return list;
  }

  /// What every layout has at best with this number of GPUs: no time and all memory free.
  bool unwanted(int num_gpus) const noexcept {
    Found bound;
    bound.layout.num_gpus = num_gpus;
    bound.headroom_bytes = static_cast<std::int64_t>(tree_.run().cluster.gpu.memory_cuda_bytes);
    return unwanted(key_of(options_.objective, bound));
  }

  /// Nodes that may hold something wanted, and how many layouts there are.
  struct Listed {
    std::vector<Ranked> nodes;
    std::int64_t layouts = 0;
    std::int64_t without_overlap = 0;
    std::int64_t cut = 0;
  };

  void list_nodes_of(std::size_t grid, bool cut, NodeSearch& worker, Folds& folds, Listed& listed,
                     RuleCounts& refused) const {
    for (const Node& node : worker.nodes(grid, refused)) {
      Ranked ranked;
      ranked.node = node;
      ranked.layouts = worker.layouts(node, listed.without_overlap, refused);
      listed.layouts += ranked.layouts;
      if (ranked.layouts == 0) continue;
      Found bound;
      bound.layout.num_gpus = tree_.grids[grid].num_gpus;
      bound.headroom_bytes = static_cast<std::int64_t>(tree_.run().cluster.gpu.memory_cuda_bytes);
      if (!cut) bound.step_s = worker.bound(node, folds);
      ranked.bound = key_of(options_.objective, bound);
      if (unwanted(ranked.bound)) {
        listed.cut += ranked.layouts;
      } else {
        listed.nodes.push_back(ranked);
      }
    }
  }

  /// Every node of a number of GPUs with its bound and its layouts, best bound first.
  void list_nodes(const std::vector<std::size_t>& grids, bool last) {
    std::vector<Group*> groups;
    for (const std::size_t index : grids) {
      const Grid& grid = tree_.grids[index];
      Group& group = groups_[{grid.tensor, grid.context, grid.expert, grid.expert_tensor}];
      if (group.grids.empty()) groups.push_back(&group);
      group.grids.push_back(index);
    }
    const bool cut = unwanted(tree_.grids[grids.front()].num_gpus);
    std::vector<Listed> lists(groups.size());
    std::vector<RuleCounts> refused(workers_.size(), RuleCounts{});
    share_out(static_cast<std::size_t>(threads_), groups.size(), [&](std::size_t thread, std::size_t i) {
      constexpr std::size_t least_groups = 16;
      Group& group = *groups[i];
      if (i >= least_groups && stopped()) return group.grids.clear();
      for (const std::size_t grid : group.grids) {
        list_nodes_of(grid, cut, workers_[thread], group.folds, lists[i], refused[thread]);
      }
      group.grids.clear();
      if (last) group.folds.clear();
    });
    for (const RuleCounts& counts : refused) {
      for (std::size_t i = 0; i < rule_count; ++i) total_.counts.illegal[i] += counts[i];
    }
    nodes_.clear();
    for (const Listed& listed : lists) {
      nodes_.insert(nodes_.end(), listed.nodes.begin(), listed.nodes.end());
      total_.counts.layouts += listed.layouts;
      total_.counts.without_overlap += listed.without_overlap;
      total_.counts.cut_by_bound += listed.cut;
    }
    std::stable_sort(nodes_.begin(), nodes_.end(), [](const Ranked& a, const Ranked& b) { return a.bound < b.bound; });
  }

  /// Batches, each cut by what the batches before it found: their sizes are fixed, so that the same layouts are cut
  /// however many threads there are.
  void visit_nodes() {
    constexpr std::size_t largest = 64;
    std::vector<Harvest> harvests(largest, Harvest{});
    for (Harvest& harvest : harvests) harvest.best = BestList(options_.top);
    std::array<char, largest> visited{};
    std::size_t first = 0;
    for (std::size_t size = 4; first < nodes_.size() && !gives_up(first); size = std::min(2 * size, largest)) {
      const std::size_t last = std::min(nodes_.size(), first + size);
      visited.fill(0);
      share_out(static_cast<std::size_t>(threads_), last - first, [&](std::size_t thread, std::size_t i) {
        if (gives_up(first + i)) return;
        const Ranked& ranked = nodes_[first + i];
        harvests[i].clear();
        visited[i] = 1;
        if (unwanted(ranked.bound)) {
          harvests[i].counts.cut_by_bound += ranked.layouts;
        } else {
          workers_[thread].visit(ranked.node, total_, harvests[i]);
          harvests[i].counts.illegal = RuleCounts{};  // counted when the nodes were listed
        }
      });
      for (std::size_t i = 0; i < last - first; ++i) {
        if (visited[i] != 0) total_.merge(harvests[i]);
      }
      first = last;
      report(static_cast<double>(first) / static_cast<double>(nodes_.size()));
    }
  }

  /// Stopped, but with something to show: who stops early still gets the best of the first nodes.
  bool gives_up(std::size_t node) {
    constexpr std::size_t least_nodes = 512;
    return stopped() && (!total_.best.empty() || node >= least_nodes);
  }

  /// Whether no layout with this bound is wanted.
  bool unwanted(const SearchKey& bound) const noexcept {
    if (options_.pareto) return false;
    if (options_.rank_of != nullptr && bound <= task_.rank_key) return false;
    return bound > total_.best.bar();
  }

  /// `share`: of the nodes at hand that are done.
  void report(double share) {
    if (!options_.progress) return;
    const double now = seconds_since(start_);
    if (now - reported_s_ < 0.2) return;
    reported_s_ = now;
    SearchProgress progress;
    progress.done = total_.counts.estimated + total_.counts.cut_by_bound;
    progress.share = share_done_ + share * (share_next_ - share_done_);
    progress.elapsed_s = now;
    if (!total_.best.empty()) progress.best = total_.best.items().front().found;
    options_.progress(progress);
  }

  SearchResult conclude() {
    SearchResult result;
    result.complete = !stopped_;
    result.counts = total_.counts;
    for (const BestList::Item& item : total_.best.items()) result.best.push_back(item.found);
    result.pareto = total_.front.items();
    std::sort(result.pareto.begin(), result.pareto.end(), [](const Found& a, const Found& b) {
      return a.step_s != b.step_s ? a.step_s < b.step_s : a.headroom_bytes > b.headroom_bytes;
    });
    for (Found& found : result.pareto) found.pareto = true;
    mark_front(result.best);
    if (total_.best.empty() && total_.counts.fit + total_.counts.misses == 0) result.nearest = total_.nearest;
    if (result.nearest) fill_time(*result.nearest);
    if (options_.rank_of != nullptr && result.complete) result.rank = 1 + total_.better;
    result.threads = threads_;
    result.wall_s = seconds_since(start_);
    return result;
  }

  static void mark_front(std::vector<Found>& list) {
    for (Found& one : list) {
      one.pareto = std::none_of(list.begin(), list.end(), [&](const Found& other) {
        const bool as_good = other.step_s <= one.step_s && other.headroom_bytes >= one.headroom_bytes &&
                             other.layout.num_gpus <= one.layout.num_gpus;
        const bool better = other.step_s < one.step_s || other.headroom_bytes > one.headroom_bytes ||
                            other.layout.num_gpus < one.layout.num_gpus || order_of(other.layout, one.layout) < 0;
        return &other != &one && as_good && better;
      });
    }
  }

  void fill_time(Found& found) const {
    Run run;
    const Draft draft = with_layout(tree_.base(), found.layout);
    resolve(draft, run);
    assert(broken_rules(draft, run).none());
    Estimate estimate;
    shardplan::estimate(run, estimate);
    found = found_of(run, estimate);
  }

  Clock::time_point start_;
  const SearchOptions& options_;
  SearchTree tree_;
  SearchTask task_;
  int threads_;
  std::deque<NodeSearch> workers_;  ///< one a thread
  std::map<std::array<int, 4>, Group> groups_;
  std::vector<Ranked> nodes_;
  Total total_;
  double share_done_ = 0;  ///< of the search, before the number of GPUs at hand
  double share_next_ = 1;  ///< and after it
  double reported_s_ = 0;
  std::atomic<bool> stopped_{false};
};

}  // namespace

SearchSpace space_of(const Run& run) {
  const Layout layout = layout_of(run);
  SearchSpace space;
  space.num_gpus = {layout.num_gpus};
  for_each_variable([&](Field, auto list, auto member) { (space.*list).emplace({layout.*member}); });
  space.data = {run.parallel.data};
  if (layout.fsdp == Fsdp::none) {
    space.fsdp.reset();
  } else {
    space.zero.reset();
  }
  if (layout.shard_group == 0) space.shard_group.reset();
  space.offload = {run.training.offload};
  for_each_overlap([&](Field, auto value, auto member) { space.*value = layout.*member; });
  return space;
}

StepBounds step_bounds(const Draft& base, const Run& run) {
  const SearchSpace space = space_of(run);
  const SearchTree tree(base, run, space);
  const SearchOptions options;
  const SearchTask task{tree, options, {}, false};
  NodeSearch worker(task);
  RuleCounts illegal{};
  StepBounds bounds;
  if (tree.grids.empty()) return bounds;
  const std::vector<Node>& nodes = worker.nodes(0, illegal);
  if (nodes.empty()) return bounds;
  std::vector<Pipelining> pipelinings;
  tree.pipelinings(nodes.front(), pipelinings, illegal);
  if (pipelinings.empty() || tree.shardings(nodes.front()).empty()) return bounds;
  Folds folds;
  bounds.node_s = worker.bound(nodes.front(), folds);
  bounds.stages_s = worker.bound(nodes.front(), pipelinings.front());
  return bounds;
}

SearchResult search(const Draft& base, const Run& run, const SearchSpace& space, const SearchOptions& options) {
  SearchResult result = Searcher(base, run, space, options).run();
  const bool fits = result.counts.fit + result.counts.misses > 0;
  if (!result.best.empty() || !fits || !result.complete) return result;
  // Something fits and does not meet what is required: the nearest is the fastest, or that with the most memory left.
  SearchOptions freely;
  freely.objective = result.counts.fit == 0 ? Objective::headroom : Objective::throughput;
  if (result.counts.fit > 0) freely.require.min_headroom_gib = options.require.min_headroom_gib;
  freely.top = 1;
  freely.threads = options.threads;
  freely.stop = options.stop;
  const SearchResult free = Searcher(base, run, space, freely).run();
  if (!free.best.empty()) result.nearest = free.best.front();
  result.wall_s += free.wall_s;
  return result;
}

}  // namespace shardplan::plan
