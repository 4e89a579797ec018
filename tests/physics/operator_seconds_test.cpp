// How long products and operators take, worked out by hand on a GPU of round numbers (support/made.hpp): half of
// 1e15 FLOP/s is 5e12 FLOP/s for each of 100 multiprocessors; element-wise traffic reaches 0.8 of 1e12 B/s, and each
// such kernel starts in 3 us.
#include "shardplan/physics/timing.hpp"
#include "support/catch.hpp"
#include "support/made.hpp"

using namespace shardplan;

namespace {

constexpr double launch = 3e-6;

void check_time(double seconds, double expected) { CHECK_THAT(seconds, test::WithinRel(expected, 1e-12)); }

struct Product {
  const char* why;
  void (*change)(Gpu&);
  Precision precision;
  double m, n, k, batch;
  double seconds;
};

void nothing(Gpu&) {}

// 2560 rows are 10, 20 or 40 tiles of 256, 128 or 64; 1280 columns are 10 of 128. The tiles of 128 and 64 rows reach
// 0.97 and 0.93 of what those of 256 reach.
constexpr Product products[] = {
    {"100 tiles of 256 x 128, one on each multiprocessor", nothing, Precision::bf16, 2560, 1280, 10000, 1,
     2.0 * 256 * 128 * 10000 / 5e12},
    {"which is 2mnk over half of the peak", nothing, Precision::bf16, 2560, 1280, 10000, 1,
     2.0 * 2560 * 1280 * 10000 / 5e14},
    {"two of them", nothing, Precision::bf16, 2560, 1280, 10000, 2, 2 * 2.0 * 2560 * 1280 * 10000 / 5e14},
    {"a tile's start costs as 100 more k do", [](Gpu& gpu) { gpu.gemm.k0 = 100; }, Precision::bf16, 2560, 1280, 10000,
     1, 2.0 * 2560 * 1280 * 10100 / 5e14},
    {"one row more: 210 tiles of 128 rows are less than 110 of 256", nothing, Precision::bf16, 2561, 1280, 10000, 1,
     2.1 * 2 * 128 * 128 * 10000 / (0.97 * 5e12)},
    {"in whole waves 410 tiles of 64 rows are 5", [](Gpu& gpu) { gpu.gemm.wave_quantisation = 1; }, Precision::bf16,
     2561, 1280, 10000, 1, 5.0 * 2 * 64 * 128 * 10000 / (0.93 * 5e12)},
    {"and with a fifth of that rounding 0.2 x 5 + 0.8 x 4.1", [](Gpu& gpu) { gpu.gemm.wave_quantisation = 0.2; },
     Precision::bf16, 2561, 1280, 10000, 1, 4.28 * 2 * 64 * 128 * 10000 / (0.93 * 5e12)},
    {"four tiles of 64 rows leave 96 multiprocessors idle", nothing, Precision::bf16, 256, 128, 10000, 1,
     2.0 * 64 * 128 * 10000 / (0.93 * 5e12)},
    {"few rows: both inputs and the output through HBM", nothing, Precision::bf16, 100, 10000, 10000, 1,
     2.0 * (100.0 * 10000 + 10000.0 * 10000 + 100.0 * 10000) / 1e12},
    {"at half of its bandwidth", [](Gpu& gpu) { gpu.gemm.memory_fraction = 0.5; }, Precision::bf16, 100, 10000, 10000,
     1, 2.0 * (100.0 * 10000 + 10000.0 * 10000 + 100.0 * 10000) / 0.5e12},
    {"fp32: a tenth of the peak", nothing, Precision::fp32, 2560, 1280, 10000, 1, 2.0 * 2560 * 1280 * 10000 / 5e13},
    {"a start of 1 us, and half of the benchmark's rate over hours",
     [](Gpu& gpu) {
       gpu.gemm.launch_s = 1e-6;
       gpu.gemm.sustained = 0.5;
     },
     Precision::bf16, 2560, 1280, 10000, 1, (2.0 * 2560 * 1280 * 10000 / 5e14 + 1e-6) / 0.5},
    {"nothing to multiply", nothing, Precision::bf16, 0, 1280, 10000, 1, 0},
    {"a format that the GPU does not have", [](Gpu& gpu) { gpu.peak_flop_per_s = {}; }, Precision::bf16, 2560, 1280,
     10000, 1, 0},
};

/// A product of 1, 10 and 5 whole waves of tiles in its three directions: each takes 2mnk over half of the peak.
Operator<double> linear() {
  Operator<double> op;
  op.name = "linear";
  op.kind = OperatorKind::gemm;
  op.part = Part::mlp;
  op.m = 2560;
  op.n = 1280;
  op.k = 12800;
  op.batch = 1;
  op.parameters = op.n * op.k;
  op.weight_gradient_flop = 2 * op.m * op.n * op.k;
  return op;
}
constexpr double once = 2.0 * 2560 * 1280 * 12800 / 5e14;

struct Directions {
  const char* why;
  void (*change)(Run&, Operator<double>&);
  double forward, input_gradient, weight_gradient;
};

const Directions linears[] = {
    {"the same FLOP three times", [](Run&, Operator<double>&) {}, once, once, once},
    {"frozen weights have no gradient", [](Run&, Operator<double>& op) { op.trains = false; }, once, once, 0},
    {"adding to fp32 gradients slows the product down",
     [](Run& run, Operator<double>&) { run.training.stack.timing.weight_gradient_share = 0.5; }, once, once, 2 * once},
    // Forward 40 tiles of 64 x 128, one each; backward the bytes of the three matrices.
    {"of few rows, adding to fp32 gradients is 8 bytes an element", [](Run&, Operator<double>& op) { op.m = 256; },
     2.0 * 64 * 128 * 12800 / (0.93 * 5e12), 2.0 * (256.0 * 1280 + 1280.0 * 12800 + 256.0 * 12800) / 1e12,
     8.0 * 1280 * 12800 / 0.8e12 + launch},
    {"fp8: half the time, 4 bytes an element of a product's input to cast it; the gradient is 8 bytes an element",
     [](Run& run, Operator<double>&) {
       run.training.precision = Precision::fp8;
       run.training.fp8_recipe = Fp8Recipe::tensorwise;
     },
     once / 2 + 4.0 * 2560 * 12800 / 0.8e12, once / 2 + 4.0 * 2560 * 1280 / 0.8e12,
     8.0 * 1280 * 12800 / 0.8e12 + launch},
    {"a head stays in 16 bit",
     [](Run& run, Operator<double>& op) {
       run.training.precision = Precision::fp8;
       op.part = Part::head;
     },
     once, once, once},
    {"four experts: 1 us each, at half of one product's rate",
     [](Run& run, Operator<double>& op) {
       op.kind = OperatorKind::grouped_gemm;
       op.batch = 4;
       run.training.stack.timing.expert_start_s = 1e-6;
       run.training.stack.timing.grouped_product_share = 0.5;
     },
     4 * once / 0.5 + 4e-6, 4 * once / 0.5 + 4e-6, 4 * once / 0.5 + 4e-6},
    {"adapters of rank 16: rows of both sides through HBM, each direction",
     [](Run&, Operator<double>& op) {
       op.trains = false;
       op.adapter_parameters = 16 * (1280 + 12800);
       op.adapter_rank = 16;
     },
     once + 2.0 * 2560 * (1280 + 12800) / 0.8e12 + launch, once + 2.0 * 2560 * (1280 + 12800) / 0.8e12 + launch,
     2.0 * 2560 * (1280 + 12800) / 0.8e12 + launch},
    {"of rank 1000: 2mr(n + k) FLOP at half of the peak",
     [](Run&, Operator<double>& op) {
       op.trains = false;
       op.adapter_parameters = 1000 * (1280 + 12800);
       op.adapter_rank = 1000;
     },
     once + 2.0 * 2560 * 1000 * (1280 + 12800) / 5e14, once + 2.0 * 2560 * 1000 * (1280 + 12800) / 5e14,
     2.0 * 2560 * 1000 * (1280 + 12800) / 5e14},
};

Operator<double> elementwise(OperatorKind kind = OperatorKind::elementwise) {
  Operator<double> op;
  op.name = "activation";
  op.kind = kind;
  op.forward_bytes = 0.8e9;
  op.backward_bytes = 1.6e9;
  return op;
}

const Directions elementwise_rows[] = {
    {"bytes over 0.8e12 B/s, and a launch", [](Run&, Operator<double>&) {}, 1e-3 + launch, 2e-3 + launch, 0},
    {"kernels that move more", [](Run& run, Operator<double>&) { run.training.stack.timing.elementwise_factor = 1.5; },
     1.5e-3 + launch, 3e-3 + launch, 0},
    {"twice that without torch.compile",
     [](Run& run, Operator<double>&) {
       run.training.compile = false;
       run.training.stack.timing.elementwise_factor = 1.5;
       run.training.stack.timing.uncompiled_factor = 2;
     },
     3e-3 + launch, 6e-3 + launch, 0},
    {"permutations of tokens have a factor of their own",
     [](Run& run, Operator<double>& op) {
       op.kind = OperatorKind::routing;
       run.training.stack.timing.elementwise_factor = 1.5;
       run.training.stack.timing.permutation_factor = 3;
     },
     3e-3 + launch, 6e-3 + launch, 0},
    {"what moves nothing takes nothing", [](Run&, Operator<double>& op) { op.forward_bytes = op.backward_bytes = 0; },
     0, 0, 0},
};

/// 32 heads of 128 over 1000 tokens: scores and their product with the values, 4 s^2 d FLOP a head.
Operator<double> attention() {
  Operator<double> op;
  op.name = "core_attention";
  op.kind = OperatorKind::attention;
  op.part = Part::attention;
  op.m = op.n = 1000;
  op.k = 128;
  op.batch = 32;
  op.forward_flop = 32 * 4.0 * 1000 * 1000 * 128;
  op.input_gradient_flop = 2 * op.forward_flop;
  op.forward_bytes = 0.8e9;
  op.backward_bytes = 1.6e9;
  return op;
}
constexpr double scores = 32 * 4.0 * 1000 * 1000 * 128;

// A causal kernel computes half of the scores, forward at 0.5e15 FLOP/s; backward 2.5 times as many at 0.25e15.
const Directions attentions[] = {
    {"flash", [](Run&, Operator<double>&) {}, 0.5 * scores / 5e14 + launch, 2.5 * 0.5 * scores / 2.5e14 + launch, 0},
    {"half of the rate is reached at s0 tokens",
     [](Run& run, Operator<double>&) { run.cluster.gpu.attention.s0 = 1000; }, 2 * 0.5 * scores / 5e14 + launch,
     2 * 2.5 * 0.5 * scores / 2.5e14 + launch, 0},
    {"heads of 64 reach less",
     [](Run& run, Operator<double>& op) {
       op.k = 64;
       op.batch = 64;
       run.training.stack.timing.narrow_head_share = 0.5;
     },
     2 * 0.5 * scores / 5e14 + launch, 2 * 2.5 * 0.5 * scores / 2.5e14 + launch, 0},
    {"a window of 128 keys covers two tiles of 128", [](Run&, Operator<double>& op) { op.n = 128; },
     2 * 0.5 * scores / 5e14 + launch, 2 * 2.5 * 0.5 * scores / 2.5e14 + launch, 0},
    {"a ring of two: a launch a step, and one merge of 10 bytes an element",
     [](Run& run, Operator<double>&) { run.parallel.context = 2; },
     0.5 * scores / 5e14 + 2 * launch + 10.0 * 1000 * 32 * 128 / 0.8e12 + launch,
     2.5 * 0.5 * scores / 2.5e14 + 2 * launch + 10.0 * 1000 * 32 * 128 / 0.8e12 + launch, 0},
    {"eager: all scores in batched products at a quarter of the peak, and their bytes",
     [](Run& run, Operator<double>&) {
       run.training.attention = AttentionKernel::eager;
       run.training.stack.timing.batched_product_share = 0.25;
     },
     scores / 2.5e14 + 1e-3 + launch, 2 * scores / 2.5e14 + 2e-3 + launch, 0},
    {"heads that tensor cores cannot address run 10 times slower",
     [](Run& run, Operator<double>& op) {
       run.training.attention = AttentionKernel::eager;
       run.training.stack.timing.misaligned_head_slowdown = 10;
       op.k = 100;
     },
     10 * scores / 1e15 + 1e-3 + launch, 10 * 2 * scores / 1e15 + 2e-3 + launch, 0},
};

void check_directions(const Directions& row, Operator<double> op) {
  Run run = test::made_run();
  row.change(run, op);
  CAPTURE(row.why);
  const OperatorTime time = operator_seconds(run, op, 0.5);
  check_time(time.forward_s, row.forward);
  check_time(time.input_gradient_s, row.input_gradient);
  check_time(time.weight_gradient_s, row.weight_gradient);
}

/// What of a unit runs forward again: so many element-wise operators, products and attentions.
struct Again {
  const char* why;
  void (*change)(Training&);
  bool layer;
  double elementwise, products, attention;
};

// norm, linear, attention, linear, activation
const Again recomputations[] = {
    {"nothing", [](Training&) {}, false, 0, 0, 0},
    {"a checkpoint stops once it has the last product's input",
     [](Training& training) { training.recompute.mode = RecomputeMode::full; }, true, 1, 1, 1},
    {"a reentrant one runs the whole layer",
     [](Training& training) {
       training.recompute.mode = RecomputeMode::full;
       training.kernels.reentrant_checkpoint = true;
     },
     true, 2, 2, 1},
    {"of a segment of two layers, all of each",
     [](Training& training) {
       training.recompute.mode = RecomputeMode::every_k;
       training.recompute.n = 2;
     },
     true, 2, 2, 1},
    {"op-level: attention and every second product are kept",
     [](Training& training) { training.recompute.mode = RecomputeMode::ops; }, true, 2, 1, 0},
    {"selective: attention alone", [](Training& training) { training.recompute.mode = RecomputeMode::selective; },
     false, 0, 0, 1},
};

}  // namespace

TEST_CASE("a matrix product is tiles on multiprocessors, or bytes through HBM") {
  for (const Product& row : products) {
    Gpu gpu = test::made_gpu();
    row.change(gpu);
    CAPTURE(row.why);
    check_time(gemm_seconds(gpu, row.precision, row.m, row.n, row.k, row.batch), row.seconds);
  }
}

TEST_CASE("a linear operator is three products") {
  for (const Directions& row : linears) check_directions(row, linear());
}

TEST_CASE("an element-wise operator is the bytes that it moves") {
  for (const Directions& row : elementwise_rows) check_directions(row, elementwise());
}

TEST_CASE("attention is its scores at the kernel's rate") {
  for (const Directions& row : attentions) check_directions(row, attention());
}

TEST_CASE("a unit is its operators, and what of them runs again") {
  OperatorList<double> list;
  Operator<double> core = attention();
  core.rerun_by = Covered::core_attn;
  for (const Operator<double>& op : {elementwise(OperatorKind::norm), linear(), core, linear(), elementwise()}) {
    list.operators.add(op);
  }
  const double bytes_ahead = 1e-3 + launch, bytes_back = 2e-3 + launch;
  const double attention_ahead = 0.5 * scores / 5e14 + launch, attention_back = 2.5 * 0.5 * scores / 2.5e14 + launch;
  for (const Again& row : recomputations) {
    Run run = test::made_run();
    row.change(run.training);
    CAPTURE(row.why);
    const UnitTime unit = unit_seconds(run, list, 0.5, row.layer);
    check_time(unit.forward_s, 2 * bytes_ahead + 2 * once + attention_ahead);
    check_time(unit.backward_s, 2 * bytes_back + 4 * once + attention_back);
    check_time(unit.weight_gradient_s, 2 * once);
    check_time(unit.recompute_s, row.elementwise * bytes_ahead + row.products * once + row.attention * attention_ahead);
    check_time(unit.gemm_s, (6 + row.products) * once);
    check_time(unit.attention_s, (1 + row.attention) * attention_ahead + attention_back);
  }
}
