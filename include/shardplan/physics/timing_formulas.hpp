// Seconds of products, of HBM traffic, of collectives and of operators, as formulas over numbers or text (trace.hpp).
// timing.hpp has them over double.
//
// Units: bytes, FLOP, seconds. Sources: tile quantisation NVIDIA, "Matrix Multiplication Background User's Guide";
// rates between measured sizes configs/measured; ring collectives Patarasuk and Yuan 2009
// (doi:10.1016/j.jpdc.2008.09.002).
#pragma once

#include "shardplan/physics/measured.hpp"
#include "shardplan/physics/timing_names.hpp"
#include "shardplan/physics/timing_parts.hpp"

namespace shardplan {

/// `bytes` through HBM.
template <class Trace>
NumberOf<Trace> memory_time(const Trace& trace, const Gpu& gpu, NumberOf<Trace> bytes) {
  using namespace timing_constants;
  if (value_of(bytes) <= 0) return 0.0;
  return bytes / (trace.input(timing_names::hbm_share, elementwise_bandwidth_share) *
                  trace.gpu(timing_names::hbm, gpu.memory_bandwidth)) +
         trace.input(timing_names::launch, launch_s);
}

/// A product (m x k)(k x n), batch times.
template <class N>
struct ProductSize {
  N m{}, n{}, k{}, batch{};

  bool empty() const noexcept {
    return value_of(m) <= 0 || value_of(n) <= 0 || value_of(k) <= 0 || value_of(batch) <= 0;
  }
};

/// One product on a model of the GPU that computes it tile by tile, at its dense peak `peak`, elements of `width`
/// bytes. The best of three tile sizes.
template <class Trace, class N = NumberOf<Trace>>
N tile_time(const Trace& trace, const Gpu& gpu, N peak, double width, const ProductSize<N>& p) {
  using namespace timing_constants;
  using std::ceil;
  using std::max;
  const GemmEfficiency& efficiency = gpu.gemm;
  const N processors = trace.gpu(timing_names::processors, gpu.multiprocessors > 0 ? gpu.multiprocessors : 108);
  const N fraction = trace.gpu(timing_names::tile_rate, efficiency.peak_fraction);
  const N k0 = trace.gpu(timing_names::tile_depth, efficiency.k0);
  const double quantisation = efficiency.wave_quantisation;
  N best = 0.0;
  for (int i = 0; i < 3; ++i) {
    const N tiles = p.batch * ceil(p.m / tile_rows[i]) * ceil(p.n / 128.0);
    const N waves = tiles / processors;
    const N rounds = N(quantisation) * ceil(waves) + N(1 - quantisation) * max(waves, N(1.0));
    const N rate = peak / processors * fraction * N(tile_share[i]);
    const N seconds = rounds * N(2.0) * N(tile_rows[i]) * N(128.0) * (p.k + k0) / rate;
    if (i == 0 || seconds < best) best = seconds;
  }
  const N bytes = N(width) * p.batch * (p.m * p.k + p.k * p.n + p.m * p.n);
  const N bandwidth = trace.gpu(timing_names::hbm, gpu.memory_bandwidth) *
                      trace.gpu(timing_names::product_hbm_share, efficiency.memory_fraction);
  return max(best, bytes / bandwidth) + trace.gpu(timing_names::product_launch, efficiency.launch_s);
}

/// Rows and columns as kernels pad them.
template <class N>
N padded_size(N size, double below) {
  using std::ceil;
  return value_of(size) < below ? ceil(size / 128.0) * 128.0 : size;
}

/// The share of the dense peak that a product of this size reaches, between measured sizes.
template <class Trace, class N = NumberOf<Trace>>
N measured_product_share(const Trace& trace, const Gpu& gpu, N m, N n, N k) {
  const double rows = value_of(m), columns = value_of(n), depth = value_of(k);
  return trace.looked_up(timing_names::product_share, measured_gemm_share(gpu.gemm.table, rows, columns, depth),
                         MeasuredTable{"gemm", measured_gpu(gpu.gemm.table)}, "of the dense peak, what a product of ",
                         rows, " x ", columns, " x ", depth, " reaches");
}

/// By the measured table; outside its box the tile model says how the size at the box's edge continues.
template <class Trace, class N = NumberOf<Trace>>
N table_time(const Trace& trace, const Gpu& gpu, N peak, const ProductSize<N>& p) {
  using namespace timing_constants;
  const double m = value_of(p.m), n = value_of(p.n), k = value_of(p.k);
  const double rows = std::clamp(m, least_measured_size, most_measured_rows);
  const double columns = std::clamp(n, least_measured_size, most_measured_columns);
  const double depth = std::clamp(k, least_measured_size, most_measured_columns);
  if (rows == m && columns == n && depth == k) {
    const N wide = padded_size(p.m, padded_rows_below), high = padded_size(p.n, padded_columns_below);
    const N share = measured_product_share(trace, gpu, wide, high, p.k);
    return trace.known(timing_names::product_flop, N(2.0) * p.batch * wide * high * p.k) / (peak * share);
  }
  const N share = measured_product_share(trace, gpu, N(rows), N(columns), N(depth));
  const N edge = trace.step(timing_names::product_edge, N(2 * rows * columns * depth) / (peak * share));
  const N here = trace.step(timing_names::product_tiles, tile_time(trace, gpu, peak, 2, p));
  const N there = trace.step(timing_names::product_tiles_edge,
                             tile_time(trace, gpu, peak, 2, {N(rows), N(columns), N(depth), N(1.0)}));
  return edge * here / there;
}

/// gemm_seconds of timing.hpp.
template <class Trace, class N = NumberOf<Trace>>
N product_time(const Trace& trace, const Gpu& gpu, Precision precision, const ProductSize<N>& p) {
  if (p.empty() || gpu.peak(precision) <= 0) return 0.0;
  const N peak = trace.gpu(timing_names::peak(precision), gpu.peak(precision));
  const bool narrow = is_16_bit_or_less(precision);
  const bool tabulated = has_gemm_table(gpu.gemm.table) && narrow;
  const N seconds = tabulated ? table_time(trace, gpu, peak, p) : tile_time(trace, gpu, peak, narrow ? 2.0 : 4.0, p);
  return seconds / trace.gpu(timing_names::sustained, gpu.gemm.sustained);
}

/// Bandwidth that a GPU's links inside a node give collectives.
template <class Trace, class N = NumberOf<Trace>>
N intra_node_bandwidth(const Trace& trace, const Cluster& cluster) {
  return trace.cluster(timing_names::link, cluster.intra_node.bandwidth) *
         trace.cluster(timing_names::link_share, cluster.intra_node_efficiency);
}

/// And its share of the network.
template <class Trace, class N = NumberOf<Trace>>
N inter_node_bandwidth(const Trace& trace, const Cluster& cluster) {
  return trace.cluster(timing_names::nic, cluster.inter_node.bandwidth) *
         trace.gpu(timing_names::nic_share, cluster.inter_node_efficiency());
}

/// Where ring traffic of a group runs: bytes/s that one GPU sends at, and the start-up of a pass.
template <class N>
struct GroupPath {
  N bandwidth{};
  N latency{};
};

template <class Trace, class N = NumberOf<Trace>>
GroupPath<N> group_path(const Trace& trace, const Cluster& cluster, const RankGroup& group) {
  using std::min;
  const N inside = intra_node_bandwidth(trace, cluster);
  if (group.scope != Scope::inter_node) {
    return {inside, trace.cluster(timing_names::latency, cluster.intra_node.latency_s)};
  }
  // Every member of a node carries its share of the ring through its own NIC.
  const N per_domain = trace.degree(timing_names::ranks_per_node, group.per_domain);
  const double nodes = std::ceil(static_cast<double>(group.size) / group.per_domain);
  const N across = per_domain * trace.cluster(timing_names::nic, cluster.inter_node.bandwidth) *
                   trace.gpu(timing_names::nic_share, cluster.inter_node_efficiency());
  return {group.per_domain > 1 ? min(inside, across) : across,
          trace.cluster(timing_names::nic_latency, cluster.inter_node.latency_s) +
              trace.input(timing_names::node_step, timing_constants::inter_node_step_s) *
                  trace.degree(timing_names::log2_nodes, std::log2(std::max(nodes, 2.0)))};
}

/// Inside a node, by the table of the cluster's GPU.
template <class Trace, class N = NumberOf<Trace>>
N measured_collective_time(const Trace& trace, const Cluster& cluster, Collective op, const RankGroup& group, N sent) {
  using std::min;
  const int table = cluster.gpu.collective_table;
  const MeasuredTable file{"collectives", measured_gpu(table)};
  const double ranks = group.size, bytes = value_of(sent);
  const double message = op == Collective::broadcast ? bytes : bytes * ranks / (ranks - 1);
  const double looked_up = op == Collective::all_reduce ? message / 2 : message;
  const N measured =
      trace.looked_up(timing_names::measured_call, measured_collective_seconds(table, op, ranks, looked_up), file,
                      name(op), " of ", Bytes{looked_up}, " over ", ranks, " ranks");
  // Over a faster link the bytes take less, what a small message takes stays; over a slower one all of it grows.
  const double ratio = measured_link_bandwidth(table) / cluster.intra_node.bandwidth;
  const N times = trace.cluster(timing_names::link_ratio, ratio);
  const N slowdown = trace.cluster(timing_names::slowdown, cluster.collective_slowdown);
  if (ratio >= 1) return slowdown * (times * measured);
  const N small =
      trace.looked_up(timing_names::measured_start,
                      measured_collective_seconds(table, op, ranks, timing_constants::small_message_bytes), file);
  const N start = min(measured, small);
  return slowdown * (start + times * (measured - start));
}

/// collective_seconds of timing.hpp: one call in which a GPU sends `sent` bytes.
template <class Trace, class N = NumberOf<Trace>>
N collective_time(const Trace& trace, const Cluster& cluster, Collective op, const RankGroup& group, N sent) {
  if (group.size <= 1 || value_of(sent) <= 0) return 0.0;
  if (op == Collective::send) {
    if (group.scope == Scope::intra_node) {
      return trace.cluster(timing_names::latency, cluster.intra_node.latency_s) +
             sent / intra_node_bandwidth(trace, cluster);
    }
    return trace.cluster(timing_names::nic_latency, cluster.inter_node.latency_s) +
           sent / inter_node_bandwidth(trace, cluster);
  }
  if (group.scope == Scope::intra_node && has_collective_table(cluster.gpu.collective_table)) {
    return measured_collective_time(trace, cluster, op, group, sent);
  }
  const GroupPath<N> path = group_path(trace, cluster, group);
  if (op == Collective::all_to_all && group.scope == Scope::inter_node) {
    const N ranks = static_cast<double>(group.size);
    const N remote = sent * (ranks - N(static_cast<double>(group.per_domain))) / (ranks - N(1.0));
    const N local = sent - remote;
    return path.latency + remote / inter_node_bandwidth(trace, cluster) + local / intra_node_bandwidth(trace, cluster);
  }
  const N passes = op == Collective::all_reduce ? 2.0 : 1.0;
  N seconds = passes * path.latency + sent / path.bandwidth;
  if (group.scope == Scope::intra_node) {
    seconds += passes * trace.input(timing_names::half_rate, timing_constants::half_rate_bytes) / path.bandwidth;
  }
  return seconds;
}

}  // namespace shardplan
