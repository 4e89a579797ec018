// How long the optimizer's step and offloading take, worked out by hand: element-wise traffic of 0.8e12 B/s, 3 us a
// kernel (support/made.hpp); 50 GB/s to the host.
#include "shardplan/plan/optimizer_formulas.hpp"
#include "support/catch.hpp"
#include "support/made.hpp"

using namespace shardplan;

namespace {

constexpr double launch = 3e-6;

void check_time(double seconds, double expected) { CHECK_THAT(seconds, test::WithinRel(expected, 1e-12)); }

/// One rank that trains 1e9 elements: bf16 weights and gradients, fp32 master copies and moments.
EstimateWorkspace workspace() {
  EstimateWorkspace w;
  w.optimizer = find_optimizer("adamw");
  w.spec.shape.m = 1;
  Stage stage;
  stage.weights.dense.trained = 1e9;
  w.stages = {stage};
  w.chunks.resize(1);
  return w;
}

struct Step {
  const char* why;
  void (*change)(Run&, EstimateWorkspace&);
  double seconds;
};

Stage& stage_of(EstimateWorkspace& w) { return w.stages.front(); }

// AdamW reads a gradient of 2 bytes and writes a weight of 2; master copy and moments are read and written: 4 and 8
// twice. 28 bytes are what a stack's 40 were measured with.
const Step steps[] = {
    {"40 bytes a parameter through HBM", [](Run&, EstimateWorkspace&) {}, 40e9 / 0.8e12 + launch},
    {"and the start of the stack's step",
     [](Run& run, EstimateWorkspace&) { run.training.stack.timing.optimizer_fixed_s = 0.01; },
     40e9 / 0.8e12 + launch + 0.01},
    {"eight ranks share it", [](Run&, EstimateWorkspace& w) { w.rule.optimizer_shards = 8; }, 5e9 / 0.8e12 + launch},
    {"experts are shared by fewer",
     [](Run&, EstimateWorkspace& w) {
       stage_of(w).weights.expert.trained = 4e9;
       w.rule.optimizer_shards = 8;
       w.rule.expert_optimizer_shards = 2;
     },
     40 * (1e9 / 8 + 4e9 / 2) / 0.8e12 + launch},
    {"without moments 12 of 28 bytes", [](Run&, EstimateWorkspace& w) { w.rule.moment_bytes = 0; },
     40e9 * 12 / 28 / 0.8e12 + launch},
    {"moments of one byte each: 16 of 28", [](Run&, EstimateWorkspace& w) { w.rule.moment_bytes = 2; },
     40e9 * 16 / 28 / 0.8e12 + launch},
    {"AdamW without master copies is what it is compared with",
     [](Run&, EstimateWorkspace& w) { w.rule.master_bytes = 0; }, 40e9 / 0.8e12 + launch},
    {"moments that are counted tensor by tensor: 4 bytes, 20 of 28",
     [](Run&, EstimateWorkspace& w) {
       w.optimizer = find_optimizer("paged-adamw-32bit");
       stage_of(w).states.moments = 4e9;
     },
     40e9 * 20 / 28 / 0.8e12 + launch},
    {"of frozen weights nothing", [](Run&, EstimateWorkspace& w) { stage_of(w).weights.dense.trained = 0; }, 0},
    {"adapters have widths of their own: 2 + 2 x 4 + 2 x 8 where there is no master copy",
     [](Run& run, EstimateWorkspace& w) {
       run.training.peft.method = PeftMethod::lora;
       stage_of(w).weights.dense = {};
       stage_of(w).weights.dense.adapters = 1e6;
     },
     40e6 / 0.8e12 + launch},
    {"one layer at a time",
     [](Run&, EstimateWorkspace& w) {
       w.optimizer = find_optimizer("badam");
       w.rule.optimizer_shards = 2;
       stage_of(w).largest_layer = 1e8;
       stage_of(w).states.moments = 8 * 0.5e8;
     },
     20e8 / 0.8e12 + launch},
    {"a quarter stays on the card",
     [](Run& run, EstimateWorkspace&) {
       run.training.offload.optimizer = OffloadDevice::cpu;
       run.training.offload.optimizer_fraction = 0.75;
     },
     10e9 / 0.8e12 + launch},
    {"products of matrices are dealt out",
     [](Run&, EstimateWorkspace& w) {
       w.rule.optimizer_shards = 4;
       w.rule.expert_optimizer_shards = 2;
       stage_of(w).total.matrix_step = {0.8, 0.2, 0.1};
     },
     10e9 / 0.8e12 + launch + 0.8 / 4 + 0.2 / 2},
    {"but none is cut",
     [](Run&, EstimateWorkspace& w) {
       w.rule.optimizer_shards = 4;
       stage_of(w).total.matrix_step = {0.8, 0, 0.5};
     },
     10e9 / 0.8e12 + launch + 0.5},
};

struct Offloaded {
  const char* why;
  void (*change)(Run&, EstimateWorkspace&);
  double paged;
  double gradients, step, passes;
};

const Offloaded offloads[] = {
    {"nothing", [](Run&, EstimateWorkspace&) {}, 0, 0, 0, 0},
    // 2 GB of gradients down; 28 bytes a parameter for each of eight GPUs' CPU steps; 2 GB of weights up.
    {"the optimizer on the host: 200 GB/s of memory where the cluster does not say",
     [](Run& run, EstimateWorkspace&) { run.training.offload.optimizer = OffloadDevice::cpu; }, 0, 2e9 / 50e9,
     28e9 * 8 / 200e9 + 2e9 / 50e9, 0},
    {"half of it, beside 400 GB/s",
     [](Run& run, EstimateWorkspace&) {
       run.training.offload.optimizer = OffloadDevice::cpu;
       run.training.offload.optimizer_fraction = 0.5;
       run.cluster.host.memory_bandwidth = 400e9;
     },
     0, 1e9 / 50e9, 14e9 * 8 / 400e9 + 1e9 / 50e9, 0},
    {"a faster way to the host",
     [](Run& run, EstimateWorkspace&) {
       run.training.offload.optimizer = OffloadDevice::cpu;
       run.cluster.host.pcie_bandwidth = 100e9;
     },
     0, 2e9 / 100e9, 28e9 * 8 / 200e9 + 2e9 / 100e9, 0},
    {"its states on NVMe: 12 bytes a parameter in and out, all GPUs of a node at once",
     [](Run& run, EstimateWorkspace&) {
       run.training.offload.optimizer = OffloadDevice::nvme;
       run.cluster.host.nvme_bandwidth = 20e9;
     },
     0, 2e9 / 50e9, 28e9 * 8 / 200e9 + 2e9 / 50e9 + 2 * 12e9 * 8 / 20e9, 0},
    {"weights, read for both passes of four microbatches",
     [](Run& run, EstimateWorkspace& w) {
       run.training.offload.parameters = OffloadDevice::cpu;
       run.training.global_batch_size = 4;
       stage_of(w).states.parameters = 2e9;
     },
     0, 0, 0, 2 * 4 * 2e9 / 50e9},
    {"from NVMe, which is slower for eight",
     [](Run& run, EstimateWorkspace& w) {
       run.training.offload.parameters = OffloadDevice::nvme;
       run.cluster.host.nvme_bandwidth = 40e9;
       stage_of(w).states.parameters = 2e9;
     },
     0, 0, 0, 2 * 2e9 * 8 / 40e9},
    {"activations of two microbatches out and back, of three layers in four",
     [](Run& run, EstimateWorkspace& w) {
       run.training.offload.activations = OffloadDevice::cpu;
       run.training.offload.activation_layers = 3;
       w.spec.shape.m = 2;
       stage_of(w).layers = 4;
       w.chunks[0].kept = 1e9;
     },
     0, 0, 0, 2 * 2 * 1e9 * 0.75 / 50e9},
    {"pages that leave the card and come back", [](Run&, EstimateWorkspace&) {}, 5e9, 0, 2 * 5e9 / 50e9, 0},
};

struct Wait {
  const char* why;
  double gradients, step, passes;
  double waits;
};

// Ten seconds of compute hide five of gradients and eight of the rest.
constexpr Wait waits[] = {
    {"gradients behind half of the compute", 5, 0, 0, 0}, {"two seconds longer", 7, 0, 0, 2},
    {"the step hides behind nothing", 0, 3, 0, 3},        {"weights and activations behind 0.8 of it", 0, 0, 8, 0},
    {"all of them too long", 7, 3, 9, 2 + 3 + 1},
};

}  // namespace

TEST_CASE("the optimizer's step is bytes through HBM, and the products of its update") {
  for (const Step& row : steps) {
    Run run = test::made_run();
    EstimateWorkspace w = workspace();
    row.change(run, w);
    CAPTURE(row.why);
    check_time(optimizer_seconds(run, w, stage_of(w)), row.seconds);
  }
}

TEST_CASE("offloading moves states, weights and activations over PCIe, host memory and NVMe") {
  for (const Offloaded& row : offloads) {
    Run run = test::made_run();
    run.num_gpus = 8;
    EstimateWorkspace w = workspace();
    row.change(run, w);
    CAPTURE(row.why);
    const OffloadWorkOf<double> work = offload_work(NoTrace{}, run, w, 0, row.paged);
    check_time(work.gradients, row.gradients);
    check_time(work.step, row.step);
    check_time(work.passes, row.passes);
  }
}

TEST_CASE("what of offloading the step waits for") {
  for (const Wait& row : waits) {
    OffloadWorkOf<double> work;
    work.gradients = row.gradients;
    work.step = row.step;
    work.passes = row.passes;
    CAPTURE(row.why);
    check_time(offload_time(NoTrace{}, work, 10.0), row.waits);
  }
}

TEST_CASE("states leave the card where the peak has no room for them") {
  Stage stage;
  stage.states.paged = 8e9;
  StageEstimate memory;
  memory.reserved_bytes = 70'000'000'000;
  Run run = test::made_run();
  CHECK(paged_out(run, stage, memory, 80e9) == 0);
  CHECK(paged_out(run, stage, memory, 75e9) == 3e9);
  CHECK(paged_out(run, stage, memory, 60e9) == 8e9);
  run.training.offload.optimizer = OffloadDevice::cpu;  // they live on the host anyway
  CHECK(paged_out(run, stage, memory, 60e9) == 0);
}
