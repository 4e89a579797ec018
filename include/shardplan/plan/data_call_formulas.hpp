// Which data-parallel collectives a step makes, how much each moves, how long it takes and what of it the step waits
// for. Formulas over numbers or text (physics/trace.hpp).
#pragma once

#include <algorithm>

#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/physics/layer_inputs.hpp"
#include "shardplan/physics/timing_formulas.hpp"
#include "shardplan/plan/data_volumes.hpp"
#include "shardplan/plan/step_names.hpp"
#include "shardplan/plan/step_rules.hpp"

namespace shardplan {

/// What the calls of one stage carry.
template <class Trace, class N = NumberOf<Trace>>
struct StageVolumes {
  const Trace& trace;
  DataVolumes<N> dense, experts;
  N embedding_gradient{};

  N bytes(const Payload& payload) const {
    const N cut = payload.cut > 1 ? trace.ranks(GroupKind::data, payload.cut) : N(1.0);
    return payload_bytes<N>(payload, dense, experts, embedding_gradient, cut);
  }
};

template <class Trace, class N = NumberOf<Trace>>
StageVolumes<Trace> stage_volumes(const Trace& trace, const Run& run, const EstimateWorkspaceOf<N>& w,
                                  const StageOf<N>& stage) {
  const Symbols<N> v = trace.symbols(symbols_for(run, run.model.kinds.front()));
  return {trace, data_volumes<N>(w.rule, run.training, stage.weights.dense),
          data_volumes<N>(w.rule, run.training, stage.weights.expert), embedding_gradient<N>(w.rule, v.V, v.t, v.h)};
}

struct CallNames {
  std::string_view all_reduce, reduce_scatter, gather, gather_forward, gather_backward, replica_all_reduce, quantized;
};
inline constexpr CallNames dense_call_names = {
    "grad_all_reduce",           "grad_reduce_scatter",     "param_all_gather",         "param_all_gather_forward",
    "param_all_gather_backward", "grad_replica_all_reduce", "grad_quantized_all_to_all"};
inline constexpr CallNames expert_call_names = {"expert_grad_all_reduce",           "expert_grad_reduce_scatter",
                                                "expert_param_all_gather",          "expert_param_all_gather_forward",
                                                "expert_param_all_gather_backward", "expert_grad_replica_all_reduce",
                                                "expert_grad_quantized_all_to_all"};

/// The calls of one group of weights, dense or of experts.
template <class Trace, class N = NumberOf<Trace>>
class GroupCalls {
 public:
  GroupCalls(const Run& run, const StageVolumes<Trace>& volumes, GroupKind group, double units, DataCallsOf<N>& calls)
      : run_(run), volumes_(volumes), units_(units), calls_(calls), timing_(run.training.stack.timing) {
    call_.group = group;
    m_ = static_cast<double>(run.microbatches());
    const bool every = run.parallel.grad_sync == GradSync::every;
    reduces_ = every ? m_ : 1.0;
    // Each layer's gradients are reduced as its backward ends.
    each_layer_ = shards_states(run.parallel.fsdp) && run.parallel.pipeline == 1 && every;
  }

  /// `all` ranks hold the same weights: shard sets of them, and replicas of a set.
  void add(const RankGroup& all, const RankGroup& shard, const RankGroup& replicas, const CallNames& names) {
    if (shards_states(run_.parallel.fsdp)) {
      fully_sharded(shard, replicas, names);
    } else {
      zero(all, names);
    }
  }

 private:
  void carries(Carried what, double narrower = 1, int cut = 1) {
    const bool experts = call_.group == GroupKind::expert_data;
    call_.payload = {what, !experts, experts, narrower, cut};
    call_.bytes = volumes_.bytes(call_.payload);
  }

  /// `beside`: the framework can run it beside the backward pass.
  void reduce(Collective op, std::string_view name, const RankGroup& ranks, bool beside = true) {
    call_.op = op;
    call_.name = name;
    call_.ranks = ranks;
    call_.passes = reduces_;
    call_.units = each_layer_ ? units_ : 1;
    call_.overlaps = beside && run_.training.overlap.grad_reduce;
    call_.hides = each_layer_ || reduces_ > 1 ? Hides::behind_each_backward : Hides::behind_last_backward;
    call_.hidden = call_.hides == Hides::behind_each_backward ? timing_.fsdp_hidden : timing_.grad_reduce_hidden;
    if (ranks.size > 1 && value_of(call_.bytes) > 0) calls_.add(call_);
  }

  /// A gathering of each layer (its turn comes in every pass), or of all at once.
  void gather(std::string_view name, const RankGroup& ranks, double passes, bool per_layer, bool backward = false) {
    const bool once = !per_layer || (run_.parallel.pipeline > 1 && passes <= 1);
    call_.op = Collective::all_gather;
    call_.name = name;
    call_.ranks = ranks;
    call_.passes = passes;
    call_.units = per_layer ? units_ : 1;
    call_.overlaps = run_.training.overlap.param_gather;
    call_.hides = once       ? Hides::behind_first_forward
                  : backward ? Hides::behind_each_backward
                             : Hides::behind_each_forward;
    call_.hidden = per_layer ? timing_.fsdp_hidden : timing_.grad_reduce_hidden;
    if (ranks.size > 1 && value_of(call_.bytes) > 0) calls_.add(call_);
  }

  void fully_sharded(const RankGroup& shard, const RankGroup& replicas, const CallNames& names) {
    // Under a pipeline the shards are gathered once a step (torchtitan: never resharded then).
    const double passes = run_.parallel.pipeline > 1 ? 1.0 : m_;
    carries(Carried::gathered);
    gather(names.gather_forward, shard, passes, true);
    if (run_.parallel.fsdp != Fsdp::shard_grad_op) gather(names.gather_backward, shard, passes, true, true);
    carries(Carried::gradients);
    reduce(Collective::reduce_scatter, names.reduce_scatter, shard);
    carries(Carried::gradients, 1, shard.size);
    reduce(Collective::all_reduce, names.replica_all_reduce, replicas);
  }

  void zero(const RankGroup& all, const CallNames& names) {
    const Parallel& parallel = run_.parallel;
    const int stage = parallel.zero_stage;
    carries(Carried::gradients, stage > 0 && parallel.qgz ? 4 : 1);
    if (stage == 0) {
      reduce(Collective::all_reduce, names.all_reduce, all);
      return;
    }
    if (!facts_of(run_.training.framework).zero.scatters_gradients) {
      reduce(Collective::all_reduce, names.all_reduce, all, false);
    } else if (parallel.qgz) {
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
    gather(names.gather_forward, all, m_, true);
    carries(Carried::gathered);
    // hpZ: the backward gather stays inside the secondary partition's group.
    const RankGroup secondary = rank_group(std::clamp(parallel.shard_group, 1, all.size), all.per_domain);
    gather(names.gather_backward, parallel.hpz ? secondary : all, m_, true, true);
  }

  const Run& run_;
  const StageVolumes<Trace>& volumes_;
  double units_;
  DataCallsOf<N>& calls_;
  const StackTiming& timing_;
  DataCallOf<N> call_;
  double m_ = 1, reduces_ = 1;
  bool each_layer_ = false;
};

/// Copies of weights that sum their gradients once a step: tied embeddings, the second holders of DualPipe.
template <class Trace, class N = NumberOf<Trace>>
void add_copies(const Run& run, const EstimateWorkspaceOf<N>& w, const StageOf<N>& stage,
                const StageVolumes<Trace>& volumes, DataCallsOf<N>& calls) {
  if (run.training.peft.active()) return;
  DataCallOf<N> call;
  call.overlaps = false;
  if (stage.has_embedding != stage.has_head && run.model.tied_embeddings && run.parallel.pipeline > 1) {
    call.name = "embedding_grad_all_reduce";
    call.group = GroupKind::embedding;
    call.ranks = w.topology.group(GroupKind::embedding);
    call.payload.what = Carried::embedding_gradient;
    call.bytes = volumes.bytes(call.payload);
    calls.add(call);
  }
  if (w.spec.shape.kind != ScheduleKind::dualpipe) return;
  // Each chunk has a second holder at the other end of the pipeline: their gradients are summed.
  call.name = "holder_grad_all_reduce";
  call.group = GroupKind::pipeline;
  call.ranks = w.topology.group(GroupKind::pipeline);
  call.ranks.size = 2;
  call.ranks.per_domain = call.ranks.scope == Scope::inter_node ? 1 : 2;
  call.payload = {Carried::gradients, true, true};
  call.bytes = volumes.bytes(call.payload);
  calls.add(call);
}

/// torch.nn.DataParallel: weights go out and gradients come back in every forward and backward.
template <class Trace, class N = NumberOf<Trace>>
void single_process_calls(const Run& run, const Topology& topology, const StageVolumes<Trace>& volumes,
                          DataCallsOf<N>& calls) {
  DataCallOf<N> call;
  call.ranks = topology.group(GroupKind::data);
  call.overlaps = false;
  call.passes = static_cast<double>(run.microbatches());
  call.name = "replicate_parameters";
  call.op = Collective::broadcast;
  call.payload = {Carried::stored, true, true};
  call.bytes = volumes.bytes(call.payload);
  calls.add(call);
  call.name = "reduce_gradients";
  call.payload = {Carried::gradients, true, true};
  call.bytes = volumes.bytes(call.payload);
  calls.add(call);
}

/// stage_calls of data_calls.hpp.
template <class Trace, class N = NumberOf<Trace>>
void list_calls(const Trace& trace, const Run& run, const EstimateWorkspaceOf<N>& w, const StageOf<N>& stage,
                DataCallsOf<N>& calls) {
  const Topology& topology = w.topology;
  const StageVolumes<Trace> volumes = stage_volumes(trace, run, w, stage);
  if (facts_of(run.training.framework).single_process && run.num_gpus > 1) {
    single_process_calls(run, topology, volumes, calls);
    return;
  }
  const double units = stage.layers + (value_of(stage.root) > 0 ? 1.0 : 0.0);
  GroupCalls<Trace>(run, volumes, GroupKind::data, units, calls)
      .add(topology.group(GroupKind::data), topology.shard, topology.replicas, dense_call_names);
  const RankGroup& expert_data = topology.group(GroupKind::expert_data);
  RankGroup shard = expert_data, replicas;
  if (run.parallel.fsdp == Fsdp::hybrid_shard) {
    shard = rank_group(std::clamp(run.parallel.shard_group, 1, expert_data.size), expert_data.per_domain);
    replicas = rank_group(expert_data.size / shard.size, 1);
  }
  GroupCalls<Trace>(run, volumes, GroupKind::expert_data, stage.layers, calls)
      .add(expert_data, shard, replicas, expert_call_names);
  add_copies(run, w, stage, volumes, calls);
}

}  // namespace shardplan
