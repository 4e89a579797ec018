#include "shardplan/physics/timing.hpp"

#include <algorithm>
#include <cmath>

#include "shardplan/physics/fold.hpp"
#include "shardplan/physics/measured.hpp"
#include "shardplan/physics/timing_parts.hpp"

namespace shardplan {

using namespace timing_constants;

namespace {

double tile_waves(double tiles, double processors, double quantisation) noexcept {
  const double waves = tiles / processors;
  return quantisation * std::ceil(waves) + (1 - quantisation) * std::max(waves, 1.0);
}

}  // namespace

double plain_peak(const Gpu& gpu, Precision precision) noexcept {
  const bool narrow = precision == Precision::fp8 || precision == Precision::nvfp4;
  return gpu.peak(narrow ? Precision::bf16 : precision);
}

const AttentionEfficiency& flash_efficiency(const Gpu& gpu, const Training& training) noexcept {
  const FlashKernel kernel = training.attention == AttentionKernel::flash_v1   ? FlashKernel::v1
                             : training.attention == AttentionKernel::flash_v3 ? FlashKernel::v3
                                                                               : training.stack.flash;
  if (kernel == FlashKernel::v1) return gpu.attention_v1;
  return kernel == FlashKernel::v3 ? gpu.attention_v3 : gpu.attention;
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

double memory_seconds(const Gpu& gpu, double bytes) noexcept {
  if (bytes <= 0) return 0;
  return bytes / (elementwise_bandwidth_share * gpu.memory_bandwidth) + launch_s;
}

namespace {

/// One product's work on a tile-by-tile model of the GPU, at its dense peak `peak`. Seconds.
double tile_seconds(const Gpu& gpu, double peak, double width, double m, double n, double k, double batch) noexcept {
  const GemmEfficiency& efficiency = gpu.gemm;
  const double processors = gpu.multiprocessors > 0 ? gpu.multiprocessors : 108;
  double best = 0;
  for (int i = 0; i < 3; ++i) {
    const double tiles = batch * std::ceil(m / tile_rows[i]) * std::ceil(n / 128);
    const double waves = tile_waves(tiles, processors, efficiency.wave_quantisation);
    const double rate = peak / processors * efficiency.peak_fraction * tile_share[i];
    const double seconds = waves * 2 * tile_rows[i] * 128 * (k + efficiency.k0) / rate;
    if (i == 0 || seconds < best) best = seconds;
  }
  const double bytes = width * batch * (m * k + k * n + m * n);
  return std::max(best, bytes / (gpu.memory_bandwidth * efficiency.memory_fraction)) + efficiency.launch_s;
}

/// Rows and columns as kernels pad them.
double padded(double size, double below) noexcept { return size < below ? std::ceil(size / 128) * 128 : size; }

/// By the measured table; outside its box the tile model says how the shape at the box's edge continues.
double table_seconds(const Gpu& gpu, double peak, double m, double n, double k, double batch) noexcept {
  const double rows = std::clamp(m, least_measured_size, most_measured_rows);
  const double columns = std::clamp(n, least_measured_size, most_measured_columns);
  const double depth = std::clamp(k, least_measured_size, most_measured_columns);
  const bool inside = rows == m && columns == n && depth == k;
  if (inside) {
    const double wide = padded(m, padded_rows_below), high = padded(n, padded_columns_below);
    return 2 * batch * wide * high * k / (peak * measured_gemm_share(gpu.gemm.table, wide, high, k));
  }
  const double edge = 2 * rows * columns * depth / (peak * measured_gemm_share(gpu.gemm.table, rows, columns, depth));
  return edge * tile_seconds(gpu, peak, 2, m, n, k, batch) / tile_seconds(gpu, peak, 2, rows, columns, depth, 1);
}

}  // namespace

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

double gemm_seconds(const Gpu& gpu, Precision precision, double m, double n, double k, double batch) noexcept {
  if (m <= 0 || n <= 0 || k <= 0 || batch <= 0) return 0;
  const double peak = gpu.peak(precision);
  if (peak <= 0) return 0;
  const bool tabulated = has_gemm_table(gpu.gemm.table) && is_16_bit_or_less(precision);
  const double width = is_16_bit_or_less(precision) ? 2 : 4;
  const double seconds =
      tabulated ? table_seconds(gpu, peak, m, n, k, batch) : tile_seconds(gpu, peak, width, m, n, k, batch);
  return seconds / gpu.gemm.sustained;
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
  const double ranks = group.size;
  if (op == Collective::send) {
    const bool inside = group.scope == Scope::intra_node;
    const double rate = inside ? cluster.intra_node.bandwidth * cluster.intra_node_efficiency
                               : cluster.inter_node.bandwidth * cluster.inter_node_efficiency();
    return (inside ? cluster.intra_node.latency_s : cluster.inter_node.latency_s) + sent / rate;
  }
  if (group.scope == Scope::intra_node && has_collective_table(cluster.gpu.collective_table)) {
    const int table = cluster.gpu.collective_table;
    const double message = op == Collective::broadcast ? sent : sent * ranks / (ranks - 1);
    const double measured =
        measured_collective_seconds(table, op, ranks, op == Collective::all_reduce ? message / 2 : message);
    // Over a faster link the bytes take less, what a small message takes stays; over a slower one all of it grows.
    const double ratio = measured_link_bandwidth(table) / cluster.intra_node.bandwidth;
    const double start_up = std::min(measured, measured_collective_seconds(table, op, ranks, small_message_bytes));
    const double seconds = ratio >= 1 ? ratio * measured : start_up + ratio * (measured - start_up);
    return cluster.collective_slowdown * seconds;
  }
  const Path path = path_of(cluster, group);
  if (op == Collective::all_to_all && group.scope == Scope::inter_node) {
    const double remote = sent * (ranks - group.per_domain) / (ranks - 1);
    const double local = sent - remote;
    return path.latency_s + remote / (cluster.inter_node.bandwidth * cluster.inter_node_efficiency()) +
           local / (cluster.intra_node.bandwidth * cluster.intra_node_efficiency);
  }
  const double passes = op == Collective::all_reduce ? 2 : 1;
  double seconds = passes * path.latency_s + sent / path.bandwidth;
  if (group.scope == Scope::intra_node) seconds += passes * half_rate_bytes / path.bandwidth;
  return seconds;
}

ProductRate product_rate(const Run& run, const Operator<double>& op) noexcept {
  const Gpu& gpu = run.cluster.gpu;
  const Training& training = run.training;
  const bool is_narrow = training.precision == Precision::fp8 || training.precision == Precision::nvfp4;
  // Head, router and attention scores stay in 16 bit.
  const bool plain = op.part == Part::router || op.part == Part::head;
  ProductRate rate;
  rate.precision = training.precision;
  if (is_narrow) rate.precision = gpu.peak(Precision::bf16) > 0 ? Precision::bf16 : Precision::fp16;
  if (is_narrow && !plain) rate.narrow = narrow_rate(gpu, training, gpu.peak(rate.precision));
  if (op.kind == OperatorKind::grouped_gemm) rate.share = training.stack.timing.grouped_product_share;
  return rate;
}

namespace {

/// The three products of one operator, in the precision that it runs in.
class Products {
 public:
  Products(const Run& run, const Operator<double>& op) noexcept
      : gpu_(run.cluster.gpu), rate_(product_rate(run, op)), batch_(op.batch) {}

  double seconds(double m, double n, double k) const noexcept {
    const double product = gemm_seconds(gpu_, rate_.precision, m, n, k, batch_) / (rate_.narrow.speed_up * rate_.share);
    if (rate_.narrow.cast_bytes <= 0) return product;
    return product + rate_.narrow.cast_bytes * batch_ * m * k / (elementwise_bandwidth_share * gpu_.memory_bandwidth);
  }

 private:
  const Gpu& gpu_;
  ProductRate rate_;
  double batch_ = 1;
};

}  // namespace

OperatorTime operator_seconds(const Run& run, const Operator<double>& op, double causal_share) noexcept {
  const Gpu& gpu = run.cluster.gpu;
  const Training& training = run.training;
  const StackTiming& timing = training.stack.timing;
  double bytes_factor = timing.elementwise_factor * (training.compile ? 1.0 : timing.uncompiled_factor);
  if (op.kind == OperatorKind::routing) bytes_factor = timing.permutation_factor;
  OperatorTime time;
  switch (op.kind) {
    case OperatorKind::gemm:
    case OperatorKind::grouped_gemm: {
      const Products products(run, op);
      const double start = op.kind == OperatorKind::grouped_gemm ? op.batch * timing.expert_start_s : 0.0;
      time.forward_s = products.seconds(op.m, op.n, op.k) + start;
      time.input_gradient_s = products.seconds(op.m, op.k, op.n) + start;
      if (op.trains && op.parameters > 0) {
        // fp32 accumulation: read and written beside the product.
        const double bytes = 8 * op.n * op.k * op.batch;
        time.weight_gradient_s =
            std::max(products.seconds(op.n, op.k, op.m) / timing.weight_gradient_share, memory_seconds(gpu, bytes)) +
            start;
      }
      if (op.adapter_parameters > 0) {
        // Two thin products a direction: their bytes dominate at the usual ranks, their FLOP at large ones.
        const double bytes = 2 * op.m * op.batch * (op.n + op.k);
        const double flop = 2 * op.m * op.batch * op.adapter_rank * (op.n + op.k);
        const double rate = plain_peak(gpu, training.precision) * gpu.gemm.peak_fraction * gpu.gemm.sustained;
        const double seconds = std::max(memory_seconds(gpu, bytes), rate > 0 ? flop / rate : 0.0);
        time.forward_s += seconds;
        time.input_gradient_s += seconds;
        time.weight_gradient_s += seconds;
      }
      break;
    }
    case OperatorKind::attention: {
      const double peak = plain_peak(gpu, training.precision);
      if (peak <= 0) break;
      if (training.attention == AttentionKernel::eager) {
        // Heads that the tensor cores' 16-byte loads cannot address fall back to kernels without them.
        const bool aligned = std::fmod(op.k, 8) == 0;
        const double rate = peak * timing.batched_product_share / (aligned ? 1.0 : timing.misaligned_head_slowdown);
        time.forward_s = op.forward_flop / rate + memory_seconds(gpu, op.forward_bytes);
        time.input_gradient_s = op.input_gradient_flop / rate + memory_seconds(gpu, op.backward_bytes);
      } else {
        const AttentionEfficiency& efficiency = flash_efficiency(gpu, training);
        // A window's kernel walks the whole sequence and computes whole tiles at the window's edge.
        const double length = static_cast<double>(training.seq_length);
        const bool windowed = op.n < length;
        // A ring's kernels see a block of queries and one of keys at a time, c of them one after the other, and what
        // each gives is merged into the sum so far; gathered keys or exchanged heads leave each rank 1/c of the rows.
        const double c = run.parallel.context;
        const bool ring = run.parallel.context_comm == ContextComm::ring;
        const double steps = ring ? c : 1.0;
        const double s = (windowed ? length : op.n) / steps;
        const double tiles = windowed ? op.n / (op.n + window_tile) : 1.0;
        // Triton's and FlashAttention-1's shapes are not those that were measured.
        const bool tabulated = has_attention_table(gpu.attention_table) && &efficiency != &gpu.attention_v1;
        const double heads = op.batch * static_cast<double>(training.micro_batch_size) * steps / c;
        const double ramp =
            tabulated ? attention_shape_share(gpu, efficiency.s0, op.k, s, heads) : s / (s + efficiency.s0);
        const double small_head = !tabulated && op.k < 96 ? timing.narrow_head_share : 1.0;
        // Without balancing, the last of c context ranks sees nearly all keys of a causal mask: 2 - 1/c times the mean.
        const bool unbalanced = training.framework == Framework::fsdp && run.parallel.context_comm != ContextComm::a2a;
        const double flop = op.forward_flop * causal_share * (unbalanced ? 2 - 1 / c : 1.0);
        const double merged = memory_seconds(gpu, merged_bytes * (steps - 1) * op.m * op.batch * op.k);
        time.forward_s = flop / (peak * efficiency.forward * ramp * small_head * tiles) + steps * launch_s + merged;
        time.input_gradient_s =
            2.5 * flop / (peak * efficiency.backward * ramp * small_head * tiles) + steps * launch_s + merged;
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

namespace {

/// Where the recomputation of a layer ends: a checkpoint that is not reentrant stops once it has what backward needs,
/// so the last product and what follows it do not run again (torch.utils.checkpoint, early stop).
const Operator<double>* last_rerun(const Run& run, const OperatorList<double>& list) noexcept {
  const Recompute& recompute = run.training.recompute;
  const bool single_layers = recompute.mode == RecomputeMode::full || recompute.mode == RecomputeMode::first_n ||
                             (recompute.mode == RecomputeMode::every_k && recompute.n == 1);
  if (!single_layers || run.training.kernels.reentrant_checkpoint) return list.operators.end();
  const Operator<double>* last = list.operators.end();
  for (const Operator<double>& op : list.operators) {
    if (op.kind == OperatorKind::gemm || op.kind == OperatorKind::grouped_gemm) last = &op;
  }
  return last;
}

}  // namespace

Reruns::Reruns(const Run& run, const OperatorList<double>& list, bool layer_recomputed) noexcept
    : recompute_(run.training.recompute), layer_(layer_recomputed), stop_(last_rerun(run, list)) {}

bool Reruns::next(const Operator<double>& op) noexcept {
  if (!layer_) return is_recomputed(op, recompute_);
  if (recompute_.mode != RecomputeMode::ops) return &op < stop_;
  if (op.kind == OperatorKind::attention) return false;
  const bool is_product = op.kind == OperatorKind::gemm || op.kind == OperatorKind::grouped_gemm;
  return !is_product || product_++ % 2 == 1;
}

UnitTime unit_seconds(const Run& run, const OperatorList<double>& list, double causal_share,
                      bool layer_recomputed) noexcept {
  UnitTime unit;
  Reruns reruns(run, list, layer_recomputed);
  for (const Operator<double>& op : list.operators) {
    const OperatorTime time = operator_seconds(run, op, causal_share);
    const double recompute = reruns.next(op) ? time.forward_s : 0;
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
