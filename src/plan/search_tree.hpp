// The space of layouts as a tree: what is folded together stands together, and every rule is asked once, at the level
// whose fields it reads.
//
//   Grid       num_gpus, tensor, context, expert, expert_tensor, pipeline, and with them data
//   Node       a grid's micro_batch_size, sequence_parallel, recompute, attention: one fold of the layers
//   Pipelining a node's schedule and virtual_pipeline: one set of stages
//   Sharding   a grid's zero_stage, fsdp, shard_group and offload: one memory verdict
//   overlap    tp, grad_reduce, param_gather, p2p: the same memory, and never faster than with all of them on
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "shardplan/plan/search_space.hpp"

namespace shardplan::plan {

struct Grid : Degrees {
  int data = 1;
  std::size_t shardings = 0;             ///< index of SearchTree::sharding_lists
  std::size_t recomputed_shardings = 0;  ///< of those that go with recomputation
  std::size_t micro_batches = 0;         ///< index of the tree's lists of micro batch sizes
};

/// `overlap_tp` is the better of the values that it can have.
struct Node : MicrobatchOptions {
  std::size_t grid = 0;
  std::size_t recompute_index = 0;  ///< of SearchTree::recomputes
  int overlap_tp_values = 1;
};

/// `overlap_p2p` is the better of the values that it can have.
struct Pipelining : PassOrder {
  int overlap_p2p_values = 1;
};

/// Fields that follow from zero_stage and fsdp where they are not stated.
struct ShardingStates {
  GradSync grad_sync = GradSync::last;
  DType param_dtype = DType::bf16;
  DType grad_dtype = DType::bf16;
  bool master_weights = true;
  DType optimizer_state_dtype = DType::fp32;
  bool autocast = false;
};

/// `shard_group` 0: as the run has it. The overlaps are the best of the values that the two can have.
struct Sharding : StatePlacement {
  ShardingStates states;
  int overlap_values = 1;
};

/// overlap.grad_reduce and overlap.param_gather together, the best first.
struct OverlapPairs {
  std::array<std::pair<bool, bool>, 4> list{};
  std::size_t count = 0;
};

class SearchTree {
 public:
  /// `run`: the base resolved with any layout.
  SearchTree(const Draft& base, const Run& run, const SearchSpace& space);

  std::vector<Grid> grids;
  std::vector<std::vector<Sharding>> sharding_lists;
  std::vector<Recompute> recomputes;
  RuleCounts illegal{};

  const Draft& base() const noexcept { return base_; }
  const Run& run() const noexcept { return run_; }
  const SearchSpace& space() const noexcept { return space_; }

  /// A grid's nodes. `run`: any copy of run(), to work in.
  void nodes(std::size_t grid, Run& run, std::vector<Node>& nodes, RuleCounts& illegal) const;
  /// A node's schedules.
  void pipelinings(const Node& node, std::vector<Pipelining>& list, RuleCounts& illegal) const;
  const std::vector<Sharding>& shardings(const Node& node) const {
    const Grid& grid = grids[node.grid];
    const bool again = node.recompute.mode != RecomputeMode::none;
    return sharding_lists[again ? grid.recomputed_shardings : grid.shardings];
  }

  // A run's fields, level by level; each assumes those above it.
  void set(const Grid& grid, Run& run) const;
  void set(const Node& node, Run& run) const;  ///< the grid's too
  void set(const Node& node, const Pipelining& pipelining, Run& run) const;
  void set(const Sharding& sharding, Run& run) const;

  /// The layout with the best overlap.
  Layout layout(const Node& node, const Pipelining& pipelining, const Sharding& sharding) const;
  /// Calls visit for each layout of one memory verdict, the best overlap first.
  void for_each_overlap(const Node& node, const Pipelining& pipelining, const Sharding& sharding,
                        const std::function<void(const Layout&)>& visit) const;

  /// Whether overlap of p2p changes anything for a schedule of this run's framework.
  bool p2p_matters(int pipeline, ScheduleKind kind) const noexcept;

 private:
  void list_places();
  void add_grids(int num_gpus);
  void add_grid(Grid grid);
  std::size_t sharding_list(const Grid& grid, bool recomputed);
  std::vector<Sharding> list_shardings(const Grid& grid, bool recomputed);
  void add_sharding(const Grid& grid, bool recomputed, Sharding sharding, std::vector<Sharding>& list);
  bool offloads_activations(const Grid& grid, bool recomputed) const noexcept;
  const ShardingStates& states_of(int zero_stage, Fsdp fsdp);
  std::size_t micro_batch_list(int data);
  const std::vector<bool>& parallel_sequences(const Grid& grid) const noexcept;
  RuleInputs rule_inputs_of_grid(const Grid& grid) const;
  OverlapPairs overlap_pairs(const Grid& grid, const Sharding& sharding) const noexcept;

  const Draft& base_;
  const Run& run_;
  const SearchSpace& space_;
  ModelFacts facts_;
  bool list_given_ = false;
  Run scratch_;
  std::map<std::tuple<bool, int, bool, int, bool>, std::size_t> sharding_index_;
  std::map<std::pair<int, Fsdp>, ShardingStates> states_;
  // What every grid or node asks for, listed once.
  std::vector<std::vector<std::int64_t>> micro_batches_;
  std::map<int, std::size_t> micro_batch_index_;  ///< by data
  std::vector<AttentionKernel> attentions_;
  std::vector<Offload> places_;
  std::vector<ScheduleKind> schedules_;
  std::vector<bool> split_sequences_;  ///< sequence_parallel of grids with tensor parallelism
  std::vector<bool> whole_sequences_ = {false};
};

}  // namespace shardplan::plan
