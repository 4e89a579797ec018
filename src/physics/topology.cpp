#include "shardplan/physics/topology.hpp"

#include <algorithm>

namespace shardplan {
namespace {

/// Distance in ranks between neighbours of each axis.
struct Strides {
  std::array<long long, 5> of{};
};

Strides strides(const std::array<Axis, 5>& order, const std::array<long long, 5>& sizes) noexcept {
  Strides result;
  long long stride = 1;
  for (const Axis axis : order) {
    result.of[static_cast<std::size_t>(axis)] = stride;
    stride *= sizes[static_cast<std::size_t>(axis)];
  }
  return result;
}

int members_in_domain(long long stride, long long size, int domain) noexcept {
  if (stride >= domain) return 1;
  return static_cast<int>(std::clamp<long long>(domain / stride, 1, size));
}

}  // namespace

RankGroup rank_group(long long size, long long per_domain) noexcept {
  RankGroup group;
  group.size = static_cast<int>(size);
  group.per_domain = static_cast<int>(std::min(size, per_domain));
  group.scope = size <= 1 ? Scope::none : group.per_domain >= group.size ? Scope::intra_node : Scope::inter_node;
  return group;
}

Topology topology_of(const Run& run) noexcept {
  const Parallel& parallel = run.parallel;
  const int domain = std::min(std::max(run.cluster.scale_up_domain, 1), run.num_gpus);
  const long long t = parallel.tensor, c = parallel.context, d = parallel.data, p = parallel.pipeline;
  const long long x = parallel.expert_tensor, e = parallel.expert;
  const auto at = [](Axis axis) { return static_cast<std::size_t>(axis); };
  std::array<long long, 5> dense{};
  dense[at(Axis::tensor)] = t;
  dense[at(Axis::context)] = c;
  dense[at(Axis::expert)] = 1;
  dense[at(Axis::data)] = d;
  dense[at(Axis::pipeline)] = p;
  const Strides stride = strides(parallel.order, dense);
  const long long expert_data = std::max<long long>(1, t * c * d / std::max<long long>(1, x * e));
  std::array<long long, 5> experts{};
  experts[at(Axis::tensor)] = x;
  experts[at(Axis::context)] = 1;
  experts[at(Axis::expert)] = e;
  experts[at(Axis::data)] = expert_data;
  experts[at(Axis::pipeline)] = p;
  const Strides expert_stride = strides(parallel.order, experts);

  Topology topology;
  const auto set = [&](GroupKind kind, long long size, long long per_domain) {
    topology.groups[static_cast<std::size_t>(kind)] = rank_group(size, per_domain);
  };
  const auto dense_members = [&](Axis axis) { return members_in_domain(stride.of[at(axis)], dense[at(axis)], domain); };
  const auto expert_members = [&](Axis axis) {
    return members_in_domain(expert_stride.of[at(axis)], experts[at(axis)], domain);
  };
  const long long context_members = dense_members(Axis::context), data_members = dense_members(Axis::data);
  set(GroupKind::tensor, t, dense_members(Axis::tensor));
  set(GroupKind::context, c, context_members);
  set(GroupKind::pipeline, p, dense_members(Axis::pipeline));
  set(GroupKind::data, d * c, context_members * data_members);
  set(GroupKind::expert, e, expert_members(Axis::expert));
  set(GroupKind::expert_tensor, x, expert_members(Axis::tensor));
  set(GroupKind::expert_data, expert_data, expert_members(Axis::data));
  // First and last stage: together only where the whole pipeline lies in a domain.
  set(GroupKind::embedding, p > 1 ? 2 : 1, dense_members(Axis::pipeline) >= p ? 2 : 1);
  topology.data_only = rank_group(d, data_members);
  const long long shard_size = parallel.fsdp == Fsdp::hybrid_shard
                                   ? std::clamp<long long>(parallel.shard_group, 1, d * c)
                               : parallel.fsdp == Fsdp::no_shard ? 1
                                                                 : d * c;
  topology.shard = rank_group(shard_size, context_members * data_members);
  const long long sets = d * c / shard_size;
  topology.replicas = rank_group(sets, std::max<long long>(1, context_members * data_members / shard_size));
  return topology;
}

}  // namespace shardplan
