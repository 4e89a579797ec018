// The user's own measurements in place of the built-in efficiencies.
#pragma once

#include <array>
#include <cstddef>

#include "shardplan/core/cluster.hpp"
#include "shardplan/physics/collective.hpp"

namespace shardplan::io {

/// What an entry of measured_collective_names is.
constexpr Collective measured_collective(std::size_t index) noexcept {
  constexpr std::array<Collective, measured_collective_names.size()> ops = {
      Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all};
  return ops[index];
}

/// Sets the efficiencies of the cluster's GPU and links so that the curves meet `measured`, kind by kind; a kind
/// without points keeps what it has.
///   gemm: `sustained` scales the curve to the mean of log(time) over the points.
///   attention: e_inf of forward and backward, of every flash kernel.
///   collectives: the best bus bandwidth of the points within a domain and across, over the links' own.
void apply_measured(Cluster& cluster);

}  // namespace shardplan::io
