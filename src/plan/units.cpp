// Folds each kind of layer, and the ends of the model, once.
#include <algorithm>
#include <cmath>

#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/physics/layer_inputs.hpp"
#include "shardplan/plan/step_rules.hpp"

namespace shardplan {

using namespace step_constants;

bool covered_by_modules(const Recompute& recompute, Covered covered) noexcept {
  if (recompute.mode != RecomputeMode::modules) return false;
  if (covered == Covered::moe) return (recompute.modules & recompute_moe) != 0;
  if (covered == Covered::mlp) return (recompute.modules & recompute_mlp) != 0;
  return false;
}

namespace {

/// What of a call's time the pass waits for.
double exposed_share(const Run& run, const LayerCollective<double>& call, double seconds, double hides_behind_s,
                     bool backward) noexcept {
  const StackTiming& timing = run.training.stack.timing;
  switch (call.name) {
    // Gathered again for the weight gradient, while the input gradient is computed.
    case CollectiveName::tp_regather: return backward ? std::max(0.0, seconds - hides_behind_s) : seconds;
    case CollectiveName::tp_all_reduce:
    case CollectiveName::tp_all_gather:
    case CollectiveName::tp_reduce_scatter: return run.training.overlap.tp ? seconds * (1 - timing.tp_hidden) : seconds;
    case CollectiveName::cp_send: return std::max(0.0, seconds - hides_behind_s);
    // Interleaved with compute: hidden up to that, never more.
    case CollectiveName::ep_all_to_all:
      return overlaps_expert_exchange(run.parallel.schedule)
                 ? seconds - std::min(seconds, hides_behind_s) * timing.expert_hidden
                 : seconds;
    default: return seconds;
  }
}

/// Share of a token's copies that cross the network where the dispatcher sends one per destination node and copies it
/// there (DeepEP, HybridEP): expected distinct remote nodes over copies to remote nodes, top-k spread evenly.
double distinct_node_share(const RankGroup& group, double top_k) noexcept {
  if (group.scope != Scope::inter_node || top_k <= 1) return 1;
  const double nodes = std::ceil(static_cast<double>(group.size) / group.per_domain);
  return std::min(1.0, (1 - std::pow(1 - 1 / nodes, top_k)) * nodes / top_k);
}

void fold_collectives(const Run& run, const Topology& topology, const OperatorList<double>& list, bool layer_recomputed,
                      double top_k, Unit& unit) noexcept {
  const double attention_s = unit.time.attention_s;
  const double layer_forward_s = unit.time.forward_s, layer_backward_s = unit.time.backward_s;
  for (const LayerCollective<double>& call : list.collectives) {
    const bool experts = call.name == CollectiveName::ep_all_to_all;
    const double seconds = layer_call_seconds(run, topology, call, top_k);
    const bool again = layer_recomputed || covered_by_modules(run.training.recompute, call.covered);
    const double forward = call.forward_calls;
    const double backward = call.backward_calls + (again ? forward : 0.0);
    const bool ring = call.name == CollectiveName::cp_send;
    const double hidden_forward = ring ? attention_s / 3.5 : experts ? layer_forward_s : layer_forward_s / 2;
    const double hidden_backward = ring ? attention_s / 1.4 : experts ? layer_backward_s : layer_forward_s / 2;
    CollectiveSum& sum = unit.collectives[static_cast<std::size_t>(call.name)];
    sum.calls += forward + backward;
    sum.message = std::max(sum.message, call.message);
    sum.sent += (forward + backward) * call.sent;
    sum.time_s += (forward + backward) * seconds;
    const double wait_forward = exposed_share(run, call, forward * seconds, hidden_forward, false);
    const double wait_backward = exposed_share(run, call, backward * seconds, hidden_backward, true);
    sum.exposed_s += wait_forward + wait_backward;
    unit.forward_exposed_s += wait_forward;
    unit.backward_exposed_s += wait_backward;
  }
}

void collect_shapes(const OperatorList<double>& list, Unit& unit) noexcept {
  for (const Operator<double>& op : list.operators) {
    if (!op.trains || op.matrices <= 0 || op.rows <= 0 || op.part == Part::router || op.kind == OperatorKind::lookup) {
      continue;
    }
    const MatrixShape shape{op.rows, op.cols};
    if (std::find(unit.shapes.begin(), unit.shapes.end(), shape) == unit.shapes.end()) unit.shapes.add(shape);
  }
}

/// FSDP keeps a unit's gradients unsharded until all are there; a loop that freed the gradients keeps the new ones.
MadeGradient made_gradient(const Run& run) noexcept {
  const bool fresh = run.training.stack.memory.gradients_freed && run.microbatches() == 1;
  const bool unsharded = run.parallel.fsdp != Fsdp::none;
  return fresh || unsharded ? MadeGradient::stays : MadeGradient::added;
}

double causal_share(const Symbols<double>& v) noexcept { return v.keys > 0 ? v.keys_causal / v.keys : 0.5; }

Unit layer_unit(const Run& run, const EstimateWorkspace& w, const LayerKind& kind, bool frozen_input,
                const Recompute& recompute) noexcept {
  Unit unit;
  const Symbols<double> v = symbols_for(run, kind);
  const LayerOptions o = options_for(run, kind, frozen_input);
  OperatorList<double> list;
  layer_operators(v, o, kind, run.parallel.context, run.parallel.expert_tensor, list);
  const bool again = recompute.of_layers();
  unit.weights = fold_weights(list, w.counting);
  unit.matrix_step = matrix_step_time(run, w.counting, list);
  const double input_width =
      frozen_input && quantized_stream_is_fp32(run) ? bytes_of(activation_dtype(run.training.precision)) : v.w_r;
  const double checkpoint = input_width * v.s * v.b / (v.c * v.t_sp) * v.h;
  const double op_level = recompute.mode == RecomputeMode::ops ? op_level_kept_bytes(v, kind) : 0.0;
  unit.bytes = fold_saved(list, recompute, checkpoint, op_level);
  unit.flop = fold_flop(list, recompute, again);
  unit.time = unit_seconds(run, list, causal_share(v), again);
  unit.transient = layer_transient(v, o, kind, list, recompute, made_gradient(run));
  fold_collectives(run, w.topology, list, again, static_cast<double>(kind.mlp.top_k), unit);
  collect_shapes(list, unit);
  // A pass is never shorter than the host needs to launch it.
  const StackTiming& timing = run.training.stack.timing;
  const double more = run.parallel.tensor > 1 ? timing.host_tensor_parallel_s : 0.0;
  const double floor_forward = timing.host_forward_s + more, floor_backward = timing.host_backward_s + more;
  unit.time.forward_s = std::max(unit.time.forward_s, floor_forward - unit.forward_exposed_s);
  unit.time.backward_s = std::max(unit.time.backward_s, floor_backward - unit.backward_exposed_s);
  if (again) {
    // What is recomputed waits for its own exchange within the backward pass: the two share one floor.
    const double both = floor_forward + floor_backward - unit.backward_exposed_s;
    unit.time.recompute_s = std::max(unit.time.recompute_s, both - unit.time.backward_s);
  }
  return unit;
}

/// Collectives of vocabulary-parallel ends: the embedding's output, the head's input gradient, the loss' three sums.
void end_collective(const Run& run, const Topology& topology, CollectiveName name, Collective op, double message,
                    double forward, double backward, Unit& unit) noexcept {
  const RankGroup& group = topology.group(GroupKind::tensor);
  if (group.size <= 1) return;
  const double share = sent_share(op, group.size);
  const double seconds = collective_seconds(run.cluster, op, group, share * message);
  CollectiveSum& sum = unit.collectives[static_cast<std::size_t>(name)];
  sum.calls += forward + backward;
  sum.message = std::max(sum.message, message);
  sum.sent += (forward + backward) * share * message;
  sum.time_s += (forward + backward) * seconds;
  sum.exposed_s += (forward + backward) * seconds;
  unit.forward_exposed_s += forward * seconds;
  unit.backward_exposed_s += backward * seconds;
}

void build_ends(const Run& run, EstimateWorkspace& w) noexcept {
  const Model& model = run.model;
  const LayerKind& last = model.layer(model.layers() - 1);
  const Symbols<double> v = symbols_for(run, last);
  LayerOptions o = options_for(run, last, false);
  o.autocast_copies = false;
  const bool trains = !run.training.peft.active();
  Ends& ends = w.ends;
  ends = Ends{};
  const double tokens = v.s * v.b / v.c;
  const double hidden = v.w * tokens * v.h;

  OperatorList<double> list;
  embedding_operators(v, o, model, trains, list);
  ends.embedding.weights = fold_weights(list, w.counting);
  ends.embedding.bytes = fold_saved(list, Recompute{}, 0, 0);
  ends.embedding.time = unit_seconds(run, list, 0.5, false);
  ends.embedding.flop = fold_flop(list, Recompute{}, false);
  collect_shapes(list, ends.embedding);
  if (run.parallel.sequence_parallel) {
    end_collective(run, w.topology, CollectiveName::tp_reduce_scatter, Collective::reduce_scatter, hidden, 1, 0,
                   ends.embedding);
    end_collective(run, w.topology, CollectiveName::tp_all_gather, Collective::all_gather, hidden, 0, 1,
                   ends.embedding);
  } else {
    end_collective(run, w.topology, CollectiveName::tp_all_reduce, Collective::all_reduce, hidden, 1, 0,
                   ends.embedding);
  }

  list = OperatorList<double>{};
  final_norm_operators(v, o, model, list);
  ends.final_norm.weights = fold_weights(list, w.counting);
  ends.final_norm.bytes = fold_saved(list, Recompute{}, 0, 0);
  ends.final_norm.time = unit_seconds(run, list, 0.5, false);

  list = OperatorList<double>{};
  const LossBytes loss = loss_bytes_for(run);
  const bool shares_table = model.tied_embeddings && run.parallel.pipeline == 1;
  LayerOptions head_options = o;
  head_options.autocast_copies = autocast_over_fp32(run);
  head_operators(v, head_options, model, loss, trains, shares_table, list);
  ends.head.weights = fold_weights(list, w.counting);
  ends.head.bytes = fold_saved(list, Recompute{}, 0, 0);
  ends.head.flop = fold_flop(list, Recompute{}, false);
  ends.head.time = unit_seconds(run, list, 0.5, false);
  collect_shapes(list, ends.head);
  const double rows = loss.shifted ? v.b * (v.s / v.c - 1) : tokens;
  ends.head_input = v.w * v.s * v.b / (v.c * v.t_in) * v.h;
  ends.logits = rows * v.V / v.t;
  const double loss_traffic =
      memory_seconds(run.cluster.gpu, run.training.stack.timing.loss_bytes_per_logit * ends.logits);
  ends.head.time.forward_s += loss_traffic;
  ends.head.time.backward_s += loss_traffic;
  const double head_width = list.operators.count > 0 ? v.V / v.t * v.h : 0.0;
  ends.head_gradient = trains ? 2.0 * head_width : 0.0;
  ends.head_peaks = head_peaks(v, head_options, loss, v.h, trains);
  if (run.parallel.sequence_parallel) {
    end_collective(run, w.topology, CollectiveName::tp_all_gather, Collective::all_gather, hidden, 1, 0, ends.head);
    end_collective(run, w.topology, CollectiveName::tp_reduce_scatter, Collective::reduce_scatter, hidden, 0, 1,
                   ends.head);
    if (trains && run.training.kernels.sp_input == SequenceParallelInput::regather) {
      // The head is a column-cut product like any other: its input is gathered again for its weight's gradient.
      end_collective(run, w.topology, CollectiveName::tp_regather, Collective::all_gather, hidden, 0, 1, ends.head);
    }
  } else {
    end_collective(run, w.topology, CollectiveName::tp_all_reduce, Collective::all_reduce, hidden, 0, 1, ends.head);
  }

  if (model.mtp_layers > 0 && facts_of(run.training.framework).trains_mtp) {
    // One more block, two norms and the 2h x h projection that joins hidden state and embedding; the head is shared.
    ends.mtp = w.kinds[model.layer_kinds.back()];
    const double times = static_cast<double>(model.mtp_layers);
    const double projection = 2.0 * v.h * v.h;
    ends.mtp.weights.dense.trained += projection + 3.0 * v.h;
    add_tensors(w.counting, TensorRole::hidden, v.h, 2.0 * v.h, 1, ends.mtp.weights.dense);
    add_tensors(w.counting, TensorRole::vector, v.h, 1, 3, ends.mtp.weights.dense);
    if (treats(w.counting.optimizer->scope, TensorRole::hidden)) {
      const double step = matrix_step_seconds(run, w.counting, v.h, 2.0 * v.h);
      ends.mtp.matrix_step.add({step, 0, step}, 1);
    }
    ends.mtp.bytes.saved += 3.0 * hidden / v.t_sp;
    ends.mtp.bytes.kept += 3.0 * hidden / v.t_sp;
    ends.mtp.flop.forward += 2.0 * tokens * projection + ends.head.flop.forward;
    ends.mtp.flop.input_gradient += 2.0 * tokens * projection + ends.head.flop.input_gradient;
    ends.mtp.flop.weight_gradient += 2.0 * tokens * projection + ends.head.flop.weight_gradient;
    ends.mtp.time.forward_s += ends.head.time.forward_s;
    ends.mtp.time.backward_s += ends.head.time.backward_s;
    ends.mtp.time.weight_gradient_s += ends.head.time.weight_gradient_s;
    ends.mtp.time.gemm_s += ends.head.time.gemm_s;
    for (std::size_t i = 0; i < collective_count; ++i) {
      const CollectiveSum& head = ends.head.collectives[i];
      CollectiveSum& sum = ends.mtp.collectives[i];
      sum.calls += head.calls;
      sum.message = std::max(sum.message, head.message);
      sum.sent += head.sent;
      sum.time_s += head.time_s;
      sum.exposed_s += head.exposed_s;
    }
    ends.mtp.forward_exposed_s += ends.head.forward_exposed_s;
    ends.mtp.backward_exposed_s += ends.head.backward_exposed_s;
    if (times > 1) {
      const UnitWeights more = ends.mtp.weights;
      const MatrixStepTime step = ends.mtp.matrix_step;
      ends.mtp.matrix_step.add(step, times - 1);
      for (std::int64_t i = 1; i < model.mtp_layers; ++i) ends.mtp.weights += more;
      for (CollectiveSum& sum : ends.mtp.collectives) {
        sum.calls *= times;
        sum.sent *= times;
        sum.time_s *= times;
        sum.exposed_s *= times;
      }
      ends.mtp.bytes.kept *= times;
      ends.mtp.bytes.saved *= times;
      ends.mtp.time.forward_s *= times;
      ends.mtp.time.backward_s *= times;
      ends.mtp.time.weight_gradient_s *= times;
      ends.mtp.time.recompute_s *= times;
      ends.mtp.time.gemm_s *= times;
      ends.mtp.time.attention_s *= times;
      ends.mtp.forward_exposed_s *= times;
      ends.mtp.backward_exposed_s *= times;
    }
  }
}

}  // namespace

bool overlaps_expert_exchange(ScheduleKind schedule) noexcept {
  return schedule == ScheduleKind::interleaved || schedule == ScheduleKind::dualpipe ||
         schedule == ScheduleKind::dualpipe_v;
}

double layer_call_seconds(const Run& run, const Topology& topology, const LayerCollective<double>& call,
                          double top_k) noexcept {
  const RankGroup& group = topology.group(call.group);
  double share = 1;
  if (call.name == CollectiveName::ep_all_to_all && run.training.stack.timing.expert_hidden > 0) {
    share = distinct_node_share(group, top_k);
    if (group.scope == Scope::inter_node) share *= run.cluster.inter_node_efficiency() / node_aware_efficiency;
    if (run.training.precision == Precision::fp8) share *= fp8_dispatch_share;
  }
  double seconds = collective_seconds(run.cluster, call.op, group, share * call.sent);
  // Beyond the eight ranks of a switch that were measured, more peers make smaller pieces.
  if (call.op == Collective::all_to_all && group.scope == Scope::intra_node && group.size > 8) {
    seconds *= run.training.stack.timing.all_to_all_spread * std::cbrt(group.size / 8.0);
  }
  return seconds;
}

void build_units(const Run& run, EstimateWorkspace& w) noexcept {
  w.topology = topology_of(run);
  w.rule = state_rule(run);
  w.counting = state_counting(run);
  w.optimizer = w.counting.optimizer;
  const std::size_t count = run.model.kinds.size();
  w.kinds.resize(count);
  const bool adapted_tables =
      (run.training.peft.targets & set_of(MatrixId::embed_tokens, MatrixId::position_embeddings)) != 0;
  w.frozen_input.resize(run.training.peft.active() && !adapted_tables ? count : 0);
  const bool partly = run.training.recompute.mode == RecomputeMode::first_n;
  w.not_recomputed.resize(partly ? count : 0);
  for (std::size_t i = 0; i < count; ++i) {
    const LayerKind& kind = run.model.kinds[i];
    w.kinds[i] = layer_unit(run, w, kind, false, run.training.recompute);
    if (!w.frozen_input.empty()) w.frozen_input[i] = layer_unit(run, w, kind, true, run.training.recompute);
    if (partly) w.not_recomputed[i] = layer_unit(run, w, kind, false, Recompute{});
  }
  build_ends(run, w);
  build_unit_states(run, w);
}

void build_unit_states(const Run& run, EstimateWorkspace& w) noexcept {
  w.rule = state_rule(run);
  if (!rounds_per_unit(run.training.framework)) return;
  const auto fill = [&](Unit& unit) { unit.states = state_bytes(w.rule, unit.weights, *w.optimizer); };
  for (Unit& unit : w.kinds) fill(unit);
  for (Unit& unit : w.frozen_input) fill(unit);
  for (Unit& unit : w.not_recomputed) fill(unit);
  fill(w.ends.embedding);
  fill(w.ends.final_norm);
  fill(w.ends.head);
  fill(w.ends.mtp);
}

}  // namespace shardplan
