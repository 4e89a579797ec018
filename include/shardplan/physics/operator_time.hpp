// Seconds of one operator and of a unit's list of them, as formulas over numbers or text (trace.hpp).
#pragma once

#include "shardplan/physics/fold.hpp"
#include "shardplan/physics/timing_formulas.hpp"

namespace shardplan {

/// Element-wise bytes as the stack's kernels move them.
template <class Trace, class N = NumberOf<Trace>>
N elementwise_time(const Trace& trace, const Run& run, const Operator<N>& op, const StepName& name, N bytes) {
  if (value_of(bytes) <= 0) return 0.0;
  const StackTiming& timing = run.training.stack.timing;
  const N moved = trace.step(name, bytes);
  if (op.kind == OperatorKind::routing) {
    return memory_time(trace, run.cluster.gpu,
                       trace.stack(timing_names::permutation, timing.permutation_factor) * moved);
  }
  N factor = trace.stack(timing_names::elementwise, timing.elementwise_factor);
  if (!run.training.compile) factor = factor * trace.stack(timing_names::uncompiled, timing.uncompiled_factor);
  return memory_time(trace, run.cluster.gpu, factor * moved);
}

/// One of an operator's three products, in the precision that it runs in.
template <class Trace, class N = NumberOf<Trace>>
N operator_product_time(const Trace& trace, const Run& run, const ProductRate& rate, const ProductSize<N>& size) {
  using namespace timing_constants;
  const Gpu& gpu = run.cluster.gpu;
  const N speed_up = trace.gpu(timing_names::narrow, rate.narrow.speed_up);
  const N grouped = trace.stack(timing_names::grouped, rate.share);
  const N product = product_time(trace, gpu, rate.precision, size) / (speed_up * grouped);
  if (rate.narrow.cast_bytes <= 0) return product;
  const N bytes = trace.input(timing_names::cast_bytes, rate.narrow.cast_bytes);
  return product + bytes * size.batch * size.m * size.k /
                       (trace.input(timing_names::hbm_share, elementwise_bandwidth_share) *
                        trace.gpu(timing_names::hbm, gpu.memory_bandwidth));
}

/// The two thin products of a low-rank adapter, one direction: their bytes dominate at the usual ranks, their FLOP at
/// large ones.
template <class Trace, class N = NumberOf<Trace>>
N adapter_time(const Trace& trace, const Run& run, const Operator<N>& op) {
  using std::max;
  const Gpu& gpu = run.cluster.gpu;
  const N bytes = 2.0 * op.m * op.batch * (op.n + op.k);
  const N flop = 2.0 * op.m * op.batch * op.adapter_rank * (op.n + op.k);
  const double peak = plain_peak(gpu, run.training.precision);
  const N rate = trace.gpu(timing_names::plain_peak, peak) *
                 trace.gpu(timing_names::tile_rate, gpu.gemm.peak_fraction) *
                 trace.gpu(timing_names::sustained, gpu.gemm.sustained);
  const N seconds = max(memory_time(trace, gpu, bytes), value_of(rate) > 0 ? flop / rate : N(0.0));
  return trace.step(timing_names::adapters_time, seconds);
}

template <class Trace, class N = NumberOf<Trace>>
OperatorTimeOf<N> product_operator_time(const Trace& trace, const Run& run, const Operator<N>& op) {
  using std::max;
  const StackTiming& timing = run.training.stack.timing;
  const ProductRate rate = product_rate(run, op.part, op.kind);
  const N start = op.kind == OperatorKind::grouped_gemm
                      ? op.batch * trace.stack(timing_names::expert_start, timing.expert_start_s)
                      : N(0.0);
  const auto product = [&](std::string_view which, N m, N n, N k) {
    return operator_product_time(trace.in(which), run, rate, {m, n, k, op.batch});
  };
  OperatorTimeOf<N> time;
  time.forward_s = product("forward", op.m, op.n, op.k) + start;
  time.input_gradient_s = product("input_gradient", op.m, op.k, op.n) + start;
  // A tied head has no weights of its own; their gradient is made all the same.
  if (op.trains && value_of(op.weight_gradient_flop) > 0) {
    // fp32 accumulation: read and written beside the product.
    const N accumulate = memory_time(trace, run.cluster.gpu, 8.0 * op.n * op.k * op.batch);
    const N alone = product("weight_gradient", op.n, op.k, op.m) /
                    trace.stack(timing_names::weight_gradient_share, timing.weight_gradient_share);
    time.weight_gradient_s = larger(alone, accumulate) + start;
  }
  if (value_of(op.adapter_parameters) > 0) {
    const N adapters = adapter_time(trace, run, op);
    time.forward_s += adapters;
    time.input_gradient_s += adapters;
    time.weight_gradient_s += adapters;
  }
  return time;
}

/// Scores and probabilities written to memory, products in batches.
template <class Trace, class N = NumberOf<Trace>>
OperatorTimeOf<N> eager_attention_time(const Trace& trace, const Run& run, const Operator<N>& op, N peak) {
  const StackTiming& timing = run.training.stack.timing;
  const Gpu& gpu = run.cluster.gpu;
  // Heads that the tensor cores' 16-byte loads cannot address fall back to kernels without them.
  const bool aligned = std::fmod(value_of(op.k), 8) == 0;
  const N rate = peak * trace.stack(timing_names::batched, timing.batched_product_share) /
                 (aligned ? N(1.0) : trace.stack(timing_names::misaligned, timing.misaligned_head_slowdown));
  const N forward_bytes = trace.step(timing_names::forward_bytes, op.forward_bytes);
  const N backward_bytes = trace.step(timing_names::backward_bytes, op.backward_bytes);
  OperatorTimeOf<N> time;
  time.forward_s =
      trace.known(timing_names::score_flop, op.forward_flop) / rate + memory_time(trace, gpu, forward_bytes);
  time.input_gradient_s = trace.known(timing_names::score_flop_backward, op.input_gradient_flop) / rate +
                          memory_time(trace, gpu, backward_bytes);
  return time;
}

/// How a flash kernel's rate at this run's sizes compares with that of long sequences.
template <class Trace, class N = NumberOf<Trace>>
N flash_shape_share(const Trace& trace, const Run& run, const Operator<N>& op, const FlashRate& rate) {
  const Gpu& gpu = run.cluster.gpu;
  // A ring's kernels see a block of queries and one of keys at a time, c of them one after the other; gathered keys or
  // exchanged heads leave each rank 1/c of the rows. A window's kernel walks the whole sequence.
  const double c = run.parallel.context;
  const double steps = run.parallel.context_comm == ContextComm::ring ? c : 1.0;
  const double length = static_cast<double>(run.training.seq_length);
  const double s = (value_of(op.n) < length ? length : value_of(op.n)) / steps;
  const double k = value_of(op.k);
  if (rate.tabulated) {
    const double heads = value_of(op.batch) * static_cast<double>(run.training.micro_batch_size) * steps / c;
    return trace.looked_up(timing_names::flash_shape, attention_shape_share(gpu, rate.efficiency.s0, k, s, heads),
                           MeasuredTable{"attention", measured_gpu(gpu.attention_table)}, "rate of ", heads,
                           " heads of ", k, " over ", s, " tokens against long sequences");
  }
  const N rows = trace.run(timing_names::flash_rows, s);
  return rows / (rows + trace.gpu(timing_names::flash_half_rate(rate.kernel), rate.efficiency.s0));
}

template <class Trace, class N = NumberOf<Trace>>
OperatorTimeOf<N> flash_attention_time(const Trace& trace, const Run& run, const Operator<N>& op, N peak,
                                       N causal_share) {
  using namespace timing_constants;
  const Training& training = run.training;
  const FlashRate rate = flash_rate(run.cluster.gpu, training);
  const double c = run.parallel.context;
  const double steps = run.parallel.context_comm == ContextComm::ring ? c : 1.0;
  const N ramp = flash_shape_share(trace, run, op, rate);
  const bool narrow = !rate.tabulated && value_of(op.k) < 96;
  const N small_head =
      narrow ? trace.stack(timing_names::narrow_head, training.stack.timing.narrow_head_share) : N(1.0);
  // Whole tiles at a window's edge.
  const bool windowed = value_of(op.n) < static_cast<double>(training.seq_length);
  const N tiles = windowed ? op.n / (op.n + trace.input(timing_names::window_tile, window_tile)) : N(1.0);
  N flop = trace.known(timing_names::score_flop, op.forward_flop) * causal_share;
  // Without balancing, the last of c context ranks sees nearly all keys of a causal mask: 2 - 1/c times the mean.
  if (unbalanced_context(run) && c > 1) flop = flop * (2.0 - 1.0 / trace.run(timing_names::context, c));
  // What each step of a ring gives is merged into the sum so far.
  const N merged = memory_time(trace, run.cluster.gpu, N(merged_bytes * (steps - 1)) * op.m * op.batch * op.k);
  const N launches = N(steps) * trace.input(timing_names::launch, launch_s);
  OperatorTimeOf<N> time;
  const N forward = trace.gpu(timing_names::flash_forward(rate.kernel), rate.efficiency.forward);
  const N backward = trace.gpu(timing_names::flash_backward(rate.kernel), rate.efficiency.backward);
  time.forward_s = flop / (peak * forward * ramp * small_head * tiles) + launches + merged;
  time.input_gradient_s = 2.5 * flop / (peak * backward * ramp * small_head * tiles) + launches + merged;
  return time;
}

/// operator_seconds of timing.hpp. `causal_share`: share of the full score matrix that a causal flash kernel computes.
template <class Trace, class N = NumberOf<Trace>>
OperatorTimeOf<N> operator_time(const Trace& trace, const Run& run, const Operator<N>& op, N causal_share) {
  switch (op.kind) {
    case OperatorKind::gemm:
    case OperatorKind::grouped_gemm: return product_operator_time(trace, run, op);
    case OperatorKind::attention: {
      const double plain = plain_peak(run.cluster.gpu, run.training.precision);
      if (plain <= 0) return {};
      const N peak = trace.gpu(timing_names::plain_peak, plain);
      if (run.training.attention == AttentionKernel::eager) return eager_attention_time(trace, run, op, peak);
      return flash_attention_time(trace, run, op, peak, causal_share);
    }
    default:
      return {elementwise_time(trace, run, op, timing_names::forward_bytes, op.forward_bytes),
              elementwise_time(trace, run, op, timing_names::backward_bytes, op.backward_bytes), N(0.0)};
  }
}

/// Where the recomputation of a layer ends: a checkpoint that is not reentrant stops once it has what backward needs,
/// so the last product and what follows it do not run again (torch.utils.checkpoint, early stop).
template <class N>
const Operator<N>* last_rerun(const Run& run, const OperatorList<N>& list) noexcept {
  const Recompute& recompute = run.training.recompute;
  const bool single_layers = recompute.mode == RecomputeMode::full || recompute.mode == RecomputeMode::first_n ||
                             (recompute.mode == RecomputeMode::every_k && recompute.n == 1);
  if (!single_layers || run.training.kernels.reentrant_checkpoint) return list.operators.end();
  const Operator<N>* last = list.operators.end();
  for (const Operator<N>& op : list.operators) {
    if (is_product(op.kind)) last = &op;
  }
  return last;
}

/// Which operators of a unit run forward again, asked in the list's order.
template <class N>
class Reruns {
 public:
  Reruns(const Run& run, const OperatorList<N>& list, bool layer_recomputed) noexcept
      : recompute_(run.training.recompute), layer_(layer_recomputed), stop_(last_rerun(run, list)) {}

  bool next(const Operator<N>& op) noexcept {
    if (!layer_) return is_recomputed(op, recompute_);
    if (recompute_.mode != RecomputeMode::ops) return &op < stop_;
    if (op.kind == OperatorKind::attention) return false;
    return !is_product(op.kind) || product_++ % 2 == 1;
  }

 private:
  const Recompute& recompute_;
  bool layer_;
  const Operator<N>* stop_;
  int product_ = 0;
};

/// An operator's times under the addresses that people open: "forward", "backward" and, where both exist, each
/// gradient.
template <class Trace, class N = NumberOf<Trace>>
OperatorTimeOf<N> named_operator_time(const Trace& trace, const Run& run, const Operator<N>& op, N causal_share) {
  using namespace timing_names;
  OperatorTimeOf<N> time = operator_time(trace, run, op, causal_share);
  time.forward_s = trace.step(operator_forward, time.forward_s);
  const bool both = value_of(time.input_gradient_s) > 0 && value_of(time.weight_gradient_s) > 0;
  if (!both) {
    time.input_gradient_s = trace.step(operator_backward, time.input_gradient_s);
    time.weight_gradient_s = trace.step(operator_backward, time.weight_gradient_s);
    return time;
  }
  time.input_gradient_s = trace.step(operator_input_gradient, time.input_gradient_s);
  time.weight_gradient_s = trace.step(operator_weight_gradient, time.weight_gradient_s);
  return time;
}

/// unit_seconds of timing.hpp.
template <class Trace, class N = NumberOf<Trace>>
UnitTimeOf<N> unit_time(const Trace& trace, const Run& run, const OperatorList<N>& list, N causal_share,
                        bool layer_recomputed) {
  UnitTimeOf<N> unit;
  Reruns<N> reruns(run, list, layer_recomputed);
  for (const Operator<N>& op : list.operators) {
    const Trace here = trace.in(op.name, op.name);
    const OperatorTimeOf<N> time = named_operator_time(here, run, op, causal_share);
    const N recompute = reruns.next(op) ? time.forward_s : N(0.0);
    N backward = time.input_gradient_s + time.weight_gradient_s;
    if (value_of(time.input_gradient_s) > 0 && value_of(time.weight_gradient_s) > 0) {
      backward = here.step(timing_names::operator_both_gradients, backward);
    }
    unit.forward_s += time.forward_s;
    unit.backward_s += backward;
    unit.weight_gradient_s += time.weight_gradient_s;
    unit.recompute_s += recompute;
    const N total = time.forward_s + backward + recompute;
    if (is_product(op.kind)) unit.gemm_s += total;
    if (op.kind == OperatorKind::attention) unit.attention_s += total;
  }
  unit.gemm_s = trace.step(timing_names::unit_products, unit.gemm_s);
  unit.attention_s = trace.step(timing_names::unit_attention, unit.attention_s);
  return unit;
}

}  // namespace shardplan
