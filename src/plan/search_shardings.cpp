// The shardings of a grid: ZeRO stages and FSDP modes, where their states can be, what can be overlapped.
#include <algorithm>
#include <utility>

#include "search_rules.hpp"
#include "search_tree.hpp"
#include "shardplan/physics/frameworks/facts.hpp"

namespace shardplan::plan {

/// Where states and activations can be.
void SearchTree::list_places() {
  if (space_.offload) {
    places_ = *space_.offload;
    return;
  }
  const Host& host = run_.cluster.host;
  std::vector<OffloadDevice> devices = {OffloadDevice::none, OffloadDevice::cpu};
  if (host.nvme_bytes > 0 || host.nvme_bandwidth > 0) devices.push_back(OffloadDevice::nvme);
  for (const OffloadDevice optimizer : devices) {
    for (const OffloadDevice parameters : devices) {
      for (const OffloadDevice activations : {OffloadDevice::none, OffloadDevice::cpu}) {
        Offload place = run_.training.offload;
        place.optimizer = optimizer;
        place.parameters = parameters;
        place.activations = activations;
        places_.push_back(place);
      }
    }
  }
}

const ShardingStates& SearchTree::states_of(int zero_stage, Fsdp fsdp) {
  const auto key = std::pair(zero_stage, fsdp);
  if (const auto known = states_.find(key); known != states_.end()) return known->second;
  Layout layout = layout_of(run_);
  layout.zero_stage = zero_stage;
  layout.fsdp = fsdp;
  layout.shard_group = 0;
  Run resolved;
  resolve(with_layout(base_, layout), resolved);
  const Training& training = resolved.training;
  const ShardingStates states{resolved.parallel.grad_sync, training.param_dtype,           training.grad_dtype,
                              training.master_weights,     training.optimizer_state_dtype, training.autocast};
  return states_.emplace(key, states).first->second;
}

std::size_t SearchTree::sharding_list(const Grid& grid, bool recomputed) {
  const int dense = grid.data * grid.context;
  const int expert = facts_.experts > 0 ? grid.num_gpus / (grid.pipeline * grid.expert * grid.expert_tensor) : 1;
  const auto key = std::tuple(grid.pipeline > 1, dense, expert > 1, grid.num_gpus, recomputed);
  if (const auto known = sharding_index_.find(key); known != sharding_index_.end()) return known->second;
  sharding_lists.push_back(list_shardings(grid, recomputed));
  sharding_index_.emplace(key, sharding_lists.size() - 1);
  return sharding_lists.size() - 1;
}

std::vector<Sharding> SearchTree::list_shardings(const Grid& grid, bool recomputed) {
  const FrameworkFacts& framework = facts_of(run_.training.framework);
  const int dense = grid.data * grid.context;
  const int expert = facts_.experts > 0 ? grid.num_gpus / (grid.pipeline * grid.expert * grid.expert_tensor) : 1;
  const bool shared = dense > 1 || expert > 1;
  const bool torch = framework.shards_by_fsdp();

  const bool fsdp_alone = space_.fsdp && !space_.fsdp->empty();
  std::vector<int> stages;
  if (space_.zero) {
    stages = *space_.zero;
  } else if (!fsdp_alone && !torch) {
    stages.push_back(0);
    // On ranks that share nothing too: offload and the types of the states go with a stage.
    for (int stage = 1; stage <= framework.highest_zero_stage(grid.pipeline > 1); ++stage) stages.push_back(stage);
  }
  std::vector<Fsdp> modes;
  if (space_.fsdp) {
    modes = *space_.fsdp;
  } else if (!space_.zero && (torch || (framework.fsdp != FsdpKind::none && shared))) {
    modes = {Fsdp::full_shard};
    if (shared) modes = {Fsdp::full_shard, Fsdp::shard_grad_op, Fsdp::hybrid_shard};
    if (shared && torch) modes.push_back(Fsdp::no_shard);  // elsewhere ZeRO-0 by another name
  }

  std::vector<Sharding> list;
  for (const int stage : stages) {
    Sharding sharding;
    sharding.zero_stage = stage;
    add_sharding(grid, recomputed, sharding, list);
  }
  for (const Fsdp mode : modes) {
    Sharding sharding;
    sharding.fsdp = mode;
    if (mode != Fsdp::hybrid_shard) {
      add_sharding(grid, recomputed, sharding, list);
      continue;
    }
    std::vector<int> groups = space_.shard_group.value_or(divisors(dense));
    if (!space_.shard_group) {
      // One rank a group is no sharding, all of them full_shard.
      groups.erase(std::remove_if(groups.begin(), groups.end(), [&](int n) { return n == 1 || n == dense; }),
                   groups.end());
    }
    for (const int group : groups) {
      sharding.shard_group = group;
      add_sharding(grid, recomputed, sharding, list);
    }
  }
  return list;
}

bool SearchTree::offloads_activations(const Grid& grid, bool recomputed) const noexcept {
  switch (facts_of(run_.training.framework).offload.activations) {
    case ActivationOffload::one_stage_plain: return grid.pipeline == 1 && !recomputed;
    case ActivationOffload::checkpoints: return recomputed;
    case ActivationOffload::none: return false;
    case ActivationOffload::free: break;
  }
  return true;
}

/// Adds a sharding with each place that its states and the activations can have.
void SearchTree::add_sharding(const Grid& grid, bool recomputed, Sharding sharding, std::vector<Sharding>& list) {
  sharding.states = states_of(sharding.zero_stage, sharding.fsdp);
  const bool offloads = offloads_activations(grid, recomputed);
  for (const Offload& place : places_) {
    if (!space_.offload && place.activations != OffloadDevice::none && !offloads) continue;
    sharding.offload_optimizer = place.optimizer;
    sharding.offload_parameters = place.parameters;
    sharding.offload_activations = place.activations;
    set(grid, scratch_);
    set(sharding, scratch_);
    const RuleSet broken =
        broken_layout_rules(facts_, rule_inputs_of(scratch_, false)) | broken_training_rules(facts_, scratch_);
    if (refuse(broken, sharding_rules(), illegal)) continue;
    const OverlapPairs pairs = overlap_pairs(grid, sharding);
    sharding.overlap_grad_reduce = pairs.list[0].first;
    sharding.overlap_param_gather = pairs.list[0].second;
    sharding.overlap_values = static_cast<int>(pairs.count);
    list.push_back(sharding);
  }
}

OverlapPairs SearchTree::overlap_pairs(const Grid& grid, const Sharding& sharding) const noexcept {
  const int dense = grid.data * grid.context;
  const int expert = facts_.experts > 0 ? grid.num_gpus / (grid.pipeline * grid.expert * grid.expert_tensor) : 1;
  const bool reduces = dense > 1 || expert > 1;
  const bool gathers = reduces && (sharding.zero_stage >= 1 || shards_states(sharding.fsdp));
  const Overlap& overlap = run_.training.overlap;
  const auto allowed = [](const std::optional<bool>& stated, bool matters, bool otherwise, bool value) {
    if (stated) return value == *stated;
    return matters || value == otherwise;
  };
  const bool tied = facts_of(run_.training.framework).gathers_beside_reduction && gathers;
  const bool both_stated = space_.overlap_grad_reduce && space_.overlap_param_gather;
  OverlapPairs pairs;
  for (const bool reduce : {true, false}) {
    if (!allowed(space_.overlap_grad_reduce, reduces, overlap.grad_reduce, reduce)) continue;
    for (const bool gather : {true, false}) {
      if (!allowed(space_.overlap_param_gather, gathers, overlap.param_gather, gather)) continue;
      if (tied && gather && !reduce && !both_stated) continue;
      pairs.list[pairs.count++] = {reduce, gather};
    }
  }
  return pairs;
}

}  // namespace shardplan::plan
