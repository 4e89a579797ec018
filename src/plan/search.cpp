#include "shardplan/plan/search.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <map>
#include <thread>

#include "search_node.hpp"
#include "shardplan/plan/validate.hpp"

namespace shardplan::plan {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) noexcept {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Calls work(thread, index) for each index below `count`; threads take the next index when they are done with one.
template <class Work>
void share_out(int threads, std::size_t count, Work&& work) {
  std::atomic<std::size_t> next{0};
  const auto run = [&](std::size_t thread) {
    for (std::size_t i = next++; i < count; i = next++) work(thread, i);
  };
  const std::size_t helpers = std::min<std::size_t>(static_cast<std::size_t>(threads), count);
  std::vector<std::thread> others;
  for (std::size_t thread = 1; thread < helpers; ++thread) others.emplace_back(run, thread);
  run(0);
  for (std::thread& other : others) other.join();
}

struct Ranked {
  Node node;
  SearchKey bound;
  std::int64_t layouts = 0;
  std::int64_t without_overlap = 0;
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
    workers_.reserve(static_cast<std::size_t>(threads_));
    for (int i = 0; i < threads_; ++i) workers_.emplace_back(task_);
  }

  SearchResult run() {
    list_nodes();
    visit_nodes();
    return conclude();
  }

 private:
  struct Total : Harvest {
    explicit Total(const SearchOptions& options) { best = BestList(options.top); }
  };

  static Found found_of(const Run& run, const Estimate& estimate) {
    Found found;
    found.choice = layout_choice_of(run);
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

  /// Grids that differ in pipeline and data alone: what one thread folds serves all of them.
  std::vector<std::vector<std::size_t>> grids_that_share_folds() const {
    std::map<std::array<int, 5>, std::size_t> known;
    std::vector<std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < tree_.grids.size(); ++i) {
      const Grid& grid = tree_.grids[i];
      const std::array<int, 5> key{grid.num_gpus, grid.tensor, grid.context, grid.expert, grid.expert_tensor};
      const auto [at, added] = known.try_emplace(key, groups.size());
      if (added) groups.emplace_back();
      groups[at->second].push_back(i);
    }
    return groups;
  }

  void list_nodes_of(std::size_t grid, NodeSearch& worker, std::vector<Ranked>& list, RuleCounts& refused) const {
    std::vector<Node> nodes;
    worker.nodes(grid, nodes, refused);
    for (const Node& node : nodes) {
      Ranked ranked;
      ranked.node = node;
      ranked.layouts = worker.layouts(node, ranked.without_overlap, refused);
      if (ranked.layouts == 0) continue;
      Found bound;
      bound.choice.num_gpus = tree_.grids[grid].num_gpus;
      bound.headroom_bytes = static_cast<std::int64_t>(tree_.run().cluster.gpu.memory_cuda_bytes);
      bound.step_s = worker.bound(node);
      ranked.bound = key_of(options_.objective, bound);
      list.push_back(ranked);
    }
  }

  /// Every node with its bound and its layouts, best bound first.
  void list_nodes() {
    total_.counts.illegal = tree_.illegal;
    std::vector<std::vector<Ranked>> of_grid(tree_.grids.size());
    std::vector<RuleCounts> refused(workers_.size(), RuleCounts{});
    const std::vector<std::vector<std::size_t>> groups = grids_that_share_folds();
    share_out(threads_, groups.size(), [&](std::size_t thread, std::size_t group) {
      constexpr std::size_t least_groups = 16;
      if (group >= least_groups && stopped()) return;
      workers_[thread].forget();
      for (const std::size_t grid : groups[group])
        list_nodes_of(grid, workers_[thread], of_grid[grid], refused[thread]);
    });
    for (const RuleCounts& counts : refused) {
      for (std::size_t i = 0; i < rule_count; ++i) total_.counts.illegal[i] += counts[i];
    }
    for (const std::vector<Ranked>& list : of_grid) nodes_.insert(nodes_.end(), list.begin(), list.end());
    std::stable_sort(nodes_.begin(), nodes_.end(), [](const Ranked& a, const Ranked& b) { return a.bound < b.bound; });
    for (const Ranked& ranked : nodes_) {
      total_.counts.layouts += ranked.layouts;
      total_.counts.without_overlap += ranked.without_overlap;
    }
  }

  /// Batches, each cut by what the batches before it found: their sizes are fixed, so that the same layouts are cut
  /// however many threads there are.
  void visit_nodes() {
    std::size_t first = 0;
    for (std::size_t size = 4; first < nodes_.size() && !gives_up(first); size = std::min<std::size_t>(2 * size, 64)) {
      const std::size_t last = std::min(nodes_.size(), first + size);
      std::vector<Harvest> harvests(last - first, Harvest{});
      std::vector<char> visited(last - first, 0);
      share_out(threads_, last - first, [&](std::size_t thread, std::size_t i) {
        if (gives_up(first + i)) return;
        const Ranked& ranked = nodes_[first + i];
        harvests[i].best = BestList(options_.top);
        visited[i] = 1;
        if (unwanted(ranked)) {
          harvests[i].counts.cut_by_bound += ranked.layouts;
        } else {
          workers_[thread].visit(ranked.node, total_, harvests[i]);
          harvests[i].counts.illegal = RuleCounts{};  // counted when the nodes were listed
        }
      });
      for (std::size_t i = 0; i < harvests.size(); ++i) {
        if (visited[i] != 0) total_.merge(harvests[i]);
      }
      first = last;
      report(false);
    }
  }

  /// Stopped, but with something to show: who stops early still gets the best of the first nodes.
  bool gives_up(std::size_t node) {
    constexpr std::size_t least_nodes = 512;
    return stopped() && (!total_.best.empty() || node >= least_nodes);
  }

  /// Whether no layout of a node is wanted, by its bound alone.
  bool unwanted(const Ranked& ranked) const noexcept {
    if (options_.pareto) return false;
    if (options_.rank_of != nullptr && ranked.bound <= task_.rank_key) return false;
    return ranked.bound > total_.best.bar();
  }

  void report(bool last) {
    if (!options_.progress) return;
    const double now = seconds_since(start_);
    if (!last && now - reported_s_ < 0.2) return;
    reported_s_ = now;
    SearchProgress progress;
    progress.layouts = total_.counts.layouts;
    progress.done = total_.counts.estimated + total_.counts.cut_by_bound;
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
    if (total_.best.empty()) result.nearest = total_.nearest;
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
                             other.choice.num_gpus <= one.choice.num_gpus;
        const bool better = other.step_s < one.step_s || other.headroom_bytes > one.headroom_bytes ||
                            other.choice.num_gpus < one.choice.num_gpus || order_of(other.choice, one.choice) < 0;
        return &other != &one && as_good && better;
      });
    }
  }

  void fill_time(Found& found) const {
    Run run;
    const Draft draft = with_layout(tree_.base(), found.choice);
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
  std::vector<NodeSearch> workers_;
  std::vector<Ranked> nodes_;
  Total total_;
  double reported_s_ = 0;
  std::atomic<bool> stopped_{false};
};

}  // namespace

SearchSpace space_of(const Run& run) {
  const LayoutChoice choice = layout_choice_of(run);
  SearchSpace space;
  space.num_gpus = {choice.num_gpus};
  space.tensor = {choice.tensor};
  space.pipeline = {choice.pipeline};
  space.virtual_pipeline = {choice.virtual_pipeline};
  space.context = {choice.context};
  space.expert = {choice.expert};
  space.expert_tensor = {choice.expert_tensor};
  space.data = {run.parallel.data};
  space.micro_batch = {choice.micro_batch_size};
  space.schedule = {choice.schedule};
  if (choice.fsdp == Fsdp::none) {
    space.zero = {choice.zero_stage};
  } else {
    space.fsdp = {choice.fsdp};
  }
  if (choice.shard_group > 0) space.shard_group = {choice.shard_group};
  space.recompute = {choice.recompute};
  space.attention = {choice.attention};
  space.sequence_parallel = {choice.sequence_parallel};
  space.offload = {run.training.offload};
  space.overlap_grad_reduce = choice.overlap.grad_reduce;
  space.overlap_param_gather = choice.overlap.param_gather;
  space.overlap_tp = choice.overlap.tp;
  space.overlap_p2p = choice.overlap.p2p;
  return space;
}

StepBounds step_bounds(const Draft& base, const Run& run) {
  const SearchSpace space = space_of(run);
  const SearchTree tree(base, run, space);
  const SearchOptions options;
  const SearchTask task{tree, options, {}, false};
  NodeSearch worker(task);
  std::vector<Node> nodes;
  RuleCounts illegal{};
  StepBounds bounds;
  if (tree.grids.empty()) return bounds;
  worker.nodes(0, nodes, illegal);
  if (nodes.empty()) return bounds;
  std::vector<Pipelining> pipelinings;
  tree.pipelinings(nodes.front(), pipelinings, illegal);
  if (pipelinings.empty() || tree.shardings(nodes.front()).empty()) return bounds;
  bounds.node_s = worker.bound(nodes.front());
  bounds.stages_s = worker.bound(nodes.front(), pipelinings.front());
  return bounds;
}

SearchResult search(const Draft& base, const Run& run, const SearchSpace& space, const SearchOptions& options) {
  return Searcher(base, run, space, options).run();
}

}  // namespace shardplan::plan
