// Which data-parallel collectives a step makes, and how much each moves.
#include "shardplan/plan/data_calls.hpp"

#include <algorithm>
#include <cmath>

#include "shardplan/physics/frameworks/facts.hpp"

namespace shardplan {
namespace {

/// What the calls of one stage carry.
struct StageVolumes {
  DataVolumes<double> dense, experts;
  double embedding_gradient = 0;

  double bytes(const Payload& payload) const noexcept {
    return payload_bytes<double>(payload, dense, experts, embedding_gradient, payload.cut);
  }
};

struct GroupNames {
  std::string_view all_reduce, reduce_scatter, gather, gather_forward, gather_backward, replica_all_reduce, quantized;
};
constexpr GroupNames dense_names = {"grad_all_reduce",          "grad_reduce_scatter",       "param_all_gather",
                                    "param_all_gather_forward", "param_all_gather_backward", "grad_replica_all_reduce",
                                    "grad_quantized_all_to_all"};
constexpr GroupNames expert_names = {"expert_grad_all_reduce",           "expert_grad_reduce_scatter",
                                     "expert_param_all_gather",          "expert_param_all_gather_forward",
                                     "expert_param_all_gather_backward", "expert_grad_replica_all_reduce",
                                     "expert_grad_quantized_all_to_all"};

void group_calls(const Run& run, const StageVolumes& volumes, GroupKind group, const RankGroup& all,
                 const RankGroup& shard, const RankGroup& replicas, double units, const GroupNames& names,
                 DataCalls& calls) noexcept {
  const Parallel& parallel = run.parallel;
  const Training& training = run.training;
  const double m = static_cast<double>(run.microbatches());
  const double reduces = parallel.grad_sync == GradSync::every ? m : 1.0;
  const StackTiming& timing = training.stack.timing;
  const bool fully_sharded = shards_states(parallel.fsdp);
  // Each layer's gradients are reduced as its backward ends.
  const bool each_layer = fully_sharded && parallel.pipeline == 1 && parallel.grad_sync == GradSync::every;
  DataCall call;
  call.group = group;
  call.ranks = all;
  call.hidden = timing.grad_reduce_hidden;
  const auto carries = [&](Carried what, double narrower = 1, int cut = 1) {
    const bool experts = group == GroupKind::expert_data;
    call.payload = {what, !experts, experts, narrower, cut};
    call.bytes = volumes.bytes(call.payload);
  };
  const auto reduce = [&](Collective op, std::string_view name, const RankGroup& ranks) {
    call.op = op;
    call.name = name;
    call.ranks = ranks;
    call.passes = reduces;
    call.units = each_layer ? units : 1;
    call.overlaps = training.overlap.grad_reduce;
    call.hides = each_layer || reduces > 1 ? Hides::behind_each_backward : Hides::behind_last_backward;
    call.hidden = call.hides == Hides::behind_each_backward ? timing.fsdp_hidden : timing.grad_reduce_hidden;
    if (ranks.size > 1 && call.bytes > 0) calls.add(call);
  };
  const auto gather = [&](std::string_view name, const RankGroup& ranks, double passes, bool per_layer,
                          bool backward = false) {
    call.op = Collective::all_gather;
    call.name = name;
    call.ranks = ranks;
    call.passes = passes;
    call.units = per_layer ? units : 1;
    call.overlaps = training.overlap.param_gather;
    call.hides = !per_layer || (parallel.pipeline > 1 && passes <= 1) ? Hides::behind_first_forward
                 : backward                                           ? Hides::behind_each_backward
                                                                      : Hides::behind_each_forward;
    call.hidden = per_layer ? timing.fsdp_hidden : timing.grad_reduce_hidden;
    if (ranks.size > 1 && call.bytes > 0) calls.add(call);
  };
  if (fully_sharded) {
    // Under a pipeline the shards are gathered once a step (torchtitan: never resharded then).
    const double passes = parallel.pipeline > 1 ? 1.0 : m;
    carries(Carried::gathered);
    gather(names.gather_forward, shard, passes, true);
    if (parallel.fsdp != Fsdp::shard_grad_op) gather(names.gather_backward, shard, passes, true, true);
    carries(Carried::gradients);
    reduce(Collective::reduce_scatter, names.reduce_scatter, shard);
    carries(Carried::gradients, 1, shard.size);
    reduce(Collective::all_reduce, names.replica_all_reduce, replicas);
    return;
  }
  const int stage = parallel.zero_stage;
  carries(Carried::gradients, stage > 0 && parallel.qgz ? 4 : 1);
  if (stage == 0) {
    reduce(Collective::all_reduce, names.all_reduce, all);
    return;
  }
  if (parallel.qgz) {
    reduce(Collective::all_to_all, names.quantized, all);
  } else {
    reduce(Collective::reduce_scatter, names.reduce_scatter, all);
  }
  if (stage < 3) {
    carries(Carried::updated);
    gather(names.gather, all, 1, false);
    return;
  }
  carries(Carried::gathered, parallel.qwz ? 2 : 1);
  gather(names.gather_forward, all, m, true);
  carries(Carried::gathered);
  // hpZ: the backward gather stays inside the secondary partition's group.
  const RankGroup secondary = rank_group(std::clamp(parallel.shard_group, 1, all.size), all.per_domain);
  gather(names.gather_backward, parallel.hpz ? secondary : all, m, true, true);
}

}  // namespace

void stage_calls(const Run& run, const EstimateWorkspace& w, const Stage& stage, DataCalls& calls) noexcept {
  const Topology& topology = w.topology;
  const double units = stage.layers + (stage.root > 0 ? 1.0 : 0.0);
  const StageVolumes volumes = {
      data_volumes<double>(w.rule, run.training, stage.weights.dense),
      data_volumes<double>(w.rule, run.training, stage.weights.expert),
      embedding_gradient<double>(w.rule, static_cast<double>(run.padded_vocab()), run.parallel.tensor,
                                 static_cast<double>(run.model.hidden_size))};
  const auto add = [&](DataCall& call) {
    call.bytes = volumes.bytes(call.payload);
    calls.add(call);
  };
  group_calls(run, volumes, GroupKind::data, topology.group(GroupKind::data), topology.shard, topology.replicas, units,
              dense_names, calls);
  const RankGroup& expert_data = topology.group(GroupKind::expert_data);
  RankGroup shard = expert_data, replicas;
  if (run.parallel.fsdp == Fsdp::hybrid_shard) {
    shard = rank_group(std::clamp(run.parallel.shard_group, 1, expert_data.size), expert_data.per_domain);
    replicas = rank_group(expert_data.size / shard.size, 1);
  }
  group_calls(run, volumes, GroupKind::expert_data, expert_data, shard, replicas, stage.layers, expert_names, calls);
  if (stage.has_embedding != stage.has_head && run.model.tied_embeddings && run.parallel.pipeline > 1 &&
      !run.training.peft.active()) {
    DataCall call;
    call.name = "embedding_grad_all_reduce";
    call.group = GroupKind::embedding;
    call.ranks = topology.group(GroupKind::embedding);
    call.payload.what = Carried::embedding_gradient;
    call.overlaps = false;
    add(call);
  }
  if (w.spec.shape.kind == ScheduleKind::dualpipe && !run.training.peft.active()) {
    // Each chunk has a second holder at the other end of the pipeline: their gradients are summed.
    DataCall call;
    call.name = "holder_grad_all_reduce";
    call.group = GroupKind::pipeline;
    call.ranks = topology.group(GroupKind::pipeline);
    call.ranks.size = 2;
    call.ranks.per_domain = call.ranks.scope == Scope::inter_node ? 1 : 2;
    call.payload = {Carried::gradients, true, true};
    call.overlaps = false;
    add(call);
  }
  if (facts_of(run.training.framework).single_process && run.num_gpus > 1) {
    calls.count = 0;
    DataCall call;
    const double m = static_cast<double>(run.microbatches());
    call.ranks = topology.group(GroupKind::data);
    call.overlaps = false;
    call.passes = m;
    call.name = "replicate_parameters";
    call.op = Collective::broadcast;
    call.payload = {Carried::stored, true, true};
    add(call);
    call.name = "reduce_gradients";
    call.payload = {Carried::gradients, true, true};
    add(call);
  }
}

}  // namespace shardplan
