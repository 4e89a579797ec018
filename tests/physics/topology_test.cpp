// Which ranks a group joins, and how many of them share a node.
#include "shardplan/physics/topology.hpp"

#include "support/catch.hpp"
#include "support/runs.hpp"

using namespace shardplan;

TEST_CASE("the default order keeps tensor ranks in a node and spreads data and pipeline") {
  const Topology t = topology_of(test::run_of(
      R"({"num_gpus": 128, "parallel": {"tensor": 8, "pipeline": 4}, "training": {"global_batch_size": 64}})"));
  CHECK(t.group(GroupKind::tensor).scope == Scope::intra_node);
  CHECK(t.group(GroupKind::tensor).per_domain == 8);
  CHECK(t.group(GroupKind::data).size == 4);
  CHECK(t.group(GroupKind::data).scope == Scope::inter_node);
  CHECK(t.group(GroupKind::data).per_domain == 1);
  CHECK(t.group(GroupKind::pipeline).scope == Scope::inter_node);
}

TEST_CASE("order decides who is a neighbour") {
  const Topology t = topology_of(test::run_of(
      R"({"num_gpus": 32, "parallel": {"tensor": 4, "pipeline": 2, "order": "pp-tp-cp-ep-dp"},
          "training": {"global_batch_size": 64}})"));
  CHECK(t.group(GroupKind::pipeline).scope == Scope::intra_node);
  CHECK(t.group(GroupKind::tensor).scope == Scope::intra_node);
  CHECK(t.group(GroupKind::tensor).per_domain == 4);
  CHECK(t.group(GroupKind::data).per_domain == 1);
}

TEST_CASE("a scale-up domain may be wider than a node") {
  const char* run = R"({"cluster": "gb200-nvl72", "num_gpus": 64, "parallel": {"tensor": 16},
                        "training": {"framework": "megatron", "global_batch_size": 64}})";
  const Topology t = topology_of(test::run_of(run));
  CHECK(t.group(GroupKind::tensor).scope == Scope::intra_node);
  CHECK(t.group(GroupKind::tensor).per_domain == 16);
}

TEST_CASE("hybrid sharding: shard sets inside nodes, replicas across") {
  const Topology t =
      topology_of(test::run_of(R"({"num_gpus": 32, "parallel": {"fsdp": "hybrid_shard", "shard_group": 8}})"));
  CHECK(t.shard.size == 8);
  CHECK(t.shard.scope == Scope::intra_node);
  CHECK(t.replicas.size == 4);
  CHECK(t.replicas.scope == Scope::inter_node);
}
