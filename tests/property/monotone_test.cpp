// More data parallelism and more sharding never cost memory.
#include <algorithm>

#include "property/random_run.hpp"
#include "property/sample.hpp"
#include "support/catch.hpp"
#include "support/estimated.hpp"

using namespace shardplan;

namespace {

/// The same run with twice the data-parallel replicas and the same microbatches on each.
test::Overrides doubled(const Run& run) {
  return {{"/num_gpus", std::to_string(2 * run.num_gpus)},
          {"/parallel/data", std::to_string(2 * run.parallel.data)},
          {"/training/global_batch_size", std::to_string(2 * run.training.global_batch_size)}};
}

/// Bytes that live from step to step on the GPU.
std::int64_t states(const StageEstimate& stage) {
  const MemoryParts& parts = stage.moments[static_cast<std::size_t>(Moment::optimizer_step)];
  return parts.parameters + parts.gradients + parts.optimizer;
}

}  // namespace

TEST_CASE("textbook: more data parallelism never needs more memory") {
  test::Random random(11);
  int compared = 0;
  for (int i = 0; i < test::sample(3'000); ++i) {
    const std::string text = test::random_run(random, "textbook").dump();
    const io::ReadRun read = test::read_run(text);
    if (!read.ok()) continue;
    const io::ReadRun wider = test::read_run(text, doubled(read.run));
    if (!wider.ok()) continue;
    ++compared;
    Estimate narrow, wide;
    estimate(read.run, narrow);
    estimate(wider.run, wide);
    for (std::size_t s = 0; s < narrow.stages.size(); ++s) {
      INFO(text);
      CAPTURE(s);
      CHECK(wide.stages[s].peak().total() <= narrow.stages[s].peak().total());
    }
  }
  CHECK(compared > test::sample(1'000));
}

TEST_CASE("textbook: a ZeRO stage never needs more than the one before it") {
  test::Random random(12);
  int compared = 0;
  for (int i = 0; i < test::sample(3'000); ++i) {
    const std::string text = test::random_run(random, "textbook").dump();
    std::vector<std::int64_t> before;
    for (int stage = 0; stage <= 3; ++stage) {
      const io::ReadRun read = test::read_run(text, {{"/parallel/zero_stage", std::to_string(stage)}});
      if (!read.ok()) break;
      Estimate result;
      estimate(read.run, result);
      std::vector<std::int64_t> now;
      for (const StageEstimate& each : result.stages) now.push_back(each.peak().total());
      if (stage > 0) {
        ++compared;
        for (std::size_t s = 0; s < now.size(); ++s) {
          INFO(text);
          CAPTURE(stage, s);
          CHECK(now[s] <= before[s]);
        }
      }
      before = now;
    }
  }
  CHECK(compared > test::sample(3'000));
}

TEST_CASE("other frameworks: states never grow with data parallelism by more than one alignment unit") {
  test::Random random(13);
  int compared = 0;
  for (int i = 0; i < test::sample(6'000); ++i) {
    const std::string text = test::random_run(random).dump();
    const io::ReadRun read = test::read_run(text);
    // dp replicates; hybrid sharding is over its group, which follows the node unless it is stated.
    if (!read.ok() || read.run.training.framework == Framework::textbook || read.run.parallel.data < 2) continue;
    const io::ReadRun wider = test::read_run(text, doubled(read.run));
    if (!wider.ok()) continue;
    ++compared;
    Estimate narrow, wide;
    estimate(read.run, narrow);
    estimate(wider.run, wide);
    for (std::size_t s = 0; s < narrow.stages.size(); ++s) {
      // A shard is rounded up per unit (a layer, the ends), dense and experts apart, per state: to one element, with
      // Megatron's buffers to 128 elements.
      const std::int64_t units = 2 * (narrow.stages[s].layers + 3);
      const std::int64_t unit = read.run.training.framework == Framework::megatron ? 128 * 18 * 2 : 18 * units;
      INFO(text);
      CAPTURE(s);
      CHECK(states(wide.stages[s]) <= states(narrow.stages[s]) + unit);
    }
  }
  CHECK(compared > test::sample(1'000));
}

TEST_CASE("a larger micro batch never needs fewer activations, nor more microbatches a larger ideal bubble") {
  test::Random random(14);
  for (int i = 0; i < test::sample(2'000); ++i) {
    const std::string text = test::random_run(random).dump();
    const io::ReadRun read = test::read_run(text);
    if (!read.ok()) continue;
    const Training& training = read.run.training;
    Estimate before;
    estimate(read.run, before);
    INFO(text);
    const io::ReadRun larger =
        test::read_run(text, {{"/training/micro_batch_size", std::to_string(2 * training.micro_batch_size)},
                              {"/training/global_batch_size", std::to_string(2 * training.global_batch_size)}});
    if (larger.ok()) {
      Estimate after;
      estimate(larger.run, after);
      for (std::size_t s = 0; s < before.stages.size(); ++s) {
        const auto at = static_cast<std::size_t>(Moment::backward);
        CHECK(after.stages[s].moments[at].activations >= before.stages[s].moments[at].activations);
      }
    }
    const io::ReadRun longer =
        test::read_run(text, {{"/training/global_batch_size", std::to_string(2 * training.global_batch_size)}});
    if (longer.ok()) {
      Estimate after;
      estimate(longer.run, after);
      CHECK(after.pipeline.ideal_bubble_fraction <= before.pipeline.ideal_bubble_fraction + 1e-12);
    }
  }
}

TEST_CASE("what gpipe holds grows with its microbatches however many they are, what 1f1b holds does not") {
  const auto kept = [](const char* schedule, std::int64_t microbatches) {
    const io::ReadRun read = test::read_run(
        R"({"model":"llama-3.1-8b","cluster":"dgx-h100","num_gpus":8,"parallel":{"pipeline":4},
            "training":{"framework":"textbook","seq_length":128}})",
        {{"/parallel/schedule", std::string("\"") + schedule + "\""},
         {"/training/global_batch_size", std::to_string(2 * microbatches)}});
    INFO(test::problems_of(read));
    REQUIRE(read.ok());
    Estimate result;
    estimate(read.run, result);
    return static_cast<double>(result.stages[1].peak().activations);
  };
  // Beyond four million passes the steady state is extended, no longer simulated.
  constexpr std::int64_t few = 1 << 12, some = 1 << 13, many = 1 << 22;
  const double each = (kept("gpipe", some) - kept("gpipe", few)) / (some - few);
  CHECK(each > 1e6);
  CHECK(kept("gpipe", many) == Approx(kept("gpipe", few) + each * (many - few)).epsilon(1e-6));
  CHECK(kept("1f1b", many) == kept("1f1b", few));
}
