// Which ranks a group joins, and how many of them share a node.
#pragma once

#include <array>

#include "shardplan/core/run.hpp"
#include "shardplan/physics/collective.hpp"

namespace shardplan {

struct RankGroup {
  int size = 1;
  int per_domain = 1;  ///< members that share one scale-up (NVLink) domain
  Scope scope = Scope::none;
};

/// Every group of a layout. Ranks are numbered with the first axis of `parallel.order` fastest; the dense grid is
/// tensor x context x data x pipeline, the experts' is expert_tensor x expert x expert-data x pipeline over the same
/// ranks (Megatron-LM core/parallel_state.py).
struct Topology {
  std::array<RankGroup, 8> groups{};  ///< by GroupKind; data is the data x context group that shares dense weights
  RankGroup data_only;                ///< ranks with different data, one context rank each
  RankGroup shard;                    ///< one shard set: data x context, or parallel.shard_group of it
  RankGroup replicas;                 ///< the shard sets of one weight (hybrid sharding)

  const RankGroup& group(GroupKind kind) const noexcept { return groups[static_cast<std::size_t>(kind)]; }
};

/// A group of which at most `per_domain` members share a domain.
RankGroup rank_group(long long size, long long per_domain) noexcept;

Topology topology_of(const Run& run) noexcept;

}  // namespace shardplan
