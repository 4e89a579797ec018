// What one simulated step costs. Budgets: 1F1B p=16 m=256 within 100 us, interleaved p=64 m=1024 v=4 within 5 ms, at
// most 5 ns an op (per_op counts an F&B pair as the two passes that it is).
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "shardplan/schedule/closed_form.hpp"
#include "shardplan/schedule/simulate.hpp"

namespace {

using namespace shardplan;
using namespace shardplan::schedule;

/// Stages that differ a little, as real ones do: no closed form would apply.
struct Stages {
  std::vector<double> forward, backward, weight;

  explicit Stages(const Shape& shape) {
    for (int i = 0; i < shape.virtual_stages(); ++i) {
      forward.push_back(100 + i % 7);
      backward.push_back(110 + i % 5);
      weight.push_back(90 + i % 3);
    }
  }
  PipelineSpec spec(const Shape& shape) const {
    PipelineSpec spec;
    spec.shape = shape;
    spec.forward = forward;
    spec.backward = backward;
    spec.weight = weight;
    spec.p2p = 3;
    return spec;
  }
};

double passes(const Program& program) {
  double count = 0;
  for (int rank = 0; rank < program.shape.p; ++rank) {
    for (const Repeat* repeat = program.begin(rank); repeat != program.end(rank); ++repeat) {
      for (const Slot& slot : *repeat) count += repeat->count * (slot.kind == OpKind::F_BW ? 2.0 : 1.0);
    }
  }
  return count;
}

void simulate_step(benchmark::State& state, ScheduleKind kind, int p, int m, int v) {
  const Shape shape{kind, p, m, v, 0, BackwardOrder::fifo};
  const Stages stages(shape);
  const PipelineSpec spec = stages.spec(shape);
  PipelineWorkspace workspace;
  PipelineResult result;
  simulate(spec, workspace, result);
  for ([[maybe_unused]] auto _ : state) {
    simulate(spec, workspace, result);
    benchmark::DoNotOptimize(result.makespan);
  }
  const double ops = passes(workspace.program);
  state.counters["ops"] = ops;
  state.counters["per_op"] =
      benchmark::Counter(ops, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// The op order written anew each time, as a search does that moves from shape to shape.
void write_order(benchmark::State& state, ScheduleKind kind, int p, int m, int v) {
  const Shape shape{kind, p, m, v, 0, BackwardOrder::fifo};
  Program program;
  for ([[maybe_unused]] auto _ : state) {
    write_program(shape, program);
    benchmark::DoNotOptimize(program.repeats.data());
  }
  state.counters["entries"] = static_cast<double>(program.repeats.size());
}

void closed_form(benchmark::State& state) {
  const Shape shape{ScheduleKind::gpipe, 16, 256, 1, 0, BackwardOrder::fifo};
  const Stages stages(shape);
  const PipelineSpec spec = stages.spec(shape);
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(makespan_closed_form(spec));
}

BENCHMARK_CAPTURE(simulate_step, 1f1b_p4_m256, ScheduleKind::one_f_one_b, 4, 256, 1);
BENCHMARK_CAPTURE(simulate_step, 1f1b_p16_m256, ScheduleKind::one_f_one_b, 16, 256, 1)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(simulate_step, interleaved_p64_m1024_v4, ScheduleKind::interleaved, 64, 1024, 4)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(simulate_step, naive_p16_m256, ScheduleKind::naive, 16, 256, 1)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(simulate_step, gpipe_p16_m256, ScheduleKind::gpipe, 16, 256, 1)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(simulate_step, bfs_p16_m256_v4, ScheduleKind::bfs, 16, 256, 4)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(simulate_step, zb_h1_p16_m256, ScheduleKind::zb_h1, 16, 256, 1)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(simulate_step, zb_h2_p16_m256, ScheduleKind::zb_h2, 16, 256, 1)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(simulate_step, zb_v_p16_m256, ScheduleKind::zb_v, 16, 256, 2)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(simulate_step, dualpipe_p16_m256, ScheduleKind::dualpipe, 16, 256, 1)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(simulate_step, dualpipe_v_p16_m256, ScheduleKind::dualpipe_v, 16, 256, 2)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(write_order, 1f1b_p16_m256, ScheduleKind::one_f_one_b, 16, 256, 1);
BENCHMARK_CAPTURE(write_order, interleaved_p64_m1024_v4, ScheduleKind::interleaved, 64, 1024, 4)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(closed_form);

}  // namespace

BENCHMARK_MAIN();
