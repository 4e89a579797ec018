// Halving against looking at every value.
#include "shardplan/plan/solve.hpp"

#include <optional>

#include "property/random_run.hpp"
#include "property/sample.hpp"
#include "shardplan/plan/search.hpp"
#include "support/catch.hpp"
#include "support/estimated.hpp"
#include "support/runs.hpp"

using namespace shardplan;
using plan::Holds;

namespace {

/// The last value that holds, by looking at all, and the legal one after it.
plan::Solution by_looking(const plan::SolveValues& values, bool largest,
                          const std::function<Holds(std::int64_t)>& test) {
  plan::Solution solution;
  std::optional<std::int64_t> first_legal;
  for (std::int64_t k = 0; k < values.count(); ++k) {
    const std::int64_t value = values.at(largest ? k : values.count() - 1 - k);
    const Holds holds = test(value);
    if (holds == Holds::illegal) continue;
    if (!first_legal) first_legal = value;
    if (holds == Holds::yes) {
      solution.value = value;
      solution.next.reset();
    } else if (!solution.next) {
      solution.next = value;
    }
  }
  if (!solution.value) solution.next = first_legal;
  return solution;
}

}  // namespace

TEST_CASE("halving finds what looking at every value finds") {
  test::Random random(77);
  for (int i = 0; i < 2'000; ++i) {
    plan::SolveValues values;
    values.step = 1 + random.below(7);
    values.first = values.step;
    values.last = values.step * random.below(60);
    const std::int64_t limit = values.step * random.below(70);
    const std::int64_t from = random.chance(30) ? values.step * random.below(50) : 0;
    const bool gaps = random.chance(20);
    const auto test = [&](std::int64_t value) {
      if (gaps && value % 5 == 2) return Holds::illegal;
      if (value > limit) return Holds::no;
      return value < from ? Holds::not_here : Holds::yes;
    };
    CAPTURE(values.step, values.last, limit, from, gaps);
    const plan::Solution solution = plan::solve(values, true, true, test);
    const plan::Solution expected = by_looking(values, true, test);
    CHECK(solution.value == expected.value);
    if (expected.value) CHECK(solution.next == expected.next);
    CHECK(solution.next.has_value() == expected.next.has_value());
  }
}

TEST_CASE("the smallest value, of a list") {
  plan::SolveValues values;
  values.values = {1, 2, 4, 8, 16};
  const auto test = [](std::int64_t value) {
    return value == 2 ? Holds::illegal : value >= 4 ? Holds::yes : Holds::no;
  };
  const plan::Solution solution = plan::solve(values, false, false, test);
  CHECK(solution.value == 4);
  CHECK(solution.next == 1);
  CHECK(solution.scanned);
}

TEST_CASE("what is missed has the digits that tell it from its limit") {
  Run run = test::run_of("{}");
  Estimate result;
  estimate(run, result);
  run.require.min_mfu = result.throughput.mfu + 2e-6;
  run.require.max_step_s = result.time.step_s * (1 - 1e-7);
  run.require.max_gpu_hours_per_1e12_tokens = result.throughput.gpu_hours_per_1e12_tokens * (1 - 1e-6);
  const std::string words = plan::missed(run, result);
  CAPTURE(words);
  const auto number = [&](const char* after) {
    const std::size_t at = words.find(after);
    REQUIRE(at != std::string::npos);
    return std::stod(words.substr(at + std::string(after).size()));
  };
  CHECK(number("MFU ") < number("min_mfu "));
  CHECK(number("step ") > number("max_step_s "));
  const double hours = std::stod(words.substr(words.rfind(", ", words.find(" GPU-hours")) + 2));
  CHECK(hours > number("max_gpu_hours_per_1e12_tokens "));
}

TEST_CASE("no value at all") {
  plan::SolveValues values;
  values.first = 8;
  values.last = 4;
  const plan::Solution solution = plan::solve(values, true, true, [](std::int64_t) { return Holds::yes; });
  CHECK_FALSE(solution.value);
  CHECK_FALSE(solution.next);
}

TEST_CASE("longer sequences, larger batches, more layers and higher ranks never need less memory") {
  // What halving takes for granted of these fields.
  test::Random random(5);
  int compared = 0;
  const std::vector<std::pair<const char*, std::int64_t (*)(const Run&)>> fields = {
      {"/training/seq_length", [](const Run& run) { return run.training.seq_length; }},
      {"/training/global_batch_size", [](const Run& run) { return run.training.global_batch_size; }},
      {"/model/num_hidden_layers", [](const Run& run) { return run.model.layers(); }},
      {"/training/peft/rank", [](const Run& run) { return std::int64_t{run.training.peft.rank}; }}};
  for (int i = 0; i < test::sample(3'000); ++i) {
    const std::string text = test::random_run(random).dump();
    const io::ReadRun read = test::read_run(text);
    if (!read.ok()) continue;
    const auto& [pointer, value] = fields[static_cast<std::size_t>(random.below(4))];
    if (std::string(pointer) == "/training/peft/rank" && !read.run.training.peft.active()) continue;
    // A repeated batch keeps the same work in flight; activation_layers and counted recomputation follow the layers.
    const bool counted = read.run.training.recompute.n > 0;
    const bool offloads = read.run.training.offload.activations != OffloadDevice::none;
    if (std::string(pointer) == "/model/num_hidden_layers" && (counted || offloads)) continue;
    const io::ReadRun larger = test::read_run(text, {{pointer, std::to_string(2 * value(read.run))}});
    if (!larger.ok()) continue;
    Estimate before, after;
    estimate(read.run, before);
    estimate(larger.run, after);
    INFO(text);
    CAPTURE(pointer);
    CHECK(after.headroom_bytes <= before.headroom_bytes);
    // A short sequence's kernels wait for the host: there the step may even shrink.
    if (std::string(pointer) != "/training/seq_length") {
      CHECK(after.time.step_s >= before.time.step_s * (1 - 1e-12));
    }
    ++compared;
  }
  CHECK(compared > test::sample(500));
}
