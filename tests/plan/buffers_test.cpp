// What lies on a rank besides states and activations, worked out by hand: FSDP's gathered units, DeepSpeed's pools,
// DDP's buckets, messages between stages.
#include "shardplan/plan/buffers.hpp"

#include "support/catch.hpp"
#include "support/made.hpp"

using namespace shardplan;

namespace {

/// Eight ranks of a stage of 10 layers of 100 elements, with 40 more at its ends (1,040 in all), 16-bit compute.
struct Rank {
  Run run;
  EstimateWorkspace w;
  Symbols<double> v;

  Rank() : run(test::made_run()) {
    run.model.kinds.resize(1);
    run.model.hidden_size = 8;
    run.num_gpus = 8;
    run.parallel.data = 8;
    run.training.global_batch_size = 8;
    run.training.micro_batch_size = 1;
    w.optimizer = find_optimizer("adamw");
    Stage stage;
    stage.layers = 10;
    stage.largest_layer = 100;
    stage.root = 40;
    stage.weights.dense.trained = 1040;
    w.stages = {stage};
    v = symbols_for(run, run.model.kinds.front());
  }

  StackMemory& memory() { return run.training.stack.memory; }
  Stage& stage() { return w.stages.front(); }
  Buffers buffers() { return buffers_of(NoTrace{}, run, v, w, stage()); }
};

void shard(Rank& rank, Framework framework, Fsdp fsdp, int version) {
  rank.run.training.framework = framework;
  rank.run.parallel.fsdp = fsdp;
  rank.run.parallel.fsdp_version = version;
  rank.w.rule.parameter_shards = 8;
}

void zero(Rank& rank, int stage) {
  rank.run.training.framework = Framework::deepspeed;
  rank.run.parallel.zero_stage = stage;
  rank.memory().live_parameters = 500;
  rank.memory().prefetch = 50;
  rank.memory().gather_bucket = 300;
  rank.memory().reduce_bucket = 200;
  rank.memory().reduce_buckets = 2;
}

struct Row {
  const char* why;
  void (*change)(Rank&);
  double gathered, at_loss, collectives, lasting;
};

const Row rows[] = {
    {"a single copy has none", [](Rank&) {}, 0, 0, 0, 0},
    {"FSDP: two layers of 100 and the root unit of 40, 2 bytes each; FSDP1 has freed the layer at the loss",
     [](Rank& rank) {
       shard(rank, Framework::fsdp, Fsdp::full_shard, 1);
       rank.memory().gathered_layers = 2;
     },
     2 * 200 + 80, 80, 0, 0},
    {"FSDP2 keeps the last layer for the backward pass",
     [](Rank& rank) {
       shard(rank, Framework::fsdp, Fsdp::full_shard, 2);
       rank.memory().gathered_layers = 2;
     },
     2 * 200 + 80, 280, 0, 0},
    {"a root unit that is not kept",
     [](Rank& rank) {
       shard(rank, Framework::fsdp, Fsdp::full_shard, 1);
       rank.memory().gathered_layers = 1;
       rank.memory().root_unit_gathered = false;
     },
     200, 80, 0, 0},
    {"SHARD_GRAD_OP keeps all 1,040 elements", [](Rank& rank) { shard(rank, Framework::fsdp, Fsdp::shard_grad_op, 2); },
     2080, 2080, 0, 0},
    {"an fp32 input of the reduce-scatter: a layer of 4 bytes",
     [](Rank& rank) {
       shard(rank, Framework::fsdp, Fsdp::full_shard, 2);
       rank.memory().gathered_layers = 2;
       rank.memory().fp32_reduce_scatter_input = true;
       rank.run.training.grad_dtype = DType::fp32;
     },
     2 * 200 + 80, 280, 400, 0},
    {"ZeRO-1: a bucket of 300 updated weights", [](Rank& rank) { zero(rank, 1); }, 0, 0, 600, 0},
    {"ZeRO-2: and two buckets of 200 gradients", [](Rank& rank) { zero(rank, 2); }, 0, 0, 600 + 2 * 400, 0},
    {"ZeRO-3: 500 live elements, the root, 50 fetched ahead, two buckets", [](Rank& rank) { zero(rank, 3); }, 1000 + 80,
     1080, 100 + 2 * 400, 0},
    {"pools hold no more than there is",
     [](Rank& rank) {
       zero(rank, 3);
       rank.memory().live_parameters = 1'000'000;
     },
     2080 + 80, 2160, 100 + 2 * 400, 0},
    {"DDP: buckets of all gradients, 4 bytes each, for good",
     [](Rank& rank) {
       rank.run.training.framework = Framework::ddp;
       rank.w.rule.gradient_bytes = 4;
     },
     0, 0, 4160, 4160},
    {"which gradients may be views of",
     [](Rank& rank) {
       rank.run.training.framework = Framework::ddp;
       rank.memory().gradient_bucket_views = true;
     },
     0, 0, 0, 0},
};

}  // namespace

TEST_CASE("buffers of a rank, worked out by hand") {
  for (const Row& row : rows) {
    CAPTURE(row.why);
    Rank rank;
    row.change(rank);
    const Buffers buffers = rank.buffers();
    CHECK(buffers.gathered == row.gathered);
    CHECK(buffers.gathered_at_loss == row.at_loss);
    CHECK(buffers.collectives == row.collectives);
    CHECK(buffers.lasting == row.lasting);
  }
}

TEST_CASE("a middle stage receives from two neighbours, an end from one") {
  Rank rank;
  rank.run.parallel.pipeline = 4;
  const double message = boundary_bytes(rank.run);
  CHECK(message > 0);
  CHECK(rank.buffers().collectives == 2 * message);
  rank.stage().has_embedding = true;
  CHECK(rank.buffers().collectives == message);
}
