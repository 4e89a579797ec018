// A step that is repeated on paper is the step that was simulated op by op.
#include <cmath>
#include <string>

#include "support.hpp"
#include "support/catch.hpp"

namespace {

using namespace test;

void check_equal(const std::vector<double>& fast, const std::vector<double>& whole, double scale) {
  REQUIRE(fast.size() == whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(fast[i] - whole[i]) <= 1e-9 * scale);
  }
}

void check_equal(const PipelineResult& fast, const PipelineResult& whole) {
  CHECK(std::abs(fast.makespan - whole.makespan) <= 1e-9 * whole.makespan);
  CHECK(std::abs(fast.max_span - whole.max_span) <= 1e-9 * whole.makespan);
  for (const auto times : {&PipelineResult::busy, &PipelineResult::idle, &PipelineResult::exposed_p2p,
                           &PipelineResult::first_start, &PipelineResult::last_end, &PipelineResult::grad_ready}) {
    check_equal(fast.*times, whole.*times, whole.makespan);
  }
  for (const auto held : {&PipelineResult::peak_inflight, &PipelineResult::peak_bytes, &PipelineResult::forward_bytes,
                          &PipelineResult::backward_bytes, &PipelineResult::peak_live}) {
    CHECK(fast.*held == whole.*held);
  }
}

/// A long step of any kind; times are whole, fractions, or nearly equal.
struct LongStep {
  Shape shape;
  Times times;
  PipelineSpec spec;

  LongStep(Random& random, ScheduleKind kind) {
    const auto m = [&] { return random.from(500, 6000); };
    shape = random.shape(kind, 8, 30);
    shape.m = m();
    while (shape.p < 2 || !is_legal(shape)) {
      shape = random.shape(kind, 8, 30);
      shape.m = m();
    }
    times = random.times(shape, 1);
    const int fineness = random.from(0, 2);
    for (std::vector<double>* const values : {&times.forward, &times.backward, &times.weight}) {
      for (double& value : *values) {
        if (fineness == 1) value *= 1.0 / 3.0 + 1e-4 * random.from(0, 999);
        if (fineness == 2) value = 20 + 1e-4 * value;
      }
    }
    spec = times.spec(shape);
    spec.p2p = random.coin() ? 0 : random.from(1, 40) / 3.0;
    spec.p2p_mode = random.coin() ? P2pMode::overlap : P2pMode::exposed;
    spec.alpha = random.from(0, 4) / 4.0;
    spec.retain = random.from(0, 4) / 4.0;
  }
};

}  // namespace

TEST_CASE("a steady state that is repeated on paper is the simulated one") {
  const auto kind = static_cast<ScheduleKind>(GENERATE(range(0, static_cast<int>(kinds))));
  Random random(71 + static_cast<unsigned>(kind));
  PipelineWorkspace workspace, other;
  PipelineResult fast, whole;
  int repeated = 0;
  constexpr int cases = 150;
  for (int i = 0; i < cases; ++i) {
    const LongStep step(random, kind);
    CAPTURE(name(kind), step.shape.p, step.shape.m, step.shape.v, step.shape.group, step.spec.p2p, i);
    if (!simulate_steady(step.spec, workspace, fast)) continue;
    ++repeated;
    simulate(step.spec, other, whole);
    check_equal(fast, whole);
  }
  const bool never = kind == ScheduleKind::naive || kind == ScheduleKind::gpipe || kind == ScheduleKind::bfs;
  CAPTURE(name(kind), repeated);
  if (never) {
    CHECK(repeated == 0);
  } else {
    CHECK(repeated > cases / 2);
  }
}

TEST_CASE("whole times stay whole in a step that is repeated on paper") {
  Random random(5);
  PipelineWorkspace workspace, other;
  PipelineResult fast, whole;
  for (int i = 0; i < 40; ++i) {
    Shape shape = shape_of(i % 2 == 0 ? ScheduleKind::one_f_one_b : ScheduleKind::zb_h1, random.from(2, 8), 5000);
    const Times times = random.times(shape, 1);
    const PipelineSpec spec = times.spec(shape);
    CAPTURE(i, shape.p);
    if (!simulate_steady(spec, workspace, fast)) continue;
    simulate(spec, other, whole);
    CHECK(fast.makespan == whole.makespan);
    CHECK(fast.busy == whole.busy);
    CHECK(fast.grad_ready == whole.grad_ready);
  }
}

TEST_CASE("a short step is simulated as it is") {
  const Shape shape = shape_of(ScheduleKind::one_f_one_b, 4, 64);
  const Times times = uniform_times(shape, 1, 1, 1);
  PipelineWorkspace workspace;
  PipelineResult result;
  CHECK_FALSE(simulate_steady(times.spec(shape), workspace, result));
}
