#include "calibration.hpp"

#include <algorithm>
#include <cmath>

#include "shardplan/physics/measured.hpp"
#include "shardplan/physics/timing.hpp"

namespace shardplan::io {
namespace {

/// exp(mean(log(value of a point))).
template <class Value>
double geometric_mean(const std::vector<EfficiencyPoint>& points, const Value& value) {
  double sum = 0;
  for (const EfficiencyPoint& point : points) sum += std::log(value(point));
  return std::exp(sum / static_cast<double>(points.size()));
}

void calibrate_gemm(const std::vector<EfficiencyPoint>& points, Gpu& gpu) {
  Gpu reference = gpu;
  reference.gemm.sustained = 1;
  std::vector<EfficiencyPoint> usable;
  for (const EfficiencyPoint& point : points) {
    if (gpu.peak(static_cast<Precision>(point.at[3])) > 0) usable.push_back(point);
  }
  if (usable.empty()) return;
  gpu.gemm.sustained = geometric_mean(usable, [&](const EfficiencyPoint& point) {
    const auto precision = static_cast<Precision>(point.at[3]);
    return gemm_seconds(reference, precision, point.at[0], point.at[1], point.at[2], 1) / point.value;
  });
  gpu.gemm.measured = true;
}

double attention_share(const std::vector<EfficiencyPoint>& points, const Gpu& gpu, double causal_flop) {
  const double peak = std::max(gpu.peak(Precision::bf16), gpu.peak(Precision::fp16));
  return geometric_mean(points, [&](const EfficiencyPoint& point) {
    const auto [batch, heads, length, width] = point.at;
    const double ramp = attention_shape_share(gpu, gpu.attention.s0, width, length, batch * heads);
    return causal_flop * batch * heads * length * length * width / (point.value * peak * ramp);
  });
}

void calibrate_attention(const MeasuredEfficiency& measured, Gpu& gpu) {
  if (std::max(gpu.peak(Precision::bf16), gpu.peak(Precision::fp16)) <= 0) return;
  AttentionEfficiency kernel = gpu.attention;
  const bool forward = !measured.attention_forward.empty();
  const bool backward = !measured.attention_backward.empty();
  if (forward) kernel.forward = attention_share(measured.attention_forward, gpu, 2);
  if (backward) kernel.backward = attention_share(measured.attention_backward, gpu, 5);
  if (!forward && !backward) return;
  for (AttentionEfficiency* own : {&gpu.attention, &gpu.attention_v1, &gpu.attention_v3}) {
    if (forward) own->forward = kernel.forward;
    if (backward) own->backward = kernel.backward;
    own->s0 = kernel.s0;
  }
}

Collective op_of(const EfficiencyPoint& point) noexcept {
  return measured_collective(static_cast<std::size_t>(point.at[2]));
}

/// The user's collectives inside a domain over those of the built-in table.
double mean_slowdown(const std::vector<EfficiencyPoint>& points, const Cluster& cluster) {
  const auto ratio = [&](const EfficiencyPoint& point) {
    const auto ranks = static_cast<long long>(point.at[0]);
    const Collective op = op_of(point);
    const double sent = sent_share(op, point.at[0]) * point.at[1];
    return point.value / collective_seconds(cluster, op, rank_group(ranks, ranks), sent);
  };
  return points.empty() ? 1 : geometric_mean(points, ratio);
}

void calibrate_links(const std::vector<EfficiencyPoint>& points, Cluster& cluster) {
  double inside = 0;
  double across = 0;
  std::vector<EfficiencyPoint> local;
  for (const EfficiencyPoint& point : points) {
    const double ranks = point.at[0];
    const double bus = point.at[1] * sent_share(op_of(point), ranks) / point.value;
    const double domain = cluster.scale_up_domain;
    if (ranks <= domain) {
      local.push_back(point);
      inside = std::max(inside, bus / cluster.intra_node.bandwidth);
    } else {
      across = std::max(across, bus / (cluster.inter_node.bandwidth * domain));
    }
  }
  if (has_collective_table(cluster.gpu.collective_table)) cluster.collective_slowdown = mean_slowdown(local, cluster);
  if (inside > 0) cluster.intra_node_efficiency = std::min(inside, 1.0);
  if (across > 0) {
    const std::size_t fabric = static_cast<std::size_t>(cluster.fabric);
    cluster.gpu.inter_node_efficiency[fabric] = std::min(across, 1.0);
    cluster.gpu.fabric_measured[fabric] = true;
  }
}

}  // namespace

void apply_measured(Cluster& cluster) {
  const MeasuredEfficiency& measured = cluster.measured;
  if (!measured.gemm.empty()) calibrate_gemm(measured.gemm, cluster.gpu);
  calibrate_attention(measured, cluster.gpu);
  calibrate_links(measured.collectives, cluster);
}

}  // namespace shardplan::io
