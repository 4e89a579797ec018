#include "shardplan/physics/timing.hpp"

#include <algorithm>
#include <cmath>

#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/physics/operator_time.hpp"

namespace shardplan {

double plain_peak(const Gpu& gpu, Precision precision) noexcept {
  const bool narrow = precision == Precision::fp8 || precision == Precision::nvfp4;
  return gpu.peak(narrow ? Precision::bf16 : precision);
}

FlashRate flash_rate(const Gpu& gpu, const Training& training) noexcept {
  const FlashKernel kernel = training.attention == AttentionKernel::flash_v1   ? FlashKernel::v1
                             : training.attention == AttentionKernel::flash_v3 ? FlashKernel::v3
                                                                               : training.stack.flash;
  // Triton's and FlashAttention-1's shapes are not those that were measured.
  const bool tabulated = has_attention_table(gpu.attention_table) && kernel != FlashKernel::v1;
  switch (kernel) {
    case FlashKernel::v1: return {kernel, gpu.attention_v1, tabulated};
    case FlashKernel::v3: return {kernel, gpu.attention_v3, tabulated};
    default: return {kernel, gpu.attention, tabulated};
  }
}

bool unbalanced_context(const Run& run) noexcept {
  return !facts_of(run.training.framework).balances_context && run.parallel.context_comm != ContextComm::a2a;
}

double attention_shape_share(const Gpu& gpu, double s0, double head_dim, double length, double heads) noexcept {
  const double ramp = length / (length + s0);
  if (!has_attention_table(gpu.attention_table)) return ramp;
  constexpr double longest = 16384, most_heads = 384, widest = 128;
  // Beyond the longest that was measured more rows fill the processors as more heads do.
  const double rows = std::max(1.0, length / longest);
  const double measured = measured_attention_share(gpu.attention_table, head_dim, length, heads * rows) /
                          measured_attention_share(gpu.attention_table, widest, longest, most_heads);
  const double inside = std::clamp(length, 1024.0, longest);
  return measured * longest / (longest + s0) * ramp / (inside / (inside + s0));
}

NarrowRate narrow_rate(const Gpu& gpu, const Training& training, double plain) noexcept {
  const StackTiming& timing = training.stack.timing;
  const double ratio = gpu.peak(training.precision) / plain;
  if (training.precision == Precision::nvfp4) return {ratio * timing.nvfp4_share, 8};
  switch (training.fp8_recipe) {
    case Fp8Recipe::rowwise: return {ratio * timing.fp8_rowwise_share, 8};
    case Fp8Recipe::mxfp8:
    case Fp8Recipe::blockwise: return {ratio * timing.mxfp8_share, 5};
    case Fp8Recipe::tensorwise: return {ratio, 4};
    default: return {ratio, 5};
  }
}

ProductRate product_rate(const Run& run, Part part, OperatorKind kind) noexcept {
  const Gpu& gpu = run.cluster.gpu;
  const Training& training = run.training;
  const bool is_narrow = training.precision == Precision::fp8 || training.precision == Precision::nvfp4;
  // Head, router and attention scores stay in 16 bit.
  const bool plain = part == Part::router || part == Part::head;
  ProductRate rate;
  rate.precision = training.precision;
  if (is_narrow) rate.precision = gpu.peak(Precision::bf16) > 0 ? Precision::bf16 : Precision::fp16;
  if (is_narrow && !plain) rate.narrow = narrow_rate(gpu, training, gpu.peak(rate.precision));
  if (kind == OperatorKind::grouped_gemm) rate.share = training.stack.timing.grouped_product_share;
  return rate;
}

double memory_seconds(const Gpu& gpu, double bytes) noexcept { return memory_time(NoTrace{}, gpu, bytes); }

double gemm_seconds(const Gpu& gpu, Precision precision, double m, double n, double k, double batch) noexcept {
  return product_time(NoTrace{}, gpu, precision, {m, n, k, batch});
}

double collective_seconds(const Cluster& cluster, Collective op, const RankGroup& group, double sent) noexcept {
  return collective_time(NoTrace{}, cluster, op, group, sent);
}

OperatorTime operator_seconds(const Run& run, const Operator<double>& op, double causal_share) noexcept {
  return operator_time(NoTrace{}, run, op, causal_share);
}

UnitTime unit_seconds(const Run& run, const OperatorList<double>& list, double causal_share,
                      bool layer_recomputed) noexcept {
  return unit_time(NoTrace{}, run, list, causal_share, layer_recomputed);
}

}  // namespace shardplan
