// A layer, and each end of the model, folded into what it adds to its stage. Formulas over numbers or text
// (physics/trace.hpp); units.cpp has them over double.
#pragma once

#include <algorithm>

#include "shardplan/physics/fold_formulas.hpp"
#include "shardplan/physics/layer.hpp"
#include "shardplan/physics/layer_inputs.hpp"
#include "shardplan/physics/operator_time.hpp"
#include "shardplan/physics/optimizer_work_formulas.hpp"
#include "shardplan/physics/transient_formulas.hpp"
#include "shardplan/plan/layer_calls.hpp"

namespace shardplan {

/// Notes the distinct shapes of matrices that train.
template <class N>
void collect_shapes(const OperatorList<N>& list, UnitOf<N>& unit) {
  for (const Operator<N>& op : list.operators) {
    const bool matrix = value_of(op.matrices) > 0 && value_of(op.rows) > 0;
    if (!op.trains || !matrix || op.part == Part::router || op.kind == OperatorKind::lookup) continue;
    const MatrixShapeOf<N> shape{op.rows, op.cols};
    if (std::find(unit.shapes.begin(), unit.shapes.end(), shape) == unit.shapes.end()) unit.shapes.add(shape);
  }
}

/// A pass is never shorter than the host needs to launch it. What is recomputed waits for its own exchange within the
/// backward pass: the two share one floor.
template <class Trace, class N = NumberOf<Trace>>
void floor_by_host(const Trace& trace, const Run& run, bool layer_recomputed, UnitOf<N>& unit) {
  const StackTiming& timing = run.training.stack.timing;
  const N more = run.parallel.tensor > 1 ? trace.stack(step_names::host_tensor, timing.host_tensor_parallel_s) : N(0.0);
  const N ahead = trace.stack(step_names::host_forward, timing.host_forward_s) + more;
  const N behind = trace.stack(step_names::host_backward, timing.host_backward_s) + more;
  UnitTimeOf<N>& time = unit.time;
  time.forward_s = trace.same_or_sum(step_names::forward, larger(time.forward_s, ahead - unit.forward_exposed_s));
  time.backward_s = trace.same_or_sum(step_names::backward, larger(time.backward_s, behind - unit.backward_exposed_s));
  if (layer_recomputed) {
    const N both = ahead + behind - unit.backward_exposed_s;
    time.recompute_s = larger(time.recompute_s, both - time.backward_s);
  }
  time.recompute_s = trace.step(step_names::recompute, time.recompute_s);
}

/// FSDP keeps a unit's gradients unsharded until all are there; a loop that freed the gradients keeps the new ones.
inline MadeGradient made_gradient(const Run& run) noexcept {
  const bool fresh = run.training.stack.memory.gradients_freed && run.microbatches() == 1;
  const bool unsharded = run.parallel.fsdp != Fsdp::none;
  return fresh || unsharded ? MadeGradient::stays : MadeGradient::added;
}

/// One layer of a kind. `frozen_input`: it stands behind a frozen embedding.
template <class Trace, class N = NumberOf<Trace>>
UnitOf<N> layer_unit(const Trace& trace, const Run& run, const EstimateWorkspaceOf<N>& w, const LayerKind& kind,
                     bool frozen_input, const Recompute& recompute) {
  UnitOf<N> unit;
  const Symbols<double> numbers = symbols_for(run, kind);
  const Symbols<N> v = trace.symbols(numbers);
  const LayerOptions o = options_for(run, kind, frozen_input);
  OperatorList<N> list;
  layer_operators(v, o, kind, run.parallel.context, run.parallel.expert_tensor, list);
  const bool again = recompute.of_layers();
  operator_facts(trace, list);
  unit.weights = unit_weights(trace, list, w.counting);
  unit.matrix_step = matrix_updates(trace, run, w.counting, list);
  const double input_width =
      frozen_input && quantized_stream_is_fp32(run) ? bytes_of(activation_dtype(run.training.precision)) : numbers.w_r;
  const N checkpoint = N(input_width) * v.s * v.b / (v.c * v.t_sp) * v.h;
  const N op_level = recompute.mode == RecomputeMode::ops ? op_level_kept(trace, v, kind) : N(0.0);
  unit.bytes = saved_bytes(trace, list, recompute, checkpoint, op_level);
  unit.flop = unit_flop(list, recompute, again);
  const double causal = numbers.keys > 0 ? numbers.keys_causal / numbers.keys : 0.5;
  unit.time = unit_time(trace, run, list, trace.run(step_names::causal, causal), again);
  unit.time.forward_s = trace.step(step_names::operators_forward, unit.time.forward_s);
  unit.time.backward_s = trace.step(step_names::operators_backward, unit.time.backward_s);
  unit.transient = layer_transient(trace, v, o, kind, list, recompute, made_gradient(run));
  fold_collectives(trace, run, w.topology, list, again, static_cast<double>(kind.mlp.top_k), unit);
  name_collectives(trace, unit);
  collect_shapes(list, unit);
  floor_by_host(trace, run, again, unit);
  return unit;
}

/// What an end's operators add; `list` is filled.
template <class Trace, class N = NumberOf<Trace>>
UnitOf<N> end_unit(const Trace& trace, const Run& run, const StateCounting& counting, const OperatorList<N>& list) {
  UnitOf<N> unit;
  operator_facts(trace, list);
  unit.weights = unit_weights(trace, list, counting);
  unit.bytes = saved_bytes(trace, list, Recompute{}, N(0.0), N(0.0));
  unit.time = unit_time(trace, run, list, N(0.5), false);
  return unit;
}

/// An end's times, once all is added.
template <class Trace, class N = NumberOf<Trace>>
void name_end(const Trace& trace, UnitOf<N>& unit) {
  name_collectives(trace, unit);
  unit.time.forward_s = trace.step(step_names::forward, unit.time.forward_s);
  unit.time.backward_s = trace.step(step_names::backward, unit.time.backward_s);
}

template <class Trace, class N = NumberOf<Trace>>
void build_embedding(const Trace& trace, const Run& run, const Symbols<N>& v, const LayerOptions& o,
                     EstimateWorkspaceOf<N>& w) {
  OperatorList<N> list;
  embedding_operators(v, o, run.model, !run.training.peft.active(), list);
  UnitOf<N>& unit = w.ends.embedding;
  unit = end_unit(trace, run, w.counting, list);
  unit.flop = unit_flop(list, Recompute{}, false);
  collect_shapes(list, unit);
  const N hidden = v.w * (v.s * v.b / v.c) * v.h;
  using enum CollectiveName;
  if (run.parallel.sequence_parallel) {
    end_collective(trace, run, w.topology, tp_reduce_scatter, Collective::reduce_scatter, hidden, 1, 0, unit);
    end_collective(trace, run, w.topology, tp_all_gather, Collective::all_gather, hidden, 0, 1, unit);
  } else {
    end_collective(trace, run, w.topology, tp_all_reduce, Collective::all_reduce, hidden, 1, 0, unit);
  }
  name_end(trace, unit);
}

template <class Trace, class N = NumberOf<Trace>>
void build_final_norm(const Trace& trace, const Run& run, const Symbols<N>& v, const LayerOptions& o,
                      EstimateWorkspaceOf<N>& w) {
  OperatorList<N> list;
  final_norm_operators(v, o, run.model, list);
  w.ends.final_norm = end_unit(trace, run, w.counting, list);
  name_end(trace, w.ends.final_norm);
}

/// Collectives around the head: a column-cut product like any other, whose input is gathered again for its weight's
/// gradient where it is not kept.
template <class Trace, class N = NumberOf<Trace>>
void head_collectives(const Trace& trace, const Run& run, const Symbols<N>& v, const Topology& topology,
                      UnitOf<N>& unit) {
  using enum CollectiveName;
  const N hidden = v.w * (v.s * v.b / v.c) * v.h;
  if (!run.parallel.sequence_parallel) {
    end_collective(trace, run, topology, tp_all_reduce, Collective::all_reduce, hidden, 0, 1, unit);
    return;
  }
  end_collective(trace, run, topology, tp_all_gather, Collective::all_gather, hidden, 1, 0, unit);
  end_collective(trace, run, topology, tp_reduce_scatter, Collective::reduce_scatter, hidden, 0, 1, unit);
  const bool trains = !run.training.peft.active();
  if (trains && run.training.kernels.sp_input == SequenceParallelInput::regather) {
    end_collective(trace, run, topology, tp_regather, Collective::all_gather, hidden, 0, 1, unit);
  }
}

template <class Trace, class N = NumberOf<Trace>>
void build_head(const Trace& trace, const Run& run, const Symbols<N>& v, LayerOptions o, EstimateWorkspaceOf<N>& w) {
  const Model& model = run.model;
  const bool trains = !run.training.peft.active();
  const LossBytes loss = loss_bytes_for(run);
  o.autocast_copies = autocast_over_fp32(run);
  OperatorList<N> list;
  head_operators(v, o, model, loss, trains, model.tied_embeddings && run.parallel.pipeline == 1, list);
  EndsOf<N>& ends = w.ends;
  ends.head = end_unit(trace, run, w.counting, list);
  ends.head.flop = unit_flop(list, Recompute{}, false);
  collect_shapes(list, ends.head);
  const N tokens = v.s * v.b / v.c;
  const N rows = loss.shifted ? v.b * (v.s / v.c - 1.0) : tokens;
  ends.head_input = v.w * v.s * v.b / (v.c * v.t_in) * v.h;
  ends.logits = trace.step(step_names::logits, rows * v.V / v.t);
  const N bytes = trace.stack(step_names::loss_bytes, run.training.stack.timing.loss_bytes_per_logit);
  const N traffic = trace.step(step_names::loss_time, memory_time(trace, run.cluster.gpu, bytes * ends.logits));
  ends.head.time.forward_s += traffic;
  ends.head.time.backward_s += traffic;
  const N width = list.operators.count > 0 ? v.V / v.t * v.h : N(0.0);
  ends.head_gradient = trains ? 2.0 * width : N(0.0);
  ends.head_peaks = head_peaks(v, o, loss, v.h, trains);
  head_collectives(trace, run, v, w.topology, ends.head);
  name_end(trace, ends.head);
}

}  // namespace shardplan
