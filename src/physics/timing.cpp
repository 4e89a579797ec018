#include "shardplan/physics/timing.hpp"

#include <algorithm>
#include <cmath>

#include "shardplan/physics/fold.hpp"

namespace shardplan {
namespace {

constexpr double elementwise_bandwidth_share = 0.8;
constexpr double launch_s = 3e-6;
constexpr double grouped_share = 0.72;          // a grouped product's rate, of one product of its shape
constexpr double per_expert_s = 5e-6;           // start-up per local expert and product
constexpr double batched_product_share = 0.46;  // unfused attention's batched products, of peak
constexpr double fp8_cast_bytes = 4.5;          // per element of each product's input
constexpr double half_rate_bytes = 2.0e6;       // message at which NVLink reaches half of that
constexpr double inter_node_step_s = 40e-6;     // start-up of a pass over nodes, per log2(nodes)

Precision product_precision(Precision precision) noexcept { return precision; }

/// The 16-bit (or fp32) rate that attention scores, router and the like run at.
double plain_peak(const Gpu& gpu, Precision precision) noexcept {
  const bool narrow = precision == Precision::fp8 || precision == Precision::nvfp4;
  return gpu.peak(narrow ? Precision::bf16 : precision);
}

/// "flash" runs what the stack's release ran; flash-v1 and flash-v3 say it themselves.
const AttentionEfficiency& flash_efficiency(const Gpu& gpu, const Training& training) noexcept {
  const FlashKernel kernel = training.attention == AttentionKernel::flash_v1   ? FlashKernel::v1
                             : training.attention == AttentionKernel::flash_v3 ? FlashKernel::v3
                                                                               : training.stack.flash;
  if (kernel == FlashKernel::v1) return gpu.attention_v1;
  return kernel == FlashKernel::v3 ? gpu.attention_v3 : gpu.attention;
}

double tile_waves(double tiles, double processors, double quantisation) noexcept {
  const double waves = tiles / processors;
  return quantisation * std::ceil(waves) + (1 - quantisation) * std::max(waves, 1.0);
}

}  // namespace

double memory_seconds(const Gpu& gpu, double bytes) noexcept {
  if (bytes <= 0) return 0;
  return bytes / (elementwise_bandwidth_share * gpu.memory_bandwidth) + launch_s;
}

double gemm_seconds(const Gpu& gpu, Precision precision, double m, double n, double k, double batch) noexcept {
  if (m <= 0 || n <= 0 || k <= 0 || batch <= 0) return 0;
  const GemmEfficiency& efficiency = gpu.gemm;
  const double peak = gpu.peak(product_precision(precision));
  if (peak <= 0) return 0;
  const double processors = gpu.multiprocessors > 0 ? gpu.multiprocessors : 108;
  constexpr double tile_rows[3] = {256, 128, 64};
  constexpr double tile_share[3] = {1.0, 0.97, 0.93};
  double best = 0;
  for (int i = 0; i < 3; ++i) {
    const double tiles = batch * std::ceil(m / tile_rows[i]) * std::ceil(n / 128);
    const double waves = tile_waves(tiles, processors, efficiency.wave_quantisation);
    const double rate = peak / processors * efficiency.peak_fraction * tile_share[i];
    const double seconds = waves * 2 * tile_rows[i] * 128 * (k + efficiency.k0) / rate;
    if (i == 0 || seconds < best) best = seconds;
  }
  const double width = is_16_bit_or_less(precision) ? 2 : 4;
  const double bytes = width * batch * (m * k + k * n + m * n);
  const double through_memory = bytes / (gpu.memory_bandwidth * efficiency.memory_fraction);
  double seconds = std::max(best, through_memory) / efficiency.sustained + efficiency.launch_s;
  if (precision == Precision::fp8 || precision == Precision::nvfp4) {
    seconds += fp8_cast_bytes * batch * m * k / (elementwise_bandwidth_share * gpu.memory_bandwidth);
  }
  return seconds;
}

Path path_of(const Cluster& cluster, const RankGroup& group) noexcept {
  Path path;
  const double inside = cluster.intra_node.bandwidth * cluster.intra_node_efficiency;
  if (group.scope != Scope::inter_node) {
    path.bandwidth = inside;
    path.latency_s = cluster.intra_node.latency_s;
    return path;
  }
  // Every member of a node carries its share of the ring through its own NIC.
  const double across = group.per_domain * cluster.inter_node.bandwidth * cluster.inter_node_efficiency();
  path.bandwidth = group.per_domain > 1 ? std::min(inside, across) : across;
  const double nodes = std::ceil(static_cast<double>(group.size) / group.per_domain);
  path.latency_s = cluster.inter_node.latency_s + inter_node_step_s * std::log2(std::max(nodes, 2.0));
  return path;
}

double collective_seconds(const Cluster& cluster, Collective op, const RankGroup& group, double sent) noexcept {
  if (group.size <= 1 || sent <= 0) return 0;
  const Path path = path_of(cluster, group);
  if (op == Collective::send) {
    const bool inside = group.scope == Scope::intra_node;
    const double rate = inside ? cluster.intra_node.bandwidth * cluster.intra_node_efficiency
                               : cluster.inter_node.bandwidth * cluster.inter_node_efficiency();
    return (inside ? cluster.intra_node.latency_s : cluster.inter_node.latency_s) + sent / rate;
  }
  if (op == Collective::all_to_all && group.scope == Scope::inter_node) {
    const double others = group.size - 1;
    const double remote = sent * (group.size - group.per_domain) / others;
    const double local = sent - remote;
    return path.latency_s + remote / (cluster.inter_node.bandwidth * cluster.inter_node_efficiency()) +
           local / (cluster.intra_node.bandwidth * cluster.intra_node_efficiency);
  }
  const double passes = op == Collective::all_reduce ? 2 : 1;
  double seconds = passes * path.latency_s + sent / path.bandwidth;
  if (group.scope == Scope::intra_node) seconds += passes * half_rate_bytes / path.bandwidth;
  return seconds;
}

OperatorTime operator_seconds(const Run& run, const Operator<double>& op, double causal_share) noexcept {
  const Gpu& gpu = run.cluster.gpu;
  const Training& training = run.training;
  const double bytes_factor =
      training.stack.timing.elementwise_factor * (training.compile ? 1.0 : training.stack.timing.uncompiled_factor);
  OperatorTime time;
  switch (op.kind) {
    case OperatorKind::gemm:
    case OperatorKind::grouped_gemm: {
      const bool plain = op.part == Part::router || op.part == Part::head;
      const Precision precision =
          plain && is_16_bit_or_less(training.precision) && training.precision != Precision::fp16
              ? (gpu.peak(Precision::bf16) > 0 ? Precision::bf16 : Precision::fp16)
              : training.precision;
      time.forward_s = gemm_seconds(gpu, precision, op.m, op.n, op.k, op.batch);
      time.input_gradient_s = gemm_seconds(gpu, precision, op.m, op.k, op.n, op.batch);
      if (op.kind == OperatorKind::grouped_gemm) {
        time.forward_s = time.forward_s / grouped_share + op.batch * per_expert_s;
        time.input_gradient_s = time.input_gradient_s / grouped_share + op.batch * per_expert_s;
      }
      if (op.trains && op.parameters > 0) {
        const double share = op.kind == OperatorKind::grouped_gemm ? grouped_share : 1.0;
        time.weight_gradient_s = gemm_seconds(gpu, precision, op.n, op.k, op.m, op.batch) / (0.95 * share);
      }
      if (op.adapter_parameters > 0) {
        // Two thin products a direction; their bytes dominate.
        const double bytes = 2 * op.m * op.batch * (op.n + op.k);
        time.forward_s += memory_seconds(gpu, bytes);
        time.input_gradient_s += memory_seconds(gpu, bytes);
        time.weight_gradient_s += memory_seconds(gpu, bytes);
      }
      break;
    }
    case OperatorKind::attention: {
      const double peak = plain_peak(gpu, training.precision);
      if (peak <= 0) break;
      if (training.attention == AttentionKernel::eager) {
        time.forward_s = op.forward_flop / (peak * batched_product_share) + memory_seconds(gpu, op.forward_bytes);
        time.input_gradient_s =
            op.input_gradient_flop / (peak * batched_product_share) + memory_seconds(gpu, op.backward_bytes);
      } else {
        const AttentionEfficiency& efficiency = flash_efficiency(gpu, training);
        const double s = op.n;
        const double ramp = s / (s + efficiency.s0);
        const double small_head = op.k < 96 ? 0.8 : 1.0;
        // Without balancing, the last of c context ranks sees nearly all keys of a causal mask: 2 - 1/c times the mean.
        const double c = run.parallel.context;
        const bool unbalanced = training.framework == Framework::fsdp && run.parallel.context_comm != ContextComm::a2a;
        const double flop = op.forward_flop * causal_share * (unbalanced ? 2 - 1 / c : 1.0);
        time.forward_s = flop / (peak * efficiency.forward * ramp * small_head) + launch_s;
        time.input_gradient_s = 2.5 * flop / (peak * efficiency.backward * ramp * small_head) + launch_s;
      }
      break;
    }
    default:
      time.forward_s = memory_seconds(gpu, bytes_factor * op.forward_bytes);
      time.input_gradient_s = memory_seconds(gpu, bytes_factor * op.backward_bytes);
      break;
  }
  return time;
}

UnitTime unit_seconds(const Run& run, const OperatorList<double>& list, double causal_share,
                      bool layer_recomputed) noexcept {
  UnitTime unit;
  int product = 0;
  for (const Operator<double>& op : list.operators) {
    const OperatorTime time = operator_seconds(run, op, causal_share);
    bool again = layer_recomputed;
    if (layer_recomputed && run.training.recompute.mode == RecomputeMode::ops) {
      again = op.kind == OperatorKind::attention                                       ? false
              : op.kind == OperatorKind::gemm || op.kind == OperatorKind::grouped_gemm ? product++ % 2 == 1
                                                                                       : true;
    } else if (!layer_recomputed) {
      again = is_recomputed(op, run.training.recompute);
    }
    const double recompute = again ? time.forward_s : 0;
    const double backward = time.input_gradient_s + time.weight_gradient_s;
    unit.forward_s += time.forward_s;
    unit.backward_s += backward;
    unit.weight_gradient_s += time.weight_gradient_s;
    unit.recompute_s += recompute;
    const double total = time.forward_s + backward + recompute;
    if (op.kind == OperatorKind::gemm || op.kind == OperatorKind::grouped_gemm) unit.gemm_s += total;
    if (op.kind == OperatorKind::attention) unit.attention_s += total;
  }
  return unit;
}

}  // namespace shardplan
