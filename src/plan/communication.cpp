// Every collective of a step: who, how often, how much, how long, and what of it the step waits for.
#include <algorithm>
#include <cmath>

#include "shardplan/physics/layer_inputs.hpp"
#include "shardplan/plan/workspace.hpp"

namespace shardplan {
namespace {

std::int64_t whole(double value) noexcept { return std::llround(value); }

/// How a data-parallel collective relates to the step's compute.
enum class Hides : std::uint8_t {
  behind_last_backward,   ///< once a step, behind one microbatch's backward
  behind_first_forward,   ///< once a step, behind one microbatch's forward
  behind_each_microbatch  ///< per layer and microbatch, one unit ahead
};

struct DataCall {
  std::string_view name;
  Collective op = Collective::all_reduce;
  GroupKind group = GroupKind::data;
  RankGroup ranks;
  double bytes = 0;   ///< the whole tensor over its group, per pass over all units
  double passes = 1;  ///< a step
  double units = 1;   ///< calls a pass
  bool overlaps = true;
  double hidden = 0.9;
  Hides hides = Hides::behind_last_backward;
};

/// What data parallelism sends for one stage: at most a dozen calls.
using DataCalls = FixedList<DataCall, 16>;

double sent_share(Collective op, double n) noexcept {
  switch (op) {
    case Collective::all_reduce: return 2 * (n - 1) / n;
    case Collective::send:
    case Collective::broadcast: return 1;
    default: return (n - 1) / n;
  }
}

struct Volumes {
  double gradients = 0;   ///< bytes of all gradients of the stage
  double parameters = 0;  ///< bytes of all weights as they are gathered
  double updated = 0;     ///< bytes of the weights that a step changes
};

Volumes volumes_of(const Run& run, const EstimateWorkspace& w, const Weights& weights) noexcept {
  const Training& training = run.training;
  const double compute_width = bytes_of(activation_dtype(training.precision));
  const double stored = std::min(compute_width, w.rule.parameter_bytes);
  Volumes v;
  v.gradients = w.rule.gradient_bytes * weights.trained + w.rule.adapter_gradient_bytes * weights.adapters;
  const double adapters = std::min(compute_width, w.rule.adapter_parameter_bytes) * weights.adapters;
  v.updated = stored * weights.trained + adapters;
  v.parameters = v.updated + w.rule.frozen_bytes * weights.frozen + w.rule.quantized_bytes * weights.quantized;
  return v;
}

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

void group_calls(const Run& run, const Volumes& volumes, GroupKind group, const RankGroup& all, const RankGroup& shard,
                 const RankGroup& replicas, double units, const GroupNames& names, DataCalls& calls) noexcept {
  const Parallel& parallel = run.parallel;
  const Training& training = run.training;
  const double m = static_cast<double>(run.microbatches());
  const double reduces = parallel.grad_sync == GradSync::every ? m : 1.0;
  const StackTiming& timing = training.stack.timing;
  DataCall call;
  call.group = group;
  call.ranks = all;
  call.hidden = timing.grad_reduce_hidden;
  const auto reduce = [&](Collective op, std::string_view name, const RankGroup& ranks, double bytes) {
    call.op = op;
    call.name = name;
    call.ranks = ranks;
    call.bytes = bytes;
    call.passes = reduces;
    call.units = 1;
    call.overlaps = training.overlap.grad_reduce;
    call.hides = reduces > 1 ? Hides::behind_each_microbatch : Hides::behind_last_backward;
    call.hidden = reduces > 1 ? timing.fsdp_hidden : timing.grad_reduce_hidden;
    if (ranks.size > 1 && bytes > 0) calls.add(call);
  };
  const auto gather = [&](std::string_view name, const RankGroup& ranks, double bytes, double passes, bool per_layer) {
    call.op = Collective::all_gather;
    call.name = name;
    call.ranks = ranks;
    call.bytes = bytes;
    call.passes = passes;
    call.units = per_layer ? units : 1;
    call.overlaps = training.overlap.param_gather;
    call.hides = per_layer && passes > 1 ? Hides::behind_each_microbatch : Hides::behind_first_forward;
    call.hidden = per_layer ? timing.fsdp_hidden : timing.grad_reduce_hidden;
    if (ranks.size > 1 && bytes > 0) calls.add(call);
  };
  const bool fully_sharded = parallel.fsdp != Fsdp::none && parallel.fsdp != Fsdp::no_shard;
  if (fully_sharded) {
    // Under a pipeline the shards are gathered once a step (torchtitan: never resharded then).
    const double passes = parallel.pipeline > 1 ? 1.0 : m;
    gather(names.gather_forward, shard, volumes.parameters, passes, true);
    if (parallel.fsdp != Fsdp::shard_grad_op) gather(names.gather_backward, shard, volumes.parameters, passes, true);
    reduce(Collective::reduce_scatter, names.reduce_scatter, shard, volumes.gradients);
    reduce(Collective::all_reduce, names.replica_all_reduce, replicas, volumes.gradients / shard.size);
    return;
  }
  const bool staged = training.framework == Framework::textbook || training.framework == Framework::deepspeed ||
                      training.framework == Framework::megatron;
  const int stage = staged ? parallel.zero_stage : 0;
  if (stage == 0) {
    reduce(Collective::all_reduce, names.all_reduce, all, volumes.gradients);
    return;
  }
  if (parallel.qgz) {
    reduce(Collective::all_to_all, names.quantized, all, volumes.gradients / 4);
  } else {
    reduce(Collective::reduce_scatter, names.reduce_scatter, all, volumes.gradients);
  }
  if (stage < 3) {
    gather(names.gather, all, volumes.updated, 1, false);
    return;
  }
  gather(names.gather_forward, all, parallel.qwz ? volumes.parameters / 2 : volumes.parameters, m, true);
  // hpZ: the backward gather stays inside the secondary partition's group.
  const RankGroup secondary = [&] {
    RankGroup ranks = all;
    ranks.size = std::clamp(parallel.shard_group, 1, all.size);
    ranks.per_domain = std::min(ranks.size, all.per_domain);
    ranks.scope = ranks.size <= 1                  ? Scope::none
                  : ranks.per_domain >= ranks.size ? Scope::intra_node
                                                   : Scope::inter_node;
    return ranks;
  }();
  gather(names.gather_backward, parallel.hpz ? secondary : all, volumes.parameters, m, true);
}

void stage_calls(const Run& run, const EstimateWorkspace& w, const Stage& stage, DataCalls& calls) noexcept {
  const Topology& topology = w.topology;
  const double units = stage.layers + (stage.root > 0 ? 1.0 : 0.0);
  const Volumes dense = volumes_of(run, w, stage.weights.dense);
  group_calls(run, dense, GroupKind::data, topology.group(GroupKind::data), topology.shard, topology.replicas, units,
              dense_names, calls);
  const Volumes experts = volumes_of(run, w, stage.weights.expert);
  const RankGroup& expert_data = topology.group(GroupKind::expert_data);
  RankGroup shard = expert_data, replicas;
  if (run.parallel.fsdp == Fsdp::hybrid_shard) {
    shard.size = std::min(expert_data.size, std::max(1, run.parallel.shard_group));
    shard.per_domain = std::min(shard.size, expert_data.per_domain);
    shard.scope = shard.size <= 1                  ? Scope::none
                  : shard.per_domain >= shard.size ? Scope::intra_node
                                                   : Scope::inter_node;
    replicas.size = expert_data.size / shard.size;
    replicas.per_domain = 1;
    replicas.scope = replicas.size > 1 ? Scope::inter_node : Scope::none;
  }
  group_calls(run, experts, GroupKind::expert_data, expert_data, shard, replicas, stage.layers, expert_names, calls);
  if (stage.has_embedding != stage.has_head && run.model.tied_embeddings && run.parallel.pipeline > 1 &&
      !run.training.peft.active()) {
    DataCall call;
    call.name = "embedding_grad_all_reduce";
    call.group = GroupKind::embedding;
    call.ranks = topology.group(GroupKind::embedding);
    call.bytes = w.rule.gradient_bytes * static_cast<double>(run.padded_vocab()) / run.parallel.tensor *
                 static_cast<double>(run.model.hidden_size);
    call.overlaps = false;
    calls.add(call);
  }
  if (run.training.framework == Framework::dp && run.num_gpus > 1) {
    calls.count = 0;
    DataCall call;
    const double m = static_cast<double>(run.microbatches());
    call.ranks = topology.group(GroupKind::data);
    call.overlaps = false;
    call.passes = m;
    call.name = "replicate_parameters";
    call.op = Collective::broadcast;
    call.bytes =
        w.rule.parameter_bytes * stage.weights.dense.held() + w.rule.parameter_bytes * stage.weights.expert.held();
    calls.add(call);
    call.name = "reduce_gradients";
    call.bytes = dense.gradients + experts.gradients;
    calls.add(call);
  }
}

double exposed_seconds(const Stage& stage, const DataCall& call, double seconds, double microbatches) noexcept {
  if (!call.overlaps) return seconds;
  const double rest = seconds * (1 - call.hidden);
  switch (call.hides) {
    case Hides::behind_last_backward: return std::max(rest, seconds - 0.6 * (stage.forward_s + stage.backward_s));
    case Hides::behind_first_forward: return std::max(rest, seconds - 0.6 * (stage.forward_s + stage.backward_s));
    case Hides::behind_each_microbatch: {
      // Half of a microbatch's work stands beside each direction's traffic.
      const double compute = microbatches * (stage.forward_s + stage.backward_s) / 2;
      return std::max(0.0, seconds - compute) + (1 - call.hidden) * std::min(seconds, compute);
    }
  }
  return seconds;
}

double seconds_of(const Run& run, const DataCall& call) noexcept {
  const double per_call = call.bytes / call.units;
  const double sent = sent_share(call.op, call.ranks.size) * per_call;
  return call.passes * call.units * collective_seconds(run.cluster, call.op, call.ranks, sent);
}

/// Messages that one rank sends to its pipeline neighbours for one microbatch.
double boundary_sends(const EstimateWorkspace& w, int rank) noexcept {
  const schedule::Shape& shape = w.spec.shape;
  if (shape.p <= 1) return 0;
  const int last = shape.virtual_stages() - 1;
  const schedule::Placement place = schedule::placement(shape.kind);
  double sends = 0;
  for (int c = 0; c < schedule::chunks_per_rank(shape); ++c) {
    const int stage = schedule::stage_of(shape, rank, c);
    // The turn of a vee stays on its rank.
    const bool turn_after = place == schedule::Placement::vee && stage == shape.p - 1;
    const bool turn_before = place == schedule::Placement::vee && stage == shape.p;
    const double share = place == schedule::Placement::bidirectional ? 0.5 : 1.0;
    if (stage < last && !turn_after) sends += share;
    if (stage > 0 && !turn_before) sends += share;
  }
  return sends;
}

double boundary_message(const Run& run) noexcept {
  const Training& training = run.training;
  const double tokens =
      static_cast<double>(training.seq_length) * static_cast<double>(training.micro_batch_size) / run.parallel.context;
  const double cut = run.parallel.sequence_parallel ? run.parallel.tensor : 1.0;
  return bytes_of(activation_dtype(training.precision)) * tokens * static_cast<double>(run.model.hidden_size) / cut;
}

GroupKind group_of(CollectiveName name) noexcept {
  switch (name) {
    case CollectiveName::tp_all_reduce:
    case CollectiveName::tp_all_gather:
    case CollectiveName::tp_reduce_scatter:
    case CollectiveName::tp_regather: return GroupKind::tensor;
    case CollectiveName::cp_send:
    case CollectiveName::cp_all_gather:
    case CollectiveName::cp_reduce_scatter:
    case CollectiveName::cp_all_to_all: return GroupKind::context;
    case CollectiveName::ep_all_to_all: return GroupKind::expert;
    default: return GroupKind::expert_tensor;
  }
}

Collective op_of(CollectiveName name) noexcept {
  switch (name) {
    case CollectiveName::tp_all_reduce: return Collective::all_reduce;
    case CollectiveName::tp_all_gather:
    case CollectiveName::tp_regather:
    case CollectiveName::cp_all_gather:
    case CollectiveName::etp_all_gather: return Collective::all_gather;
    case CollectiveName::tp_reduce_scatter:
    case CollectiveName::cp_reduce_scatter:
    case CollectiveName::etp_reduce_scatter: return Collective::reduce_scatter;
    case CollectiveName::cp_send: return Collective::send;
    default: return Collective::all_to_all;
  }
}

double stage_sent(const EstimateWorkspace& w, const Stage& stage, const DataCalls& calls, double sends, double m,
                  double message) noexcept {
  double sent = m * sends * message;
  const double through = schedule::microbatches_per_chunk(w.spec.shape);
  for (const CollectiveSum& sum : stage.total.collectives) sent += through * sum.sent;
  for (const DataCall& call : calls) sent += call.passes * sent_share(call.op, call.ranks.size) * call.bytes;
  return sent;
}

void write_rows(const Run& run, const EstimateWorkspace& w, const Stage& stage, const DataCalls& calls, double sends,
                double p2p_exposed, Estimate& out) noexcept {
  const double m = static_cast<double>(run.microbatches());
  const double through = schedule::microbatches_per_chunk(w.spec.shape);
  out.communication.count = 0;
  out.sent = SentBytes{};
  const auto add = [&out](CommunicationCall& row) {
    switch (row.group) {
      case GroupKind::tensor: out.sent.tensor += row.sent_bytes_per_step; break;
      case GroupKind::pipeline: out.sent.pipeline += row.sent_bytes_per_step; break;
      case GroupKind::context: out.sent.context += row.sent_bytes_per_step; break;
      case GroupKind::expert:
      case GroupKind::expert_tensor: out.sent.expert += row.sent_bytes_per_step; break;
      default: out.sent.data += row.sent_bytes_per_step; break;
    }
    out.communication.add(row);
  };
  for (std::size_t i = 0; i < collective_count; ++i) {
    const CollectiveSum& sum = stage.total.collectives[i];
    if (sum.calls <= 0) continue;
    const CollectiveName which = static_cast<CollectiveName>(i);
    CommunicationCall row;
    row.name = name(which);
    row.op = op_of(which);
    row.group = group_of(which);
    row.group_size = w.topology.group(row.group).size;
    row.scope = w.topology.group(row.group).scope;
    row.calls_per_step = whole(through * sum.calls);
    row.message_bytes = whole(sum.message);
    row.sent_bytes_per_step = whole(through * sum.sent);
    row.time_s = through * sum.time_s;
    row.exposed_s = through * sum.exposed_s;
    add(row);
  }
  if (sends > 0) {
    CommunicationCall row;
    row.name = "pp_send";
    row.op = Collective::send;
    row.group = GroupKind::pipeline;
    row.group_size = run.parallel.pipeline;
    row.scope = w.topology.group(GroupKind::pipeline).scope;
    row.calls_per_step = whole(m * sends);
    row.message_bytes = whole(boundary_message(run));
    row.sent_bytes_per_step = row.calls_per_step * row.message_bytes;
    row.time_s = m * sends * w.spec.p2p;
    row.exposed_s = p2p_exposed;
    add(row);
  }
  for (const DataCall& call : calls) {
    CommunicationCall row;
    row.name = call.name;
    row.op = call.op;
    row.group = call.group;
    row.group_size = call.ranks.size;
    row.scope = call.ranks.scope;
    row.calls_per_step = whole(call.passes * call.units);
    row.message_bytes = whole(call.bytes / call.units);
    row.sent_bytes_per_step = whole(call.passes * sent_share(call.op, call.ranks.size) * call.bytes);
    row.time_s = seconds_of(run, call);
    row.exposed_s = exposed_seconds(stage, call, row.time_s, m);
    add(row);
  }
}

}  // namespace

void estimate_communication(const Run& run, EstimateWorkspace& w, Estimate& out) noexcept {
  const double m = static_cast<double>(run.microbatches());
  const double through = schedule::microbatches_per_chunk(w.spec.shape);  // dualpipe: half of them each way
  const double message = boundary_message(run);
  double most = -1;
  int busiest = 0;
  for (std::size_t i = 0; i < w.stages.size(); ++i) {
    Stage& stage = w.stages[i];
    DataCalls calls;
    stage_calls(run, w, stage, calls);
    stage.data_exposed_s = 0;
    stage.exposed_by_group_s.fill(0);
    for (std::size_t k = 0; k < collective_count; ++k) {
      const std::size_t group = static_cast<std::size_t>(group_of(static_cast<CollectiveName>(k)));
      stage.exposed_by_group_s[group] += through * stage.total.collectives[k].exposed_s;
    }
    for (const DataCall& call : calls) {
      const double exposed = exposed_seconds(stage, call, seconds_of(run, call), m);
      stage.data_exposed_s += exposed;
      stage.exposed_by_group_s[static_cast<std::size_t>(call.group)] += exposed;
    }
    const double sent = stage_sent(w, stage, calls, boundary_sends(w, static_cast<int>(i)), m, message);
    if (sent > most) {
      most = sent;
      busiest = static_cast<int>(i);
    }
  }
  const Stage& stage = w.stages[static_cast<std::size_t>(busiest)];
  DataCalls calls;
  stage_calls(run, w, stage, calls);
  out.communication_stage = busiest;
  const double p2p_exposed = w.simulated.exposed_p2p[static_cast<std::size_t>(busiest)];
  write_rows(run, w, stage, calls, boundary_sends(w, busiest), p2p_exposed, out);
}

}  // namespace shardplan
