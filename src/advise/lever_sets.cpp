// Levers that are tried where single steps are not enough.
#include <algorithm>
#include <utility>

#include "lever_parts.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/plan/legality.hpp"
#include "shardplan/plan/search_space.hpp"

namespace shardplan::advise {
namespace {

using plan::Draft;
using plan::Field;

/// The most that this run's framework shards, where there is something to shard over.
std::vector<Lever> strongest_sharding(const Draft& draft, const Run& run) {
  std::vector<Lever> levers;
  const Parallel& now = run.parallel;
  const FrameworkFacts& framework = facts_of(run.training.framework);
  if (framework.zero.highest > 1) {
    const int stage = framework.highest_zero_stage(now.pipeline > 1);
    if (now.zero_stage < stage) levers.push_back(lever(Field::zero_stage, stage, "states are sharded"));
  } else {
    if (framework.zero.highest == 1 && now.zero_stage < 1 && now.fsdp == Fsdp::none) {
      levers.push_back(lever(Field::zero_stage, 1, "sharded optimizer"));
    }
    if (now.fsdp != Fsdp::full_shard) {
      levers.push_back(fsdp_lever(draft, Fsdp::full_shard, "states are sharded", fsdp_framework(run)));
    }
  }
  return levers;
}

/// As many ranks as share the experts out evenly, up to eight nodes of eight.
Lever strongest_expert(const Run& run) {
  constexpr std::int64_t most = 64;
  const std::int64_t experts = plan::facts_of(run.model).experts;
  int expert = std::max(1, run.parallel.expert);
  while (2 * expert <= most && experts % (2 * std::int64_t{expert}) == 0) expert *= 2;
  return lever(Field::expert, expert, "fewer experts a GPU");
}

/// Optimizer and parameters on the host, in a framework that can.
Lever offload_everything(const Draft& draft, const Run& run) {
  Lever all = lever(Field::offload_optimizer, OffloadDevice::cpu, "states live in host memory");
  all.change.set(Field::offload_parameters, OffloadDevice::cpu);
  const int from = facts_of(run.training.framework).offload.parameters_cpu_from;
  if (from > 0) {
    all.change.set(Field::zero_stage, 3);
  } else if (from == never && !draft.given.has(Field::framework)) {
    all.change.set(Field::framework, implied_framework(true, false, false));
  }
  return all;
}

}  // namespace

std::vector<Lever> far_levers(const Draft& draft, const Run& run) {
  std::vector<Lever> levers;
  const Parallel& now = run.parallel;
  const Training& training = run.training;
  /// Whether a value is neither what the run has nor a single step from it.
  const auto is_far = [](std::int64_t value, std::int64_t has) {
    return value != has && value != 2 * has && 2 * value != has;
  };
  for (int tensor = 1; tensor <= run.cluster.scale_up_domain; tensor *= 2) {
    if (is_far(tensor, now.tensor)) levers.push_back(lever(Field::tensor, tensor, ""));
  }
  const bool equal_layers = !draft.given.has(Field::layers_per_stage);
  const auto layers = static_cast<std::int64_t>(run.model.layers());
  const bool one_order = has_plain_order(run);
  for (const int part : plan::divisors(layers)) {
    if (!equal_layers) break;
    if (part <= run.num_gpus && is_far(part, now.pipeline)) levers.push_back(lever(Field::pipeline, part, ""));
    const bool chunks = one_order && now.pipeline > 1 && part > 1 && layers % (std::int64_t{part} * now.pipeline) == 0;
    if (chunks && is_far(part, now.virtual_pipeline)) levers.push_back(chunks_lever(draft, run, part, ""));
  }
  constexpr int most_context = 64;
  for (int context = 1; splits_sequences(run) && context <= most_context; context *= 2) {
    if (context < now.context || context > 2 * now.context) levers.push_back(lever(Field::context, context, ""));
  }
  for (int expert = 1; run.model.has_experts() && expert <= plan::facts_of(run.model).experts; expert *= 2) {
    if (is_far(expert, now.expert)) levers.push_back(lever(Field::expert, expert, ""));
  }
  constexpr std::int64_t most_larger = 16;
  const std::int64_t sequences = std::max<std::int64_t>(1, training.global_batch_size / std::max(1, now.data));
  for (const int batch : plan::divisors(sequences)) {
    if (batch <= most_larger * training.micro_batch_size && is_far(batch, training.micro_batch_size)) {
      levers.push_back(lever(Field::micro_batch_size, batch, ""));
    }
  }
  // Some layers keep everything: Megatron counts the recomputed ones, torch takes every K-th.
  const auto per_stage = static_cast<int>(layers / std::max(1, now.pipeline * now.virtual_pipeline));
  for (int count = 1; count < per_stage; count *= 2) {
    levers.push_back(recompute_lever({RecomputeMode::first_n, count, 0}, ""));
  }
  for (const int step : {2, 3, 4}) {
    levers.push_back(recompute_lever({RecomputeMode::every_k, step, 0}, ""));
  }
  if (training.attention != AttentionKernel::flash_v3 &&
      plan::runs_attention(run.cluster.gpu, AttentionKernel::flash_v3)) {
    levers.push_back(lever(Field::attention, AttentionKernel::flash_v3, ""));
  }
  return levers;
}

PairedLevers paired_levers(const Draft& draft, const Run& run) {
  PairedLevers pairs;
  const Parallel& now = run.parallel;
  const Training& training = run.training;
  const bool shards = shards_over_something(run);
  if (training.recompute.mode != RecomputeMode::full) {
    pairs.first.push_back(recompute_lever({RecomputeMode::full, 0, 0}, "a layer keeps its input"));
  }
  if (training.micro_batch_size > 1) pairs.first.push_back(lever(Field::micro_batch_size, 1, "smaller activations"));
  constexpr std::int64_t shortest = 512;
  if (training.seq_length >= 2 * shortest) {
    pairs.first.push_back(lever(Field::seq_length, training.seq_length / 2, "half the sequence"));
  }
  for (int tensor = now.tensor * 2; tensor <= run.cluster.scale_up_domain; tensor *= 2) {
    pairs.second.push_back(lever(Field::tensor, tensor, "a part of each layer"));
  }
  const bool equal_layers = !draft.given.has(Field::layers_per_stage);
  for (int pipeline = now.pipeline * 2;
       equal_layers && pipeline <= std::min<std::int64_t>(run.model.layers(), run.num_gpus); pipeline *= 2) {
    pairs.second.push_back(lever(Field::pipeline, pipeline, "fewer layers a GPU"));
  }
  if (shards) {
    for (Lever& lever : strongest_sharding(draft, run)) pairs.second.push_back(std::move(lever));
  }
  if (training.offload.optimizer == OffloadDevice::none) pairs.second.push_back(offload_everything(draft, run));
  return pairs;
}

std::vector<std::vector<Lever>> lever_ladder(const Draft& draft, const Run& run) {
  std::vector<std::vector<Lever>> ladder = {{}};
  std::vector<Lever> recompute;
  if (run.training.recompute.mode != RecomputeMode::full) {
    recompute.push_back(recompute_lever({RecomputeMode::full, 0, 0}, "a layer keeps its input"));
    ladder.push_back(recompute);
  }
  for (Lever& lever : strongest_sharding(draft, run)) {
    std::vector<Lever> both = recompute;
    ladder.push_back({lever});
    both.push_back(std::move(lever));
    ladder.push_back(std::move(both));
  }
  // A model that data parallelism alone does not hold: split in the node, then over stages, and what is left sharded.
  if (draft.given.has(Field::framework) && !facts_of(run.training.framework).model_parallel) return ladder;
  const int node = std::min(run.cluster.scale_up_domain, run.cluster.gpus_per_node);
  std::vector<Lever> split = recompute;
  if (run.parallel.tensor < node) split.push_back(lever(Field::tensor, node, "a part of each layer"));
  if (run.model.has_experts()) split.push_back(strongest_expert(run));
  std::vector<Lever> sharded = split;
  if (run.parallel.fsdp == Fsdp::none) {
    if (run.parallel.zero_stage < 1) split.push_back(lever(Field::zero_stage, 1, "sharded optimizer"));
    sharded.push_back(fsdp_lever(draft, Fsdp::full_shard, "states are sharded", implied_framework(false, true, false)));
  }
  ladder.push_back(split);
  for (int pipeline = 2 * run.parallel.pipeline; pipeline <= 16; pipeline *= 2) {
    std::vector<Lever> staged = split;
    staged.push_back(lever(Field::pipeline, pipeline, "fewer layers a GPU"));
    ladder.push_back(std::move(staged));
  }
  ladder.push_back(std::move(sharded));
  return ladder;
}

}  // namespace shardplan::advise
