#include "search_tree.hpp"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <utility>

#include "shardplan/plan/saturate.hpp"
#include "shardplan/schedule/legality.hpp"

namespace shardplan::plan {
namespace {

RuleSet rules(std::initializer_list<Rule> list) noexcept {
  RuleSet set;
  for (const Rule rule : list) add(set, rule);
  return set;
}

// Each rule belongs to the level that decides the last field it reads. virtual_alone and virtual_framework are about
// schedules that are not proposed otherwise, the layers_list rules hold by construction.
const RuleSet& grid_rules() noexcept {
  static const RuleSet set =
      rules({Rule::cluster_size,       Rule::node_shape,        Rule::framework_degrees,     Rule::single_node,
             Rule::stack_framework,    Rule::tensor_heads,      Rule::tensor_kv_heads,       Rule::tensor_intermediate,
             Rule::experts_missing,    Rule::expert_count,      Rule::expert_tensor_missing, Rule::expert_tensor_width,
             Rule::moe_options,        Rule::pipeline_layers,   Rule::world_product,         Rule::world_multiple,
             Rule::expert_world,       Rule::context_framework, Rule::context_heads,         Rule::sequence_context,
             Rule::sequence_positions, Rule::precision_gpu,     Rule::fp8_recipe_gpu,        Rule::peft_quant,
             Rule::peft_quant_tensor,  Rule::peft_kbit});
  return set;
}
const RuleSet& node_rules() noexcept {
  static const RuleSet set = rules({Rule::sequence_tensor, Rule::batch_multiple, Rule::recompute_framework,
                                    Rule::recompute_modules, Rule::too_large});
  return set;
}
const RuleSet& pipelining_rules() noexcept {
  static const RuleSet set = rules({Rule::virtual_alone, Rule::virtual_framework, Rule::virtual_layers,
                                    Rule::schedule_framework, Rule::schedule_shape, Rule::schedule_microbatches});
  return set;
}
const RuleSet& sharding_rules() noexcept {
  static const RuleSet set =
      rules({Rule::zero_and_fsdp, Rule::zero_framework, Rule::fsdp_framework, Rule::zero_pipeline, Rule::grad_sync_zero,
             Rule::zeropp_stage, Rule::shard_group_divides, Rule::fp8_param_gather, Rule::offload_optimizer,
             Rule::offload_parameters, Rule::offload_pair, Rule::offload_fraction});
  return set;
}

/// Counts the first of the broken rules of a level; true where there is one.
bool refuse(const RuleSet& broken, const RuleSet& level, RuleCounts& counts) noexcept {
  const RuleSet here = broken & level;
  if (here.none()) return false;
  for (std::size_t i = 0; i < rule_count; ++i) {
    if (!here[i]) continue;
    ++counts[i];
    break;
  }
  return true;
}

void refuse(Rule rule, RuleCounts& counts) noexcept { ++counts[static_cast<std::size_t>(rule)]; }

/// The stated values or, where there are none, the divisors of `number` up to `most`.
std::vector<int> values_or_divisors(const std::optional<std::vector<int>>& stated, std::int64_t number,
                                    std::int64_t most) {
  if (stated) return *stated;
  std::vector<int> list = divisors(number);
  list.erase(std::remove_if(list.begin(), list.end(), [&](int value) { return value > most; }), list.end());
  return list;
}

bool splits_data_only(Framework framework) noexcept {
  return framework == Framework::ddp || framework == Framework::dp;
}

/// Chunks that a schedule has by definition; 0: free.
int fixed_chunks(ScheduleKind kind) noexcept {
  if (kind == ScheduleKind::interleaved || kind == ScheduleKind::bfs) return 0;
  return schedule::placement(kind) == schedule::Placement::vee ? 2 : 1;
}

}  // namespace

std::vector<int> divisors(std::int64_t number) {
  std::vector<int> low, high;
  for (std::int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    low.push_back(static_cast<int>(d));
    if (d * d != number) high.push_back(static_cast<int>(number / d));
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

SearchTree::SearchTree(const Draft& base, const Run& run, const SearchSpace& space)
    : base_(base),
      run_(run),
      space_(space),
      facts_(facts_of(run.model)),
      list_given_(base.given.has(Field::layers_per_stage)),
      scratch_(run) {
  if (space.recompute) {
    recomputes = *space.recompute;
  } else {
    recomputes = {Recompute{}, Recompute{RecomputeMode::full, 0, 0}};
    const std::vector<AttentionKernel> kernels =
        space.attention.value_or(std::vector<AttentionKernel>{run.training.attention});
    if (std::find(kernels.begin(), kernels.end(), AttentionKernel::eager) != kernels.end()) {
      recomputes.insert(recomputes.begin() + 1, Recompute{RecomputeMode::selective, 0, 0});
    }
  }
  for (const int gpus : space.num_gpus) add_grids(gpus);
}

void SearchTree::add_grids(int num_gpus) {
  const bool data_only = splits_data_only(run_.training.framework);
  const std::int64_t domain = data_only ? 1 : run_.cluster.scale_up_domain;
  const auto limit = [&](std::int64_t most) { return data_only ? 1 : most; };
  const std::vector<int> one = {1};
  for (const int tensor : values_or_divisors(space_.tensor, num_gpus, domain)) {
    const std::int64_t after_tensor = num_gpus % tensor == 0 ? num_gpus / tensor : 1;
    for (const int pipeline : values_or_divisors(space_.pipeline, after_tensor, limit(facts_.layers + 2))) {
      const std::int64_t after_pipeline = after_tensor % pipeline == 0 ? after_tensor / pipeline : 1;
      for (const int context : values_or_divisors(space_.context, after_pipeline, limit(after_pipeline))) {
        const bool experts = facts_.experts > 0;
        const std::vector<int> expert_values =
            experts || space_.expert ? values_or_divisors(space_.expert, facts_.experts, limit(facts_.experts)) : one;
        for (const int expert : expert_values) {
          const std::vector<int> widths =
              experts || space_.expert_tensor ? values_or_divisors(space_.expert_tensor, num_gpus, domain) : one;
          for (const int width : widths) {
            Grid grid;
            grid.num_gpus = num_gpus;
            grid.tensor = tensor;
            grid.pipeline = pipeline;
            grid.context = context;
            grid.expert = expert;
            grid.expert_tensor = width;
            add_grid(grid);
          }
        }
      }
    }
  }
}

Layout SearchTree::layout_of_grid(const Grid& grid) const {
  Layout layout = layout_of(run_, false);
  layout.num_gpus = grid.num_gpus;
  layout.tensor = grid.tensor;
  layout.pipeline = grid.pipeline;
  layout.virtual_pipeline = 1;
  layout.context = grid.context;
  layout.expert = grid.expert;
  layout.expert_tensor = grid.expert_tensor;
  layout.data = grid.data;
  return layout;
}

void SearchTree::add_grid(Grid grid) {
  const std::int64_t replica = saturating_product({grid.tensor, grid.pipeline, grid.context});
  grid.data = static_cast<int>(std::max<std::int64_t>(1, grid.num_gpus / replica));
  set(grid, scratch_);
  RuleSet broken = broken_layout_rules(facts_, layout_of_grid(grid)) | broken_training_rules(facts_, scratch_);
  // A product that is not num_gpus is a wrong multiple: data follows.
  if (contains(broken, Rule::world_multiple)) broken.reset(static_cast<std::size_t>(Rule::world_product));
  if (!list_given_) {
    layers_of_chunks(facts_.layers, grid.pipeline, 1, scratch_.parallel.layers_per_chunk);
    if (scratch_.parallel.layers_per_chunk.empty()) add(broken, Rule::pipeline_layers);
  }
  if (refuse(broken, grid_rules(), illegal)) return;
  if (space_.data && std::find(space_.data->begin(), space_.data->end(), grid.data) == space_.data->end()) return;
  grid.shardings = sharding_list(grid, false);
  grid.recomputed_shardings = sharding_list(grid, true);
  grids.push_back(grid);
}

const ShardingStates& SearchTree::states_of(int zero_stage, Fsdp fsdp) {
  const auto key = std::pair(zero_stage, fsdp);
  if (const auto known = states_.find(key); known != states_.end()) return known->second;
  LayoutChoice choice = layout_choice_of(run_);
  choice.zero_stage = zero_stage;
  choice.fsdp = fsdp;
  choice.shard_group = 0;
  Run resolved;
  resolve(with_layout(base_, choice), resolved);
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
  const Framework framework = run_.training.framework;
  const int dense = grid.data * grid.context;
  const int expert = facts_.experts > 0 ? grid.num_gpus / (grid.pipeline * grid.expert * grid.expert_tensor) : 1;
  const bool shared = dense > 1 || expert > 1;
  const bool torch = framework == Framework::fsdp;

  const bool fsdp_alone = space_.fsdp && !space_.fsdp->empty();
  std::vector<int> stages;
  if (space_.zero) {
    stages = *space_.zero;
  } else if (!fsdp_alone && !torch) {
    stages.push_back(0);
    // On ranks that share nothing too: offload and the types of the states go with a stage.
    for (int stage = 1; stage <= highest_zero_stage(framework, grid.pipeline > 1); ++stage) stages.push_back(stage);
  }
  std::vector<Fsdp> modes;
  if (space_.fsdp) {
    modes = *space_.fsdp;
  } else if (!space_.zero && (torch || (framework == Framework::megatron && shared))) {
    modes = {Fsdp::full_shard};
    if (shared) modes = {Fsdp::full_shard, Fsdp::shard_grad_op, Fsdp::no_shard, Fsdp::hybrid_shard};
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

/// Megatron-LM offloads activations without a pipeline and without recomputation (transformer_config.py), DeepSpeed the
/// checkpoints of recomputation alone (activation_checkpointing.cpu_checkpointing).
bool SearchTree::offloads_activations(const Grid& grid, bool recomputed) const noexcept {
  switch (run_.training.framework) {
    case Framework::megatron: return grid.pipeline == 1 && !recomputed;
    case Framework::deepspeed: return recomputed;
    default: return true;
  }
}

/// Adds a sharding with each place that its states and the activations can have.
void SearchTree::add_sharding(const Grid& grid, bool recomputed, Sharding sharding, std::vector<Sharding>& list) {
  sharding.states = states_of(sharding.zero_stage, sharding.fsdp);
  std::vector<Offload> places;
  if (space_.offload) {
    places = *space_.offload;
  } else {
    const Host& host = run_.cluster.host;
    const bool nvme = host.nvme_bytes > 0 || host.nvme_bandwidth > 0;
    const std::vector<OffloadDevice> devices =
        nvme ? std::vector<OffloadDevice>{OffloadDevice::none, OffloadDevice::cpu, OffloadDevice::nvme}
             : std::vector<OffloadDevice>{OffloadDevice::none, OffloadDevice::cpu};
    for (const OffloadDevice optimizer : devices) {
      for (const OffloadDevice parameters : devices) {
        for (const OffloadDevice activations : {OffloadDevice::none, OffloadDevice::cpu}) {
          if (activations != OffloadDevice::none && !offloads_activations(grid, recomputed)) continue;
          Offload place = run_.training.offload;
          place.optimizer = optimizer;
          place.parameters = parameters;
          place.activations = activations;
          places.push_back(place);
        }
      }
    }
  }
  for (const Offload& place : places) {
    sharding.optimizer = place.optimizer;
    sharding.parameters = place.parameters;
    sharding.activations = place.activations;
    set(grid, scratch_);
    set(sharding, scratch_);
    const RuleSet broken =
        broken_layout_rules(facts_, layout_of(scratch_, false)) | broken_training_rules(facts_, scratch_);
    if (refuse(broken, sharding_rules(), illegal)) continue;
    const std::vector<std::pair<bool, bool>> pairs = overlap_pairs(grid, sharding);
    sharding.overlap_grad_reduce = pairs.front().first;
    sharding.overlap_param_gather = pairs.front().second;
    sharding.overlap_values = static_cast<int>(pairs.size());
    list.push_back(sharding);
  }
}

std::vector<std::pair<bool, bool>> SearchTree::overlap_pairs(const Grid& grid, const Sharding& sharding) const {
  const int dense = grid.data * grid.context;
  const int expert = facts_.experts > 0 ? grid.num_gpus / (grid.pipeline * grid.expert * grid.expert_tensor) : 1;
  const bool reduces = dense > 1 || expert > 1;
  const bool gathers = reduces && (sharding.zero_stage >= 1 || shards_states(sharding.fsdp));
  const auto values = [](const std::optional<bool>& stated, bool matters, bool otherwise) {
    if (stated) return std::vector<bool>{*stated};
    return matters ? std::vector<bool>{true, false} : std::vector<bool>{otherwise};
  };
  const Overlap& overlap = run_.training.overlap;
  // Megatron-LM overlaps the gathering of weights only beside the reduction of gradients (arguments.py).
  const bool tied = run_.training.framework == Framework::megatron && gathers;
  const bool both_stated = space_.overlap_grad_reduce && space_.overlap_param_gather;
  std::vector<std::pair<bool, bool>> pairs;
  for (const bool reduce : values(space_.overlap_grad_reduce, reduces, overlap.grad_reduce)) {
    for (const bool gather : values(space_.overlap_param_gather, gathers, overlap.param_gather)) {
      if (tied && gather && !reduce && !both_stated) continue;
      pairs.emplace_back(reduce, gather);
    }
  }
  return pairs;
}

void SearchTree::nodes(std::size_t index, Run& run, std::vector<Node>& list, RuleCounts& counts) const {
  const Grid& grid = grids[index];
  if (sharding_lists[grid.shardings].empty()) return;
  const Training& training = run_.training;
  const std::int64_t sequences = training.global_batch_size / grid.data;
  std::vector<std::int64_t> batches;
  if (space_.micro_batch) {
    batches = *space_.micro_batch;
  } else if (training.global_batch_size % grid.data == 0) {
    for (const int batch : divisors(sequences)) batches.push_back(batch);
  } else {
    return refuse(Rule::batch_multiple, counts);
  }
  std::vector<bool> parallel_sequences = {false};
  const bool megatron = training.framework == Framework::megatron;
  if (grid.tensor > 1) {
    if (space_.sequence_parallel) {
      parallel_sequences = *space_.sequence_parallel;
    } else if (training.stack.tensor_is_sequence_parallel || (megatron && facts_.experts > 0)) {
      parallel_sequences = {true};
    } else {
      parallel_sequences = {true, false};
    }
  }
  const std::vector<AttentionKernel> kernels =
      space_.attention.value_or(std::vector<AttentionKernel>{training.attention});
  set(grid, run);
  run.parallel.layers_per_chunk.clear();  // what the rules of schedules know of it is asked with the schedules
  set(sharding_lists[grid.shardings].front(), run);
  Layout layout = layout_of_grid(grid);
  for (const std::int64_t batch : batches) {
    layout.micro_batch_size = run.training.micro_batch_size = batch;
    if (batch > sequences || training.global_batch_size % (batch * grid.data) != 0) {
      refuse(Rule::batch_multiple, counts);
      continue;
    }
    for (const bool split : parallel_sequences) {
      layout.sequence_parallel = split;
      const RuleSet broken_layout = broken_layout_rules(facts_, layout);
      for (std::size_t i = 0; i < recomputes.size(); ++i) {
        run.training.recompute = recomputes[i];
        for (const AttentionKernel kernel : kernels) {
          run.training.attention = kernel;
          if (refuse(broken_layout | broken_training_rules(facts_, run), node_rules(), counts)) continue;
          Node node;
          node.grid = index;
          node.micro_batch_size = batch;
          node.recompute = i;
          node.attention = kernel;
          node.sequence_parallel = split;
          // Megatron-LM overlaps tensor parallel exchanges with sequence parallelism alone (arguments.py).
          const bool can = grid.tensor > 1 && (split || !megatron);
          node.overlap_tp = space_.overlap_tp.value_or(grid.tensor > 1 ? can : training.overlap.tp);
          list.push_back(node);
          if (space_.overlap_tp || !can) continue;
          node.overlap_tp = false;
          list.push_back(node);
        }
      }
    }
  }
}

bool SearchTree::p2p_matters(int pipeline, ScheduleKind kind) const noexcept {
  const bool plain = kind == ScheduleKind::one_f_one_b || kind == ScheduleKind::naive || kind == ScheduleKind::gpipe;
  return pipeline > 1 && !(plain && run_.training.framework != Framework::fsdp);
}

void SearchTree::pipelinings(const Node& node, std::vector<Pipelining>& list, RuleCounts& counts) const {
  list.clear();
  const Grid& grid = grids[node.grid];
  const Framework framework = run_.training.framework;
  Layout layout = layout_of_grid(grid);
  layout.micro_batch_size = node.micro_batch_size;
  layout.sequence_parallel = node.sequence_parallel;
  const std::int64_t layers = facts_.layers;
  const Recompute& recompute = recomputes[node.recompute];
  const bool counted = recompute.mode == RecomputeMode::first_n || recompute.mode == RecomputeMode::every_k;
  const int most_layers = std::max(counted ? recompute.n : 0, run_.training.offload.activation_layers);

  const auto propose = [&](ScheduleKind kind, int chunks) {
    layout.schedule = kind;
    layout.virtual_pipeline = chunks;
    layout.p2p_overlap = true;
    RuleSet broken = broken_layout_rules(facts_, layout);
    const std::int64_t all_chunks = std::int64_t{grid.pipeline} * chunks;
    // Where the chunks do not divide the layers, a share has to be left for each (layers_of_chunks).
    if (!list_given_ && layers % all_chunks != 0 && all_chunks > layers) add(broken, Rule::virtual_layers);
    if (refuse(broken, pipelining_rules(), counts)) return;
    if (most_layers > 0 && !list_given_ && most_layers > (layers + grid.pipeline - 1) / grid.pipeline) {
      return refuse(Rule::recompute_layers, counts);
    }
    Pipelining pipelining;
    pipelining.kind = kind;
    pipelining.virtual_pipeline = chunks;
    const bool strict = framework == Framework::megatron && kind == ScheduleKind::interleaved && grid.pipeline == 2;
    if (space_.overlap_p2p) {
      pipelining.overlap_p2p = *space_.overlap_p2p;
      if (strict && !pipelining.overlap_p2p) return refuse(Rule::interleaved_two, counts);
    } else if (p2p_matters(grid.pipeline, kind)) {
      pipelining.overlap_p2p_values = strict ? 1 : 2;
    } else {
      pipelining.overlap_p2p = run_.training.overlap.p2p;
    }
    list.push_back(pipelining);
  };

  if (grid.pipeline == 1) {
    const int chunks = space_.virtual_pipeline ? space_.virtual_pipeline->front() : 1;
    if (chunks > 1 && std::find(space_.virtual_pipeline->begin(), space_.virtual_pipeline->end(), 1) ==
                          space_.virtual_pipeline->end()) {
      return refuse(Rule::virtual_alone, counts);
    }
    // One stage has nothing to schedule.
    return propose(ScheduleKind::one_f_one_b, 1);
  }
  std::vector<ScheduleKind> kinds;
  if (space_.schedule) {
    kinds = *space_.schedule;
  } else {
    for (std::size_t i = 0; i < names_of<ScheduleKind>.size(); ++i) {
      if (has_schedule(framework, static_cast<ScheduleKind>(i))) kinds.push_back(static_cast<ScheduleKind>(i));
    }
  }
  for (const ScheduleKind kind : kinds) {
    const int fixed = fixed_chunks(kind);
    if (space_.virtual_pipeline) {
      for (const int chunks : *space_.virtual_pipeline) {
        const bool fits_kind = fixed == 0 ? chunks >= 2 : chunks == fixed;
        if (fits_kind || space_.schedule) propose(kind, chunks);
      }
    } else if (fixed > 0) {
      if (fixed == 1 || framework != Framework::deepspeed) propose(kind, fixed);
    } else if (framework != Framework::deepspeed) {
      for (int chunks = 2; std::int64_t{grid.pipeline} * chunks <= layers; ++chunks) {
        const std::int64_t all = std::int64_t{grid.pipeline} * chunks;
        if (layers % all == 0 || (layers + 2) % all == 0) propose(kind, chunks);
      }
    }
  }
}

}  // namespace shardplan::plan
