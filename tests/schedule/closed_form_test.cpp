// Two engines for one question: closed forms against the simulation.
#include "shardplan/schedule/closed_form.hpp"

#include "support.hpp"
#include "support/catch.hpp"

namespace {

using namespace test;

/// Times with what the closed forms ask for more often than chance would: equal stages, W <= B <= F, no messages.
Times likely_times(Random& random, const Shape& shape) {
  if (random.from(0, 3) == 0) return random.times(shape);
  int f = random.from(0, 40);
  int b = random.coin() ? f : random.from(0, 40);
  int w = random.coin() ? b : random.from(0, 40);
  if (random.coin()) {
    const int sum = f + b + w;
    const int most = std::max({f, b, w});
    const int least = std::min({f, b, w});
    f = most;
    w = least;
    b = sum - most - least;
  }
  return uniform_times(shape, f, b, w);
}

TEST_CASE("where a closed form answers, the simulation says the same") {
  const auto kind = static_cast<ScheduleKind>(GENERATE(range(0, static_cast<int>(kinds))));
  Random random(71 + static_cast<unsigned>(kind));
  PipelineWorkspace workspace;
  PipelineResult result;
  int answered = 0;
  int with_messages = 0;
  for (int round = 0; round < 3000; ++round) {
    const Shape shape = random.shape(kind);
    const Times times = likely_times(random, shape);
    PipelineSpec spec = times.spec(shape);
    spec.p2p = random.coin() ? 0 : random.from(1, 10);
    spec.p2p_mode = random.coin() ? P2pMode::overlap : P2pMode::exposed;
    spec.alpha = random.from(0, 4) / 4.0;
    CAPTURE(name(kind), shape.p, shape.m, shape.v, shape.group, spec.p2p, name(spec.p2p_mode), spec.alpha, round);
    CAPTURE(times.forward, times.backward, times.weight);
    simulate(spec, workspace, result);
    if (const auto makespan = makespan_closed_form(spec)) {
      ++answered;
      if (spec.p2p > 0) ++with_messages;
      REQUIRE(*makespan == result.makespan);
    }
    REQUIRE(makespan_lower_bound(spec) <= result.makespan);
    for (int rank = 0; rank < shape.p; ++rank) {
      REQUIRE(busy_closed_form(spec, rank) == result.busy[static_cast<std::size_t>(rank)]);
      if (const auto peak = peak_inflight_closed_form(shape, rank)) {
        REQUIRE(*peak == result.peak_inflight[static_cast<std::size_t>(rank)]);
      }
    }
  }
  CHECK(answered > 200);
  if (kind == ScheduleKind::one_f_one_b || kind == ScheduleKind::interleaved) CHECK(with_messages > 50);
}

TEST_CASE("the lower bound is the makespan where one stage is the bottleneck") {
  const Shape shape = shape_of(ScheduleKind::one_f_one_b, 4, 32);
  Times times = uniform_times(shape, 10, 10, 10);
  times.forward.back() = times.backward.back() = times.weight.back() = 13;  // an LM head
  PipelineWorkspace workspace;
  PipelineResult result;
  simulate(times.spec(shape), workspace, result);
  CHECK(result.makespan == 3 * 30 + 32 * 39);
  CHECK(makespan_lower_bound(times.spec(shape)) == result.makespan);
}

TEST_CASE("ideal bubble fractions") {
  struct Row {
    ScheduleKind kind;
    int p, m, v;
    double bubble;
  };
  const Row row = GENERATE(values<Row>({
      {ScheduleKind::naive, 4, 8, 1, 3.0 / 4},
      {ScheduleKind::gpipe, 4, 8, 1, 3.0 / 11},
      {ScheduleKind::one_f_one_b, 4, 8, 1, 3.0 / 11},
      {ScheduleKind::one_f_one_b, 4, 256, 1, 3.0 / 259},
      {ScheduleKind::interleaved, 4, 8, 2, 3.0 / 19},
      {ScheduleKind::bfs, 4, 8, 2, 3.0 / 19},
      {ScheduleKind::bfs, 4, 2, 2, 15.0 / 27},   // m < p: (9 - 4) T idle of 9 T
      {ScheduleKind::zb_h1, 4, 8, 1, 3.0 / 27},  // a third of 1F1B's idle time
      {ScheduleKind::zb_h2, 4, 8, 1, 3.0 / 27},  // no gap in a rank's span, but the barrier waits for the last rank
      {ScheduleKind::zb_v, 4, 8, 2, 3.0 / 51},
      {ScheduleKind::dualpipe, 8, 20, 1, 6.0 / 66},  // (p - 2) F of m T + (p - 2) F
      {ScheduleKind::dualpipe_v, 4, 8, 2, 6.0 / 54},
      {ScheduleKind::one_f_one_b, 1, 8, 1, 0},
  }));
  CAPTURE(name(row.kind), row.p, row.m, row.v);
  CHECK_THAT(ideal_bubble_fraction(row.kind, row.p, row.m, row.v), test::WithinAbs(row.bubble, 1e-14));
}

TEST_CASE("the ideal bubble is the simulated one, with and without a closed form") {
  const auto kind = static_cast<ScheduleKind>(GENERATE(range(0, static_cast<int>(kinds))));
  Random random(91 + static_cast<unsigned>(kind));
  PipelineWorkspace workspace;
  PipelineResult result;
  for (int round = 0; round < 100; ++round) {
    const Shape shape = random.shape(kind);
    CAPTURE(name(kind), shape.p, shape.m, shape.v);
    const Times times = uniform_times(shape, 1, 1, 1);
    const double ideal = ideal_bubble_fraction(shape, workspace, result);
    simulate(times.spec(shape), workspace, result);
    REQUIRE_THAT(ideal, test::WithinAbs(result.bubble_of_total(), 1e-14));
  }
}

}  // namespace
