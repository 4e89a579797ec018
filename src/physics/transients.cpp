#include "shardplan/physics/transients.hpp"

#include <algorithm>

#include "shardplan/physics/operators/mlp.hpp"

namespace shardplan {

double op_level_kept_bytes(const Symbols<double>& v, const LayerKind& kind) noexcept {
  const double tokens = v.s * v.b / v.c;
  const double input = v.w_r * tokens / v.t_sp * v.h;
  const double query = v.a * v.d / v.t, value = v.k * v.d_v / v.t_kv, output = v.a * v.d_v / v.t;
  const double attention = v.w * tokens * (query + value + output) + 4.0 * tokens * v.a / v.t;
  if (kind.mlp.kind == MlpKind::moe) {
    const double rows = tokens / v.t_sp * v.k_top * v.u * v.x;
    return input + attention + v.w * rows * (v.f_e / v.x + v.h);
  }
  if (kind.mlp.kind == MlpKind::none) return input + attention;
  return input + attention + v.w * tokens * (v.f / v.t + v.h);
}

namespace {

/// Bytes that operators behind the first one that `is` picks keep, freed when its backward begins.
template <class Pick>
double kept_behind(const OperatorList<double>& list, Pick is) noexcept {
  double behind = 0;
  bool passed = false;
  for (const Operator<double>& op : list.operators) {
    if (passed) behind += op.saved;
    passed = passed || is(op);
  }
  return behind;
}

double attention_core_point(const Symbols<double>& v, const LayerOptions& o, const OperatorList<double>& list,
                            bool selective) noexcept {
  const double tokens = v.s * v.b / v.c;
  const double scores = v.a / v.t * tokens * v.s;
  const double width = o.kernels.softmax == SoftmaxKernel::fp32 || o.activations_fp32 ? 4.0 : 2.0;
  double dropped = 0;
  for (const Operator<double>& op : list.operators) {
    if (op.kind == OperatorKind::attention) dropped = op.saved - op.saved_recomputed;
  }
  const double output = v.w * tokens * v.a * v.d_v / v.t;
  const double again = selective ? dropped + output : 0.0;
  const double behind =
      kept_behind(list, [](const Operator<double>& op) { return op.kind == OperatorKind::attention; });
  return width * scores + again + 3.0 * output - behind;
}

}  // namespace

LayerTransient layer_transient(const Symbols<double>& v, const LayerOptions& o, const LayerKind& kind,
                               const OperatorList<double>& list, const Recompute& recompute,
                               MadeGradient made) noexcept {
  const double tokens = v.s * v.b / v.c;
  const double hidden = v.w_r * tokens / v.t_sp * v.h;
  const double whole_hidden = v.w * tokens * v.h;
  LayerTransient transient;
  transient.gradient = hidden;
  const bool moe = kind.mlp.kind == MlpKind::moe;
  const bool dense = kind.mlp.kind == MlpKind::dense;
  const double rows = moe ? tokens / v.t_sp * v.k_top * v.u * v.x : tokens;
  const double width = moe ? v.f_e / v.x : v.f / v.t;
  double product = v.w_m * rows * width;
  if (moe && o.kernels.moe_dispatch == MoeDispatch::loop && kind.mlp.experts > 0) {
    product = product / static_cast<double>(kind.mlp.experts);  // one expert at a time
  }
  const double dispatched = moe && o.kernels.moe_dispatch == MoeDispatch::permute ? v.w * rows * v.h : 0.0;
  const double factors = kind.mlp.gated ? 2.0 : 1.0;
  const double activation = kind.mlp.kind == MlpKind::none ? 0.0 : (factors + (o.base_trains ? 0.0 : 1.0)) * product;
  const bool makes_gradient = o.base_trains && o.kernels.wgrad == WeightGradient::separate;
  const double weight_gradient = makes_gradient ? 2.0 * width * v.h : 0.0;
  const bool adds = made == MadeGradient::added;
  const double unmasked = o.dropout ? hidden - tokens / v.t_sp * v.h : 0.0;
  const bool gathers = o.sequence_parallel && dense;

  double inner = 0;
  // The points in the order of the header.
  const auto offer = [&inner](double held) { inner = std::max(inner, held); };
  offer(product + dispatched + unmasked + (gathers ? whole_hidden : 0.0) + (adds ? weight_gradient : 0.0));
  offer(activation + dispatched);
  if (gathers) {
    const double behind = kept_behind(list, [](const Operator<double>& op) { return op.name == dense_mlp_names.up; });
    const double inputs = (o.kernels.sp_input == SequenceParallelInput::regather ? 2.0 : 1.0) * whole_hidden;
    offer(inputs + factors * product + (adds ? factors * weight_gradient : 0.0) - behind);
  }
  if (o.context && o.context_comm == ContextComm::all_gather) {
    const double keys = v.w * tokens * (v.k * v.d + v.k * v.d_v) / v.t_kv;
    const double queries = v.w * tokens * (v.a * v.d + v.a * v.d_v) / v.t;
    const double behind =
        kept_behind(list, [](const Operator<double>& op) { return op.kind == OperatorKind::attention; });
    offer(2.0 * v.c * keys + keys + queries - behind);
  }
  if (o.attention == AttentionKernel::eager && kind.attention.kind != AttentionKind::none) {
    const bool selective = recompute.mode == RecomputeMode::selective;
    offer(attention_core_point(v, o, list, selective));
  }
  if (o.dora) {
    double norm = 0;
    for (const Operator<double>& op : list.operators) {
      if (op.adapter_parameters > 0) norm = std::max(norm, v.w * (3.0 * op.rows * op.cols + op.cols * op.cols));
    }
    offer(norm);
  }
  transient.inner = inner;
  if (!adds) transient.weight_gradient = weight_gradient;
  return transient;
}

}  // namespace shardplan
