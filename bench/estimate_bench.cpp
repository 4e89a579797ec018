// What one estimate costs in a process that is warm, and the steps around it. The label says how many allocations an
// iteration makes.
#include <benchmark/benchmark.h>

#include <fstream>
#include <iterator>
#include <string>

#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/run_file.hpp"
#include "shardplan/plan/workspace.hpp"
#include "support/counting_new.hpp"

namespace {

using namespace shardplan;

std::string text_of(const std::string& run) {
  std::ifstream in(SHARDPLAN_SOURCE_DIR "/configs/runs/" + run + ".json", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void count_allocations(benchmark::State& state, long before) {
  state.counters["allocations"] =
      benchmark::Counter(static_cast<double>(test::allocations() - before), benchmark::Counter::kAvgIterations);
}

/// The physics: a legal run in, an estimate out.
void estimate_warm(benchmark::State& state, const std::string& name) {
  const io::ReadRun read = io::read_run(io::run_input_from_json(text_of(name)), catalog::builtin_catalog());
  if (!read.ok()) {
    state.SkipWithError("not a legal run");
    return;
  }
  EstimateWorkspace workspace;
  Estimate result;
  estimate(read.run, workspace, result);
  const long before = test::allocations();
  for ([[maybe_unused]] auto _ : state) {
    estimate(read.run, workspace, result);
    benchmark::DoNotOptimize(result.time.step_s);
  }
  count_allocations(state, before);
}

/// From the text of a run file to a legal run: parsing, catalog, defaults, legality.
void read_run(benchmark::State& state, const std::string& name) {
  const std::string text = text_of(name);
  const long before = test::allocations();
  for ([[maybe_unused]] auto _ : state) {
    io::ReadRun read = io::read_run(io::run_input_from_json(text), catalog::builtin_catalog());
    benchmark::DoNotOptimize(read.run);
  }
  count_allocations(state, before);
}

BENCHMARK_CAPTURE(estimate_warm, default_run, "llama-3.1-70b-128xh100")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(estimate_warm, no_pipeline, "llama-65b-2048xa100")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(estimate_warm, fsdp, "llama-3.1-8b-128xh100-fsdp2")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(estimate_warm, mixture_of_experts, "mixtral-8x7b-64xh100")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(estimate_warm, long_pipeline, "gpt-1t-512xa100")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(read_run, default_run, "llama-3.1-70b-128xh100")->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
