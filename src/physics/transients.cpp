#include "shardplan/physics/transients.hpp"

#include <algorithm>

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

LayerTransient layer_transient(const Symbols<double>& v, const LayerOptions& o, const LayerKind& kind,
                               const OperatorList<double>& list, const Recompute& recompute) noexcept {
  const double tokens = v.s * v.b / v.c;
  const double hidden = v.w_r * tokens / v.t_sp * v.h;
  LayerTransient transient;
  transient.gradient = hidden;
  const bool moe = kind.mlp.kind == MlpKind::moe;
  const double rows = moe ? tokens / v.t_sp * v.k_top * v.u * v.x : tokens;
  const double width = moe ? v.f_e / v.x : v.f / v.t;
  double product = v.w_m * rows * width;
  if (moe && o.kernels.moe_dispatch == MoeDispatch::loop && kind.mlp.experts > 0) {
    product = product / static_cast<double>(kind.mlp.experts);  // one expert at a time
  }
  const double dispatched = moe && o.kernels.moe_dispatch == MoeDispatch::permute ? v.w * rows * v.h : 0.0;
  const double activation = kind.mlp.kind == MlpKind::none ? 0.0
                            : kind.mlp.gated               ? (o.base_trains ? 2.0 : 3.0) * product
                                                           : (o.base_trains ? 1.0 : 2.0) * product;
  const bool separate = o.base_trains && o.kernels.wgrad == WeightGradient::separate;
  const double last_linear = product;
  if (separate) transient.weight_gradient = 2.0 * width * v.h;
  double inner = std::max(last_linear, activation) + dispatched;
  if (o.attention == AttentionKernel::eager && kind.attention.kind != AttentionKind::none) {
    // By the time the core runs backward, everything behind it has been freed.
    const double scores = v.a / v.t * tokens * v.s;
    double behind = 0, core_dropped = 0;
    bool passed = false;
    for (const Operator<double>& op : list.operators) {
      if (passed) behind += op.saved;
      if (op.kind == OperatorKind::attention) {
        passed = true;
        core_dropped = op.saved - op.saved_recomputed;
      }
    }
    const double probabilities = (o.kernels.softmax == SoftmaxKernel::fp32 || o.activations_fp32 ? 4.0 : 2.0) * scores;
    const bool selective = recompute.mode == RecomputeMode::selective;
    const double core =
        probabilities + (selective ? core_dropped + hidden : 0.0) + 4.0 * v.w * tokens * v.a * v.d / v.t;
    inner = std::max(inner, core + hidden - behind);
  }
  transient.inner = std::max(0.0, inner);
  return transient;
}

}  // namespace shardplan
