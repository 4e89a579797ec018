#include "search_tree.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "search_rules.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/plan/saturate.hpp"
#include "shardplan/schedule/legality.hpp"

namespace shardplan::plan {
namespace {

/// The stated values or, where there are none, the divisors of `number` up to `most`.
std::vector<int> values_or_divisors(const std::optional<std::vector<int>>& stated, std::int64_t number,
                                    std::int64_t most) {
  if (stated) return *stated;
  std::vector<int> list = divisors(number);
  list.erase(std::remove_if(list.begin(), list.end(), [&](int value) { return value > most; }), list.end());
  return list;
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
      scratch_(run),
      attentions_(space.attention.value_or(std::vector<AttentionKernel>{run.training.attention})) {
  if (space.recompute) {
    recomputes = *space.recompute;
  } else {
    recomputes = {Recompute{}, Recompute{RecomputeMode::full, 0, 0}};
    if (std::find(attentions_.begin(), attentions_.end(), AttentionKernel::eager) != attentions_.end()) {
      recomputes.insert(recomputes.begin() + 1, Recompute{RecomputeMode::selective, 0, 0});
    }
  }
  const Training& training = run.training;
  if (space.schedule) {
    schedules_ = *space.schedule;
  } else {
    for (std::size_t i = 0; i < names_of<ScheduleKind>.size(); ++i) {
      if (has_schedule(training.framework, static_cast<ScheduleKind>(i))) {
        schedules_.push_back(static_cast<ScheduleKind>(i));
      }
    }
  }
  const bool always = training.stack.tensor_is_sequence_parallel ||
                      (facts_of(training.framework).experts_need_sequence_parallel && facts_.experts > 0);
  split_sequences_ =
      space.sequence_parallel.value_or(always ? std::vector<bool>{true} : std::vector<bool>{true, false});
  list_places();
  for (const int gpus : space.num_gpus) add_grids(gpus);
}

std::size_t SearchTree::micro_batch_list(int data) {
  const auto [known, added] = micro_batch_index_.try_emplace(data, micro_batches_.size());
  if (!added) return known->second;
  const std::int64_t batch = run_.training.global_batch_size;
  micro_batches_.emplace_back();
  if (space_.micro_batch) {
    micro_batches_.back() = *space_.micro_batch;
  } else if (batch % data == 0) {
    const std::vector<int> sizes = divisors(batch / data);
    micro_batches_.back().assign(sizes.begin(), sizes.end());
  }
  return known->second;
}

const std::vector<bool>& SearchTree::parallel_sequences(const Grid& grid) const noexcept {
  return grid.tensor > 1 ? split_sequences_ : whole_sequences_;
}

void SearchTree::add_grids(int num_gpus) {
  const bool data_only = facts_of(run_.training.framework).data_only;
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

RuleInputs SearchTree::rule_inputs_of_grid(const Grid& grid) const {
  RuleInputs inputs = rule_inputs_of(run_, false);
  static_cast<Degrees&>(inputs) = grid;
  inputs.virtual_pipeline = 1;
  inputs.data = grid.data;
  return inputs;
}

void SearchTree::add_grid(Grid grid) {
  const std::int64_t replica = saturating_product({grid.tensor, grid.pipeline, grid.context});
  grid.data = static_cast<int>(std::max<std::int64_t>(1, grid.num_gpus / replica));
  set(grid, scratch_);
  RuleSet broken = broken_layout_rules(facts_, rule_inputs_of_grid(grid)) | broken_training_rules(facts_, scratch_);
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
  grid.micro_batches = micro_batch_list(grid.data);
  grids.push_back(grid);
}

void SearchTree::nodes(std::size_t index, Run& run, std::vector<Node>& list, RuleCounts& counts) const {
  const Grid& grid = grids[index];
  if (sharding_lists[grid.shardings].empty()) return;
  const Training& training = run_.training;
  const std::int64_t sequences = training.global_batch_size / grid.data;
  const std::vector<std::int64_t>& batches = micro_batches_[grid.micro_batches];
  if (batches.empty()) return refuse(Rule::batch_multiple, counts);
  const bool needs_sequence = facts_of(training.framework).tensor_overlap_needs_sequence;
  set(grid, run);
  run.parallel.layers_per_chunk.clear();  // what the rules of schedules know of it is asked with the schedules
  set(sharding_lists[grid.shardings].front(), run);
  RuleInputs layout = rule_inputs_of_grid(grid);
  for (const std::int64_t batch : batches) {
    layout.micro_batch_size = run.training.micro_batch_size = batch;
    if (batch > sequences || training.global_batch_size % (batch * grid.data) != 0) {
      refuse(Rule::batch_multiple, counts);
      continue;
    }
    for (const bool split : parallel_sequences(grid)) {
      layout.sequence_parallel = split;
      const RuleSet broken_layout = broken_layout_rules(facts_, layout);
      for (std::size_t i = 0; i < recomputes.size(); ++i) {
        run.training.recompute = recomputes[i];
        for (const AttentionKernel kernel : attentions_) {
          run.training.attention = kernel;
          if (refuse(broken_layout | broken_training_rules(facts_, run), node_rules(), counts)) continue;
          Node node;
          node.grid = index;
          node.micro_batch_size = batch;
          node.recompute = recomputes[i];
          node.recompute_index = i;
          node.attention = kernel;
          node.sequence_parallel = split;
          const bool can = grid.tensor > 1 && (split || !needs_sequence);
          node.overlap_tp = space_.overlap_tp.value_or(grid.tensor > 1 ? can : training.overlap.tp);
          node.overlap_tp_values = !space_.overlap_tp && can ? 2 : 1;
          list.push_back(node);
        }
      }
    }
  }
}

bool SearchTree::p2p_matters(int pipeline, ScheduleKind kind) const noexcept {
  return pipeline > 1 && !facts_of(run_.training.framework).waits_for_sends(kind);
}

void SearchTree::pipelinings(const Node& node, std::vector<Pipelining>& list, RuleCounts& counts) const {
  list.clear();
  const Grid& grid = grids[node.grid];
  const FrameworkFacts& framework = facts_of(run_.training.framework);
  RuleInputs layout = rule_inputs_of_grid(grid);
  layout.micro_batch_size = node.micro_batch_size;
  layout.sequence_parallel = node.sequence_parallel;
  const std::int64_t layers = facts_.layers;
  const Recompute& recompute = node.recompute;
  const bool counted = recompute.mode == RecomputeMode::first_n || recompute.mode == RecomputeMode::every_k;
  const int most_layers = std::max(counted ? recompute.n : 0, run_.training.offload.activation_layers);

  const auto propose = [&](ScheduleKind kind, int chunks) {
    layout.schedule = kind;
    layout.virtual_pipeline = chunks;
    layout.overlap_p2p = true;
    RuleSet broken = broken_layout_rules(facts_, layout);
    const std::int64_t all_chunks = std::int64_t{grid.pipeline} * chunks;
    // Where the chunks do not divide the layers, a share has to be left for each (layers_of_chunks).
    if (!list_given_ && layers % all_chunks != 0 && all_chunks > layers) add(broken, Rule::virtual_layers);
    if (refuse(broken, pipelining_rules(), counts)) return;
    if (most_layers > 0 && !list_given_ && most_layers > (layers + grid.pipeline - 1) / grid.pipeline) {
      return refuse(Rule::recompute_layers, counts);
    }
    Pipelining pipelining;
    pipelining.schedule = kind;
    pipelining.virtual_pipeline = chunks;
    const bool strict = framework.needs_overlapped_sends(kind, grid.pipeline);
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
  for (const ScheduleKind kind : schedules_) {
    const int fixed = schedule::fixed_chunks(kind);
    if (space_.virtual_pipeline) {
      for (const int chunks : *space_.virtual_pipeline) {
        const bool fits_kind = fixed == 0 ? chunks >= 2 : chunks == fixed;
        if (fits_kind || space_.schedule) propose(kind, chunks);
      }
    } else if (fixed > 0) {
      if (fixed == 1 || framework.pipeline.virtual_stages) propose(kind, fixed);
    } else if (framework.pipeline.virtual_stages) {
      for (int chunks = 2; std::int64_t{grid.pipeline} * chunks <= layers; ++chunks) {
        const std::int64_t all = std::int64_t{grid.pipeline} * chunks;
        if (layers % all == 0 || (layers + 2) % all == 0) propose(kind, chunks);
      }
    }
  }
}

}  // namespace shardplan::plan
