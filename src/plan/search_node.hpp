// Estimates the layouts of one node of the search tree: layers folded once, stages once a schedule, memory once a
// sharding, time of those that the bounds leave.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "search_tree.hpp"
#include "shardplan/plan/search.hpp"
#include "shardplan/plan/workspace.hpp"

namespace shardplan::plan {

/// Best first, at most `top`: better keys, at a tie order_of.
class BestList {
 public:
  BestList() = default;
  explicit BestList(std::size_t top) : top_(top) { items_.reserve(top + 1); }

  void clear() noexcept { items_.clear(); }
  void add(const SearchKey& key, const Found& found);
  void merge(const BestList& other);
  /// What a key has to be at most to enter.
  SearchKey bar() const noexcept;
  bool empty() const noexcept { return items_.empty(); }
  std::size_t size() const noexcept { return items_.size(); }

  struct Item {
    SearchKey key;
    Found found;
  };
  const std::vector<Item>& items() const noexcept { return items_; }

 private:
  std::size_t top_ = 0;
  std::vector<Item> items_;
};

/// Layouts that none other is at least as good as in step time, memory, GPUs and GPU time of a step.
class Front {
 public:
  /// Whether a layout of at least this time with this much memory left could be on the front.
  bool open_to(double step_s, std::int64_t headroom, int num_gpus) const noexcept;
  void clear() noexcept { items_.clear(); }
  void add(const Found& found);
  void merge(const Front& other);
  const std::vector<Found>& items() const noexcept { return items_; }

 private:
  std::vector<Found> items_;
};

/// How much a layout that does not fit lacks: on the card first.
struct Lack {
  std::int64_t card = std::numeric_limits<std::int64_t>::max();
  std::int64_t host = 0;
  friend auto operator<=>(const Lack&, const Lack&) = default;
};

/// What nodes add to the result.
struct Harvest {
  SearchCounts counts;
  BestList best;
  Front front;
  Lack lack;
  std::optional<Found> nearest;  ///< memory alone, step_s not filled
  std::int64_t better = 0;       ///< than options.rank_of

  /// Empties it and keeps its memory.
  void clear() noexcept;
  void merge(const Harvest& other);
};

/// What a whole search shares.
struct SearchTask {
  const SearchTree& tree;
  const SearchOptions& options;
  SearchKey rank_key;          ///< of options.rank_of
  bool requires_time = false;  ///< options.require asks for more than headroom
};

/// What a microbatch's work depends on: grids that differ in pipeline, data and GPUs alone share it.
using WorkKey = std::array<int, 21>;

/// The work of the model on a microbatch, folded once for all grids that share it: a hash table with open addressing in
/// one vector. For one thread at a time.
class Folds {
 public:
  /// The work under a key, for the caller to fill where it is negative: not folded yet. Seconds. Until the next call.
  double& work(const WorkKey& key);
  /// Empties it and gives its memory back.
  void clear() noexcept { *this = {}; }

 private:
  struct Slot {
    WorkKey key{};
    double work_s = empty;
  };
  static constexpr double empty = -2;
  static constexpr double unknown = -1;

  /// The slot of the key, or the empty one where it belongs.
  Slot& slot_of(const WorkKey& key) noexcept;
  void grow();

  std::vector<Slot> slots_;  ///< a power of two of them
  std::size_t used_ = 0;
};

/// One thread's buffers.
class NodeSearch {
 public:
  explicit NodeSearch(const SearchTask& task);

  /// No layout of the node has a shorter step. Seconds. Argument: each rank's pipeline work is part of the makespan, so
  /// the mean rank's is, and that is the model's work of all microbatches over the stages; what a step takes beyond the
  /// makespan is not negative. Every exchange is overlapped as far as the node allows.
  double bound(const Node& node, Folds& folds);

  /// The nodes of a grid, until the next call.
  const std::vector<Node>& nodes(std::size_t grid, RuleCounts& illegal);

  /// The same of the node's layouts with one schedule: no order of this schedule's passes is faster
  /// (schedule::makespan_lower_bound), whatever the sharding.
  double bound(const Node& node, const Pipelining& pipelining);

  /// The legal layouts of a node; those that differ in overlap options alone are added to `without_overlap` as one.
  std::int64_t layouts(const Node& node, std::int64_t& without_overlap, RuleCounts& illegal);

  /// Adds the node's layouts to `harvest`. `before`: what earlier nodes have found; together with the node's own it
  /// decides what is cut.
  void visit(const Node& node, const Harvest& before, Harvest& harvest);

 private:
  /// What a sharding fixes whatever the schedule.
  struct Prepared {
    const Sharding* sharding = nullptr;
    StateRule rule;
    Topology topology;
    MemoryOverheads overheads;
  };
  struct Representative {
    std::size_t rank = 0;
    double ranks = 1;  ///< that it stands for
  };

  void prepare_shardings(const Node& node, bool fsdp);
  void visit_stages(const Node& node, const Pipelining& pipelining, const Harvest& before, Harvest& harvest);
  bool estimate_sharding_memory(const Prepared& prepared);
  void count_excess(std::int64_t layouts, ExcessCounts& counts) const noexcept;
  void list_representatives();
  void time_sharding(const Node& node, const Pipelining& pipelining, const Prepared& prepared, const Harvest& before,
                     Harvest& harvest);
  bool wanted(double step_s, std::optional<std::int64_t> headroom, const Harvest& before,
              const Harvest& harvest) const noexcept;
  double makespan_bound() const noexcept;
  double model_work();

  WorkKey work_key(const Node& node) const noexcept;

  const SearchTask& task_;
  const SearchTree& tree_;
  Run run_;
  EstimateWorkspace w_;
  Estimate out_;
  std::vector<Pipelining> pipelinings_;
  struct ScheduleKey {
    std::size_t grid = 0;
    std::int64_t micro_batch_size = 0;  ///< 0: none
    int layers = 0;
    bool operator==(const ScheduleKey&) const = default;
  };
  ScheduleKey counted_;  ///< whose schedules `pipelinings_` holds
  std::int64_t counted_schedules_ = 0;
  std::vector<Node> nodes_;
  std::vector<Prepared> prepared_;
  std::vector<Representative> representatives_;
  bool simulated_ = false;
};

}  // namespace shardplan::plan
