// How long collectives and sends take, worked out by hand: 50 GB/s inside a node, 25 GB/s a GPU across nodes
// (support/made.hpp), latencies of 10 and 20 us.
#include "shardplan/physics/timing.hpp"
#include "support/catch.hpp"
#include "support/made.hpp"

using namespace shardplan;

namespace {

constexpr double near = 10e-6, far = 20e-6;
constexpr double node_step = 40e-6;  // for each doubling of the nodes
constexpr double half_rate = 2e6;    // bytes of a message that reaches half of NVLink's rate
constexpr RankGroup inside = {8, 8, Scope::intra_node};
constexpr RankGroup across = {4, 1, Scope::inter_node};      // one rank on each of four nodes
constexpr RankGroup two_nodes = {16, 8, Scope::inter_node};  // both nodes whole
constexpr RankGroup pairs = {8, 2, Scope::inter_node};       // two ranks on each of four nodes

struct Row {
  const char* why;
  Collective op;
  RankGroup group;
  double sent;
  double seconds;
};

const Row rows[] = {
    {"to a neighbour in the node", Collective::send, {2, 2, Scope::intra_node}, 1e9, near + 1e9 / 50e9},
    {"to a neighbour on another", Collective::send, {2, 1, Scope::inter_node}, 1e9, far + 1e9 / 25e9},
    {"one way around the ring", Collective::all_gather, inside, 1e9, near + 1e9 / 50e9 + half_rate / 50e9},
    {"the other way", Collective::reduce_scatter, inside, 1e9, near + 1e9 / 50e9 + half_rate / 50e9},
    {"both ways: two starts", Collective::all_reduce, inside, 1e9, 2 * near + 1e9 / 50e9 + 2 * half_rate / 50e9},
    {"every pair at once", Collective::all_to_all, inside, 1e9, near + 1e9 / 50e9 + half_rate / 50e9},
    {"four nodes are two doublings", Collective::all_gather, across, 1e9, far + 2 * node_step + 1e9 / 25e9},
    {"twice for both ways", Collective::all_reduce, across, 1e9, 2 * (far + 2 * node_step) + 1e9 / 25e9},
    {"two ranks of a node share the ring's crossing", Collective::all_gather, pairs, 1e9,
     far + 2 * node_step + 1e9 / (2 * 25e9)},
    {"eight NICs carry more than the links inside do", Collective::all_gather, two_nodes, 1e9,
     far + node_step + 1e9 / 50e9},
    {"of 15 peers 8 are on the other node", Collective::all_to_all, two_nodes, 1.5e9,
     far + node_step + 0.8e9 / 25e9 + 0.7e9 / 50e9},
    {"nobody to send to", Collective::all_reduce, {1, 1, Scope::none}, 1e9, 0},
    {"nothing to send", Collective::all_reduce, inside, 0, 0},
};

}  // namespace

TEST_CASE("a collective is the start of its passes and its bytes over the slowest link of its ring") {
  Cluster cluster = test::made_cluster();
  cluster.intra_node.latency_s = near;
  cluster.inter_node.latency_s = far;
  for (const Row& row : rows) {
    CAPTURE(row.why);
    CHECK_THAT(collective_seconds(cluster, row.op, row.group, row.sent), test::WithinRel(row.seconds, 1e-12));
  }
}

TEST_CASE("a ring's rank sends all of a tensor but its own share, an all-reduce twice") {
  CHECK(sent_share(Collective::all_gather, 4) == 0.75);
  CHECK(sent_share(Collective::reduce_scatter, 4) == 0.75);
  CHECK(sent_share(Collective::all_to_all, 4) == 0.75);
  CHECK(sent_share(Collective::all_reduce, 4) == 1.5);
  CHECK(sent_share(Collective::send, 4) == 1);
}
