// The most that one layer's backward holds for a moment, as a formula over numbers or text (trace.hpp).
//
// Six points of a layer's backward, measured to the byte (docs/validation.md, peak memory). T tokens, P bytes of the
// MLP's product, Y of the hidden state (1/t of it with sequence parallelism), Y' of the whole one:
//   last linear:    d(product) P, its weight's gradient 2fh, with dropout its gradient less the mask Y - Y/2, with
//                   sequence parallelism the gathered gradient Y'.
//   activation:     d(product), d(gate), d(up) 3P, less the product where it was kept and is freed by then.
//   column input:   with sequence parallelism, the gathered input and its gradient before they are scattered 2Y',
//                   d(gate, up) 2P, less all that the MLP kept behind it (Megatron-Core tensor_parallel/layers.py,
//                   LinearWithGradAccumulationAndAsyncCommunication.backward).
//   context gather: with all-gathered keys and values, both and their gradients whole, the gradients of q, k, v and of
//                   the output, less all that was kept behind the core.
//   attention core: unfused, the gradients of the probabilities (2as^2b, 4as^2b in fp32), of q, k, v and the output,
//                   the scores again under selective recomputation, less all that was kept behind the core.
//   weight norm:    DoRA's norm of W + sBA, written out: the product BA, its multiple and the sum, and the identity
//                   that makes it (PEFT dora.py).
// Less of the first where weights are frozen: their gradients do not exist.
#pragma once

#include "shardplan/physics/memory_names.hpp"
#include "shardplan/physics/operators/mlp.hpp"
#include "shardplan/physics/transients.hpp"

namespace shardplan {

/// Bytes that torchtitan's op-level checkpointing keeps of a layer: its input, the attention core's output with its
/// log-sum-exp, and every second matrix product's output (torchtitan parallelize_llama.py, _save_list).
template <class Trace, class N = NumberOf<Trace>>
N op_level_kept(const Trace& trace, const Symbols<N>& v, const LayerKind& kind) {
  const N tokens = v.s * v.b / v.c;
  const N input = trace.step(memory_names::ops_input, v.w_r * tokens / v.t_sp * v.h);
  const N query = v.a * v.d / v.t, value = v.k * v.d_v / v.t_kv, output = v.a * v.d_v / v.t;
  const N attention =
      trace.step(memory_names::ops_attention, v.w * tokens * (query + value + output) + 4.0 * tokens * v.a / v.t);
  if (kind.mlp.kind == MlpKind::moe) {
    const N rows = tokens / v.t_sp * v.k_top * v.u * v.x;
    return input + attention + trace.step(memory_names::ops_mlp, v.w * rows * (v.f_e / v.x + v.h));
  }
  if (kind.mlp.kind == MlpKind::none) return input + attention;
  return input + attention + trace.step(memory_names::ops_mlp, v.w * tokens * (v.f / v.t + v.h));
}

namespace transient_points {

/// Bytes that operators behind the first one that `is` picks keep, freed when its backward begins.
template <class Trace, class Pick, class N = NumberOf<Trace>>
N kept_behind(const Trace& trace, const StepName& name, const OperatorList<N>& list, Pick is) {
  N behind = 0.0;
  bool passed = false;
  for (const Operator<N>& op : list.operators) {
    if (passed) behind += trace.in(op.name).known(memory_names::saved_by(op.name), op.saved);
    passed = passed || is(op);
  }
  return trace.step(name, behind);
}

template <class Trace, class N = NumberOf<Trace>>
N kept_behind_attention(const Trace& trace, const OperatorList<N>& list) {
  return kept_behind(trace, memory_names::kept_behind_attention, list,
                     [](const Operator<N>& op) { return op.kind == OperatorKind::attention; });
}

template <class Trace, class N = NumberOf<Trace>>
N attention_core(const Trace& trace, const Symbols<N>& v, const LayerOptions& o, const OperatorList<N>& list,
                 bool selective) {
  const N tokens = v.s * v.b / v.c;
  const N scores = v.a / v.t * tokens * v.s;
  const double width = o.kernels.softmax == SoftmaxKernel::fp32 || o.activations_fp32 ? 4.0 : 2.0;
  N dropped = 0.0;
  for (const Operator<N>& op : list.operators) {
    if (op.kind == OperatorKind::attention) dropped = op.saved - op.saved_recomputed;
  }
  const N output = v.w * tokens * v.a * v.d_v / v.t;
  const N again = selective ? trace.step(memory_names::scores_again, dropped) + output : N(0.0);
  return N(width) * scores + again + 3.0 * output - kept_behind_attention(trace, list);
}

/// What the MLP's backward works with.
template <class N>
struct MlpGradients {
  N product{};     ///< bytes of the gradient of what the last linear reads
  N dispatched{};  ///< of the gradient as experts receive it
  N weight{};      ///< of a weight's gradient, 0 where none is made apart
  double factors = 1;
};

template <class Trace, class N = NumberOf<Trace>>
MlpGradients<N> mlp_gradients(const Trace& trace, const Symbols<N>& v, const LayerOptions& o, const LayerKind& kind) {
  const N tokens = v.s * v.b / v.c;
  const bool moe = kind.mlp.kind == MlpKind::moe;
  const N rows = moe ? tokens / v.t_sp * v.k_top * v.u * v.x : tokens;
  const N width = moe ? v.f_e / v.x : v.f / v.t;
  N product = v.w_m * rows * width;
  if (moe && o.kernels.moe_dispatch == MoeDispatch::loop && kind.mlp.experts > 0) {
    product = product / v.E;  // one expert at a time
  }
  const bool permutes = moe && o.kernels.moe_dispatch == MoeDispatch::permute;
  const bool makes_gradient = o.base_trains && o.kernels.wgrad == WeightGradient::separate;
  return {trace.step(memory_names::product_gradient, product), permutes ? v.w * rows * v.h : N(0.0),
          makes_gradient ? trace.step(memory_names::made_weight_gradient, 2.0 * width * v.h) : N(0.0),
          kind.mlp.gated ? 2.0 : 1.0};
}

}  // namespace transient_points

/// layer_transient of transients.hpp.
template <class Trace, class N = NumberOf<Trace>>
LayerTransientOf<N> layer_transient(const Trace& trace, const Symbols<N>& v, const LayerOptions& o,
                                    const LayerKind& kind, const OperatorList<N>& list, const Recompute& recompute,
                                    MadeGradient made) {
  using namespace transient_points;
  const N tokens = v.s * v.b / v.c;
  const N hidden = v.w_r * tokens / v.t_sp * v.h;
  const N whole_hidden = v.w * tokens * v.h;
  LayerTransientOf<N> transient;
  transient.gradient = trace.step(memory_names::output_gradient, hidden);
  const MlpGradients<N> mlp = mlp_gradients(trace, v, o, kind);
  const bool adds = made == MadeGradient::added;
  const bool gathers = o.sequence_parallel && kind.mlp.kind == MlpKind::dense;

  N inner = 0.0;
  // The points in the order of the header.
  const auto offer = [&](const StepName& point, N held) {
    using std::max;
    if (value_of(held) > 0) inner = max(inner, trace.step(point, held));
  };
  const N unmasked = o.dropout ? transient.gradient - tokens / v.t_sp * v.h : N(0.0);
  offer(memory_names::last_linear_point,
        mlp.product + mlp.dispatched + unmasked + (gathers ? whole_hidden : N(0.0)) + (adds ? mlp.weight : N(0.0)));
  const N activation =
      kind.mlp.kind == MlpKind::none ? N(0.0) : N(mlp.factors + (o.base_trains ? 0.0 : 1.0)) * mlp.product;
  offer(memory_names::activation_point, activation + mlp.dispatched);
  if (gathers) {
    const N behind = kept_behind(trace, memory_names::kept_behind_input, list,
                                 [](const Operator<N>& op) { return op.name == dense_mlp_names.up; });
    const N inputs = N(o.kernels.sp_input == SequenceParallelInput::regather ? 2.0 : 1.0) * whole_hidden;
    offer(memory_names::column_input_point,
          inputs + N(mlp.factors) * mlp.product + (adds ? N(mlp.factors) * mlp.weight : N(0.0)) - behind);
  }
  if (o.context && o.context_comm == ContextComm::all_gather) {
    const N keys = v.w * tokens * (v.k * v.d + v.k * v.d_v) / v.t_kv;
    const N queries = v.w * tokens * (v.a * v.d + v.a * v.d_v) / v.t;
    offer(memory_names::context_gather_point, 2.0 * v.c * keys + keys + queries - kept_behind_attention(trace, list));
  }
  if (o.attention == AttentionKernel::eager && kind.attention.kind != AttentionKind::none) {
    const bool selective = recompute.mode == RecomputeMode::selective;
    offer(memory_names::attention_core_point, attention_core(trace, v, o, list, selective));
  }
  if (o.dora) {
    N norm = 0.0;
    for (const Operator<N>& op : list.operators) {
      if (value_of(op.adapter_parameters) > 0) {
        norm = larger(norm, v.w * (3.0 * op.rows * op.cols + op.cols * op.cols));
      }
    }
    offer(memory_names::weight_norm_point, norm);
  }
  transient.inner = trace.step(memory_names::inside_layer, inner);
  if (!adds) transient.weight_gradient = mlp.weight;
  return transient;
}

}  // namespace shardplan
