// How long operators and collectives take on a cluster.
//
// An operator: max(FLOP / (peak x efficiency of its shape), bytes / (0.8 x HBM bandwidth)) + launch.
// A collective: latency of its steps + bytes a GPU sends over the bandwidth that its group sees.
#pragma once

#include "shardplan/core/cluster.hpp"
#include "shardplan/core/run.hpp"
#include "shardplan/physics/operator.hpp"
#include "shardplan/physics/topology.hpp"

namespace shardplan {

/// batch products of (m x k)(k x n) in the run's compute precision. Seconds.
double gemm_seconds(const Gpu& gpu, Precision precision, double m, double n, double k, double batch) noexcept;

/// How flash attention's rate at a shape compares with that of long sequences and many heads of size 128: the measured
/// table where there is one, continued by s / (s + s0), else that alone.
double attention_shape_share(const Gpu& gpu, double s0, double head_dim, double length, double heads) noexcept;

/// `bytes` through HBM. Seconds.
double memory_seconds(const Gpu& gpu, double bytes) noexcept;

/// One call in which a GPU sends `sent` bytes of a `message`-byte tensor. Seconds.
double collective_seconds(const Cluster& cluster, Collective op, const RankGroup& group, double sent) noexcept;

/// Forward, backward and recomputed time of one unit (a layer or an end) for one microbatch, without communication.
template <class N>
struct UnitTimeOf {
  N forward_s{};
  N backward_s{};  ///< both gradients
  N recompute_s{};
  N weight_gradient_s{};  ///< of backward_s, the part that a split backward can postpone
  N gemm_s{};             ///< of forward + backward + recompute
  N attention_s{};
};
using UnitTime = UnitTimeOf<double>;

/// Seconds of one operator: forward, gradient of the input, gradient of the weights.
template <class N>
struct OperatorTimeOf {
  N forward_s{};
  N input_gradient_s{};
  N weight_gradient_s{};
};
using OperatorTime = OperatorTimeOf<double>;

OperatorTime operator_seconds(const Run& run, const Operator<double>& op, double causal_share) noexcept;

/// `causal_share`: share of the full score matrix that a causal flash kernel computes.
UnitTime unit_seconds(const Run& run, const OperatorList<double>& list, double causal_share,
                      bool layer_recomputed) noexcept;

}  // namespace shardplan
