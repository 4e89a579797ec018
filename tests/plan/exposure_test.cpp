// What of communication a step waits for, worked out by hand: calls inside a layer, data-parallel calls behind passes
// and behind the pipeline's flush, sends between stages.
#include <algorithm>
#include <array>

#include "shardplan/plan/communication_formulas.hpp"
#include "shardplan/plan/layer_calls.hpp"
#include "support/catch.hpp"
#include "support/made.hpp"

using namespace shardplan;

namespace {

void check_time(double seconds, double expected) { CHECK_THAT(seconds, test::WithinRel(expected, 1e-12)); }

struct LayerCall {
  const char* why;
  CollectiveName name;
  void (*change)(Run&);
  double seconds, beside;
  bool backward;
  double exposed;
};

void nothing(Run&) {}

const LayerCall layer_calls[] = {
    {"a tensor-parallel all-reduce stands in the way", CollectiveName::tp_all_reduce, nothing, 5, 8, false, 5},
    {"of which overlap hides the stack's share", CollectiveName::tp_all_gather,
     [](Run& run) {
       run.training.overlap.tp = true;
       run.training.stack.timing.tp_hidden = 0.6;
     },
     5, 8, false, 2},
    {"gathered again beside the input gradient", CollectiveName::tp_regather, nothing, 5, 3, true, 2},
    {"but not in a forward pass that runs again", CollectiveName::tp_regather, nothing, 5, 3, false, 5},
    {"a ring's blocks come beside attention", CollectiveName::cp_send, nothing, 5, 3, false, 2},
    {"and are there in time", CollectiveName::cp_send, nothing, 5, 8, false, 0},
    {"heads that are exchanged are waited for", CollectiveName::cp_all_to_all, nothing, 5, 8, false, 5},
    {"so are tokens on their way to experts", CollectiveName::ep_all_to_all,
     [](Run& run) { run.training.stack.timing.expert_hidden = 0.5; }, 5, 8, false, 5},
    {"unless two chunks are woven: a share of what runs beside", CollectiveName::ep_all_to_all,
     [](Run& run) {
       run.parallel.schedule = ScheduleKind::interleaved;
       run.training.stack.timing.expert_hidden = 0.5;
     },
     5, 4, false, 3},
};

/// Four GPUs of made_cluster on four nodes: a starting time of two doublings, then 25 GB/s.
constexpr RankGroup ranks = {4, 1, Scope::inter_node};
constexpr double start = 2 * 40e-6;

/// One rank whose only microbatch runs forward for `forward` seconds and backward for `backward`; its step starts at
/// `first`, ends at `last`, and the pipeline's at `makespan`.
struct Passes {
  double forward = 1, backward = 2;
  double first = 0, last = 10, makespan = 10;
};

EstimateWorkspace workspace(const Passes& passes, int chunks = 1) {
  EstimateWorkspace w;
  w.spec.shape.v = chunks;
  Stage stage;
  stage.forward_s = passes.forward;
  stage.backward_s = passes.backward;
  w.stages = {stage};
  Chunk chunk;
  chunk.forward_s = passes.forward / chunks;
  chunk.backward_s = passes.backward / chunks;
  chunk.elements = 1e9;
  w.chunks.assign(static_cast<std::size_t>(chunks), chunk);
  w.simulated.makespan = passes.makespan;
  w.simulated.first_start = {passes.first};
  w.simulated.last_end = {passes.last};
  w.simulated.grad_ready.assign(static_cast<std::size_t>(chunks), passes.last);
  return w;
}

/// An all-gather of 4/3 x 1e9 bytes: each rank sends 1e9.
DataCall call(Hides hides) {
  DataCall out;
  out.name = "call";
  out.op = Collective::all_gather;
  out.ranks = ranks;
  out.bytes = 4e9 / 3;
  out.hides = hides;
  return out;
}
constexpr double once = start + 1e9 / 25e9;

struct Once {
  const char* why;
  Hides hides;
  bool overlaps;
  Passes passes;
  double exposed;
};

// Behind 0.6 of a microbatch's passes, but a tenth is always seen.
constexpr Once once_a_step[] = {
    {"without overlap all of it", Hides::behind_last_backward, false, {}, once},
    {"behind 0.6 x 3 s there is room", Hides::behind_last_backward, true, {}, 0.1 * once},
    {"0.6 x 0.05 s cover 0.03 s", Hides::behind_last_backward, true, {0.02, 0.03}, once - 0.03},
    {"the flush covers 5 ms more", Hides::behind_last_backward, true, {0.02, 0.03, 0, 9.995, 10}, once - 0.035},
    {"a flush of 1 s covers the rest", Hides::behind_last_backward, true, {0.02, 0.03, 0, 9, 10}, 0},
    {"gathers hide behind the first microbatch", Hides::behind_first_forward, true, {0.02, 0.03}, once - 0.03},
    {"and behind the pipeline's warm-up", Hides::behind_first_forward, true, {0.02, 0.03, 0.005}, once - 0.035},
};

}  // namespace

TEST_CASE("a pass waits for what of a layer's collectives does not run beside it") {
  for (const LayerCall& row : layer_calls) {
    Run run = test::made_run();
    row.change(run);
    CAPTURE(row.why);
    check_time(exposed_time(NoTrace{}, run, row.name, row.seconds, row.beside, row.backward), row.exposed);
  }
}

TEST_CASE("a dispatcher that knows nodes sends one copy of a token to each") {
  // Two nodes, two experts a token, spread evenly: 1 - 1/4 of the tokens go to a given node, with one copy of 2 x 1/2.
  CHECK_THAT(distinct_node_share(NoTrace{}, {16, 8, Scope::inter_node}, 2), test::WithinRel(0.75, 1e-12));
  // Eight of 64 on two nodes: nearly every token goes to both, with one copy for four.
  CHECK_THAT(distinct_node_share(NoTrace{}, {16, 8, Scope::inter_node}, 8),
             test::WithinRel((1 - 1.0 / 256) * 2 / 8, 1e-12));
  CHECK(distinct_node_share(NoTrace{}, {8, 8, Scope::intra_node}, 8) == 1);
  CHECK(distinct_node_share(NoTrace{}, {16, 8, Scope::inter_node}, 1) == 1);
}

TEST_CASE("once-a-step traffic hides behind one microbatch and the pipeline's ends") {
  const Run run = test::made_run();
  for (const Once& row : once_a_step) {
    DataCalls calls;
    calls.add(call(row.hides));
    calls.begin()->overlaps = row.overlaps;
    CAPTURE(row.why);
    cost_calls(run, workspace(row.passes), 0, calls);
    check_time(calls.begin()->seconds, once);
    check_time(calls.begin()->exposed, row.exposed);
  }
}

TEST_CASE("chunks reduce one after the other, each as its gradients are complete") {
  const Run run = test::made_run();
  EstimateWorkspace w = workspace({0.02, 0.03}, 2);
  w.chunks[1].elements = 3e9;  // of four
  w.simulated.grad_ready = {10, 9.99};
  DataCalls calls;
  calls.add(call(Hides::behind_last_backward));
  cost_calls(run, w, 0, calls);
  // Chunk 1 is first: from 9.99 - 0.6 x 0.025, three quarters. Chunk 0 could start at 10 - 0.6 x 0.025 and waits for
  // it.
  const double first = 9.99 - 0.015 + 0.75 * once;
  REQUIRE(first > 10 - 0.015);
  check_time(calls.begin()->exposed, first + 0.25 * once - 10);
}

TEST_CASE("per-layer traffic shares the links and the passes that it hides behind") {
  Run run = test::made_run();
  run.training.global_batch_size = 4;
  run.training.stack.timing.fsdp_hidden = 0.8;
  run.training.stack.timing.fsdp_contention = 0.1;
  DataCalls calls;
  for (const double scale : {1.0, 3.0}) {  // two gathers a pass, of 10 units each
    DataCall each = call(Hides::behind_each_forward);
    each.bytes *= scale;
    each.passes = 4;
    each.units = 10;
    each.hidden = 0.8;
    calls.add(each);
  }
  const double small = 4 * (10 * start + 1e9 / 25e9), large = 4 * (10 * start + 3e9 / 25e9), all = small + large;
  SECTION("all of it runs beside compute: a fifth is seen, and a tenth slows both down") {
    cost_calls(run, workspace({1, 2}), 0, calls);
    const double seen = 0.3 * all;
    check_time(calls.begin()[0].exposed, seen * small / all);
    check_time(calls.begin()[1].exposed, seen * large / all);
  }
  SECTION("four forward passes of 0.05 s cover 0.2 s of it") {
    cost_calls(run, workspace({0.05, 2}), 0, calls);
    const double seen = all - 0.2 + 0.3 * 0.2;
    check_time(calls.begin()[0].exposed, seen * small / all);
    check_time(calls.begin()[1].exposed, seen * large / all);
  }
  check_time(calls.begin()[0].seconds, small);
  check_time(calls.begin()[1].seconds, large);
}

TEST_CASE("a rank sends each microbatch's hidden state on, and its gradient back") {
  schedule::Shape shape;
  shape.p = 4;
  shape.m = 8;
  CHECK(boundary_sends(shape, 0) == 1);  // activations to rank 1
  CHECK(boundary_sends(shape, 1) == 2);  // and gradients to rank 0
  CHECK(boundary_sends(shape, 3) == 1);  // gradients alone
  shape.v = 2;                           // two chunks, rank 3 hands its first on to rank 0
  shape.kind = ScheduleKind::interleaved;
  CHECK(boundary_sends(shape, 0) == 3);
  CHECK(boundary_sends(shape, 1) == 4);
  CHECK(boundary_sends(shape, 3) == 3);
  shape.kind = ScheduleKind::zb_v;  // the turn stays on rank 3, both ends are on rank 0
  CHECK(boundary_sends(shape, 0) == 2);
  CHECK(boundary_sends(shape, 3) == 2);
  shape.p = 1;
  CHECK(boundary_sends(shape, 0) == 0);
}

TEST_CASE("a send is b s h in 16 bit, cut by sequence parallelism, over the link to the neighbour") {
  Run run = test::made_run();
  run.model.hidden_size = 2000;
  run.model.kinds.resize(1);
  run.training.micro_batch_size = 5;  // 5 x 1000 tokens x 2000 x 2 B = 20 MB
  run.parallel.tensor = 4;
  run.parallel.pipeline = 2;
  Topology topology;
  topology.groups[static_cast<std::size_t>(GroupKind::pipeline)] = {2, 1, Scope::inter_node};
  run.training.framework = Framework::deepspeed;
  check_time(boundary_bytes(run), 20e6);
  check_time(send_time(NoTrace{}, run, topology), 20e6 / 25e9);
  // Megatron-LM scatters the message over tensor ranks and gathers it on arrival.
  run.training.framework = Framework::megatron;
  check_time(send_time(NoTrace{}, run, topology), 5e6 / 25e9);
  run.parallel.sequence_parallel = true;
  check_time(boundary_bytes(run), 5e6);
  check_time(send_time(NoTrace{}, run, topology), 5e6 / 25e9);
  topology.groups[static_cast<std::size_t>(GroupKind::pipeline)] = {2, 2, Scope::intra_node};
  run.cluster.intra_node.latency_s = 10e-6;
  check_time(send_time(NoTrace{}, run, topology), 10e-6 + 5e6 / 50e9);
}
