// Multi-token prediction: modules behind the last layer (DeepSeek-V3, arXiv:2412.19437 section 2.2). Each is one more
// block, two norms, the 2h x h projection that joins hidden state and embedding, and one more pass of the head, whose
// weights are the model's own. The projection takes no time here.
#pragma once

#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/plan/unit_formulas.hpp"

namespace shardplan {

/// Whether the run builds and trains multi-token prediction.
inline bool trains_mtp(const Run& run) noexcept {
  return run.model.mtp_layers > 0 && facts_of(run.training.framework).trains_mtp;
}

/// The projection that joins hidden state and embedding, as one rank runs it.
template <class N>
Operator<N> mtp_projection(const Symbols<N>& v) {
  Operator<N> op;
  op.name = "mtp_projection";
  op.kind = OperatorKind::gemm;
  op.part = Part::mlp;
  op.rows = op.n = v.h;
  op.cols = op.k = 2.0 * v.h;
  op.parameters = 2.0 * v.h * v.h;
  op.matrices = op.batch = N(1.0);
  op.m = v.s * v.b / v.c;
  op.forward_flop = op.input_gradient_flop = op.weight_gradient_flop = 2.0 * op.m * op.parameters;
  return op;
}

/// Adds what one module has beside its block: the projection with three vectors.
template <class Trace, class N = NumberOf<Trace>>
void add_mtp_projection(const Trace& trace, const Run& run, const StateCounting& counting, const Symbols<N>& v,
                        UnitOf<N>& module) {
  const Operator<N> projection = mtp_projection(v);
  module.weights.dense.trained += projection.parameters + 3.0 * v.h;
  count_tensors(counting, TensorRole::hidden, v.h, 2.0 * v.h, N(1.0), module.weights.dense);
  count_tensors(counting, TensorRole::vector, v.h, N(1.0), N(3.0), module.weights.dense);
  if (treats(counting.optimizer->scope, TensorRole::hidden)) {
    const N step = matrix_update_time(trace.in("projection"), run, counting, v.h, 2.0 * v.h);
    module.matrix_step.add({step, N(0.0), step}, N(1.0));
  }
  const N tokens = v.s * v.b / v.c;
  const N hidden = v.w * tokens * v.h;
  module.bytes.saved += 3.0 * hidden / v.t_sp;
  module.bytes.kept += 3.0 * hidden / v.t_sp;
  module.flop.forward += projection.forward_flop;
  module.flop.input_gradient += projection.input_gradient_flop;
  module.flop.weight_gradient += projection.weight_gradient_flop;
}

/// Adds another pass of the head: its work and its collectives, not its weights.
template <class N>
void add_head_pass(const UnitOf<N>& head, UnitOf<N>& module) {
  module.flop.forward += head.flop.forward;
  module.flop.input_gradient += head.flop.input_gradient;
  module.flop.weight_gradient += head.flop.weight_gradient;
  module.time.forward_s += head.time.forward_s;
  module.time.backward_s += head.time.backward_s;
  module.time.weight_gradient_s += head.time.weight_gradient_s;
  module.time.gemm_s += head.time.gemm_s;
  for (std::size_t i = 0; i < collective_count; ++i) {
    const CollectiveSumOf<N>& from = head.collectives[i];
    CollectiveSumOf<N>& sum = module.collectives[i];
    sum.calls += from.calls;
    sum.message = larger(sum.message, from.message);
    sum.sent += from.sent;
    sum.time_s += from.time_s;
    sum.exposed_s += from.exposed_s;
  }
  module.forward_exposed_s += head.forward_exposed_s;
  module.backward_exposed_s += head.backward_exposed_s;
}

/// So many modules alike.
template <class N>
void repeat_module(N times, UnitOf<N>& unit) {
  unit.weights.dense = unit.weights.dense.times(times);
  unit.weights.expert = unit.weights.expert.times(times);
  const MatrixStepTimeOf<N> step = unit.matrix_step;
  unit.matrix_step.add(step, times - 1.0);
  for (CollectiveSumOf<N>& sum : unit.collectives) {
    sum.calls *= times;
    sum.sent *= times;
    sum.time_s *= times;
    sum.exposed_s *= times;
  }
  unit.bytes.kept *= times;
  unit.bytes.saved *= times;
  unit.time.forward_s *= times;
  unit.time.backward_s *= times;
  unit.time.weight_gradient_s *= times;
  unit.time.recompute_s *= times;
  unit.time.gemm_s *= times;
  unit.time.attention_s *= times;
  unit.forward_exposed_s *= times;
  unit.backward_exposed_s *= times;
}

/// All modules of the run as one unit. `layer`: a block like the model's last.
template <class Trace, class N = NumberOf<Trace>>
UnitOf<N> mtp_unit(const Trace& trace, const Run& run, const Symbols<N>& v, const StateCounting& counting,
                   const UnitOf<N>& layer, const UnitOf<N>& head) {
  UnitOf<N> unit = layer;
  add_mtp_projection(trace, run, counting, v, unit);
  add_head_pass(head, unit);
  if (run.model.mtp_layers > 1) {
    repeat_module(trace.config(step_names::mtp_layers, static_cast<double>(run.model.mtp_layers)), unit);
  }
  fold_parts::name_weights(trace, memory_names::dense_weights, unit.weights.dense);
  fold_parts::name_weights(trace, memory_names::expert_weights, unit.weights.expert);
  unit.bytes.saved = trace.step(memory_names::unit_saved, unit.bytes.saved);
  unit.bytes.kept = trace.step(memory_names::unit_kept, unit.bytes.kept);
  unit.time.gemm_s = trace.step(timing_names::unit_products, unit.time.gemm_s);
  unit.time.attention_s = trace.step(timing_names::unit_attention, unit.time.attention_s);
  unit.time.recompute_s = trace.step(step_names::recompute, unit.time.recompute_s);
  name_end(trace, unit);
  return unit;
}

}  // namespace shardplan
