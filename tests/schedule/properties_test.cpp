// What must hold whatever the shape and the times.
#include <map>
#include <tuple>

#include "support.hpp"
#include "support/catch.hpp"

namespace {

using namespace test;

/// When F, B and W of one microbatch on one virtual stage ran, and where.
struct Pass {
  double start = -1, end = -1;
  int rank = -1;
  int times = 0;

  void set(double from, double to, int where) {
    start = from;
    end = to;
    rank = where;
    ++times;
  }
};
struct Passes {
  Pass f, b, w;
};
using Step = std::map<std::pair<int, int>, Passes>;  // by (microbatch, virtual stage)

Step passes_of(const Program& program, const Timeline& timeline) {
  Step step;
  for (int rank = 0; rank < program.shape.p; ++rank) {
    std::size_t at = timeline.first_op[static_cast<std::size_t>(rank)];
    for_each_op(program, rank, [&](const Op& op) {
      const double start = timeline.start[at];
      const double end = timeline.end[at++];
      Passes& own = step[{op.microbatch, op.stage}];
      switch (op.kind) {
        case OpKind::F: own.f.set(start, end, rank); break;
        case OpKind::B: own.b.set(start, end, rank); break;
        case OpKind::W: own.w.set(start, end, rank); break;
        case OpKind::BW:
          own.b.set(start, end, rank);
          own.w.set(start, end, rank);
          break;
        case OpKind::F_BW: {
          own.f.set(start, end, rank);
          Passes& other = step[{op.backward_microbatch, op.backward_stage}];
          other.b.set(start, end, rank);
          other.w.set(start, end, rank);
          break;
        }
      }
    });
  }
  return step;
}

struct Case {
  Shape shape;
  Times times;
  PipelineSpec spec;
};

Case random_case(Random& random, ScheduleKind kind) {
  Case c;
  c.shape = random.shape(kind);
  c.times = random.times(c.shape);
  c.spec = c.times.spec(c.shape);
  c.spec.p2p = random.coin() ? 0 : random.from(1, 40);
  c.spec.p2p_mode = random.coin() ? P2pMode::overlap : P2pMode::exposed;
  c.spec.alpha = random.from(0, 4) / 4.0;
  c.spec.retain = random.from(0, 4) / 4.0;
  return c;
}

TEST_CASE("every microbatch passes every stage once, in order, with its messages on time") {
  const auto kind = static_cast<ScheduleKind>(GENERATE(range(0, static_cast<int>(kinds))));
  Random random(11 + static_cast<unsigned>(kind));
  PipelineWorkspace workspace;
  PipelineResult result;
  Timeline timeline;
  for (int round = 0; round < 150; ++round) {
    const Case c = random_case(random, kind);
    const PipelineSpec& spec = c.spec;
    CAPTURE(name(kind), c.shape.p, c.shape.m, c.shape.v, c.shape.group, spec.p2p, spec.alpha, round);
    simulate(spec, workspace, result, timeline);
    Step step = passes_of(workspace.program, timeline);
    const int stages = c.shape.virtual_stages();
    REQUIRE(step.size() == static_cast<std::size_t>(stages) * static_cast<std::size_t>(c.shape.m));
    const auto arrives = [&](const Pass& from, const Pass& to) {
      return from.end + (from.rank == to.rank ? 0 : spec.p2p) <= to.start;
    };
    bool all_once = true;
    bool in_order = true;
    for (auto& [key, pass] : step) {
      const auto& [microbatch, stage] = key;
      all_once = all_once && pass.f.times == 1 && pass.b.times == 1 && pass.w.times == 1;
      in_order = in_order && pass.f.end <= pass.b.start && pass.b.start <= pass.w.start && pass.b.end <= pass.w.end;
      if (stage > 0) in_order = in_order && arrives(step[{microbatch, stage - 1}].f, pass.f);
      if (stage + 1 < stages) in_order = in_order && arrives(step[{microbatch, stage + 1}].b, pass.b);
    }
    REQUIRE(all_once);
    REQUIRE(in_order);
  }
}

TEST_CASE("a step simulated without its timeline is the same step") {
  const auto kind = static_cast<ScheduleKind>(GENERATE(range(0, static_cast<int>(kinds))));
  Random random(17 + static_cast<unsigned>(kind));
  PipelineWorkspace workspace, other;
  PipelineResult with, without;
  Timeline timeline;
  for (int round = 0; round < 100; ++round) {
    Case c = random_case(random, kind);
    for (double& time : c.times.forward) time += 1.0 / 3;  // sums that round
    CAPTURE(name(kind), c.shape.p, c.shape.m, c.shape.v, c.spec.p2p, round);
    simulate(c.spec, workspace, with, timeline);
    simulate(c.spec, other, without);
    CHECK(with.makespan == without.makespan);
    CHECK(with.max_span == without.max_span);
    CHECK(with.busy == without.busy);
    CHECK(with.idle == without.idle);
    CHECK(with.exposed_p2p == without.exposed_p2p);
    CHECK(with.first_start == without.first_start);
    CHECK(with.last_end == without.last_end);
    CHECK(with.grad_ready == without.grad_ready);
    CHECK(with.peak_bytes == without.peak_bytes);
  }
}

TEST_CASE("no rank does two things at once, and every op starts as soon as it can") {
  const auto kind = static_cast<ScheduleKind>(GENERATE(range(0, static_cast<int>(kinds))));
  Random random(23 + static_cast<unsigned>(kind));
  PipelineWorkspace workspace;
  PipelineResult result;
  Timeline timeline;
  for (int round = 0; round < 100; ++round) {
    const Case c = random_case(random, kind);
    CAPTURE(name(kind), c.shape.p, c.shape.m, c.shape.v, c.shape.group, c.spec.p2p, round);
    simulate(c.spec, workspace, result, timeline);
    Step step = passes_of(workspace.program, timeline);
    const bool exposed = c.spec.p2p_mode == P2pMode::exposed;
    const int stages = c.shape.virtual_stages();
    for (int rank = 0; rank < c.shape.p; ++rank) {
      std::size_t at = timeline.first_op[static_cast<std::size_t>(rank)];
      double free = 0;
      double busy = 0;
      double blocked = 0;
      bool tight = true;
      for_each_op(workspace.program, rank, [&](const Op& op) {
        const double start = timeline.start[at];
        const double end = timeline.end[at++];
        double earliest = free;
        bool sends = false;
        const auto wait_for = [&](const Pass& source) {
          earliest = std::max(earliest, source.end + (source.rank == rank ? 0 : c.spec.p2p));
        };
        const auto forward = [&](int microbatch, int stage) {
          if (stage > 0) wait_for(step[{microbatch, stage - 1}].f);
          if (stage + 1 < stages) sends = sends || step[{microbatch, stage + 1}].f.rank != rank;
        };
        const auto backward = [&](int microbatch, int stage) {
          if (stage + 1 < stages) wait_for(step[{microbatch, stage + 1}].b);
          if (stage > 0) sends = sends || step[{microbatch, stage - 1}].b.rank != rank;
        };
        if (op.kind == OpKind::F || op.kind == OpKind::F_BW) forward(op.microbatch, op.stage);
        if (op.kind == OpKind::B || op.kind == OpKind::BW) backward(op.microbatch, op.stage);
        if (op.kind == OpKind::F_BW) backward(op.backward_microbatch, op.backward_stage);
        tight = tight && start == earliest && end >= start;
        free = end;
        busy += end - start;
        if (exposed && sends) {
          free += c.spec.p2p;
          blocked += c.spec.p2p;
        }
      });
      const auto r = static_cast<std::size_t>(rank);
      REQUIRE(tight);
      REQUIRE(result.busy[r] == busy);
      REQUIRE(result.exposed_p2p[r] == blocked);
      REQUIRE(result.idle[r] == result.makespan - busy);
      REQUIRE(result.first_start[r] == timeline.start[timeline.first_op[r]]);
      REQUIRE(result.last_end[r] == timeline.end[timeline.first_op[r + 1] - 1]);
    }
  }
}

TEST_CASE("makespan, spans, gradients and work follow from the ops") {
  const auto kind = static_cast<ScheduleKind>(GENERATE(range(0, static_cast<int>(kinds))));
  Random random(37 + static_cast<unsigned>(kind));
  PipelineWorkspace workspace;
  PipelineResult result;
  Timeline timeline;
  for (int round = 0; round < 100; ++round) {
    Case c = random_case(random, kind);
    c.spec.alpha = 1;
    CAPTURE(name(kind), c.shape.p, c.shape.m, c.shape.v, round);
    simulate(c.spec, workspace, result, timeline);
    REQUIRE(result.makespan == *std::max_element(timeline.end.begin(), timeline.end.end()));
    double work = 0;
    for (std::size_t i = 0; i < c.times.forward.size(); ++i) {
      work += c.shape.m * (c.times.forward[i] + c.times.backward[i] + c.times.weight[i]);
    }
    REQUIRE(result.total_busy() == work);
    double span = 0;
    for (std::size_t r = 0; r < result.busy.size(); ++r)
      span = std::max(span, result.last_end[r] - result.first_start[r]);
    REQUIRE(result.max_span == span);

    Step step = passes_of(workspace.program, timeline);
    const int chunks = chunks_per_rank(c.shape);
    for (int rank = 0; rank < c.shape.p; ++rank) {
      for (int chunk = 0; chunk < chunks; ++chunk) {
        double ready = 0;
        for (int n = 0; n < microbatches_per_chunk(c.shape); ++n) {
          const int microbatch = forward_microbatch(c.shape, chunk, n);
          ready = std::max(ready, step[{microbatch, stage_of(c.shape, rank, chunk)}].w.end);
        }
        REQUIRE(result.grad_ready[static_cast<std::size_t>(rank * chunks + chunk)] == ready);
      }
    }

    // Recording changes nothing.
    PipelineResult plain;
    simulate(c.spec, workspace, plain);
    REQUIRE(plain.makespan == result.makespan);
    REQUIRE(plain.grad_ready == result.grad_ready);
  }
}

TEST_CASE("microbatches of the backward pass in the reverse order change no makespan where all are alike") {
  Random random(5);
  PipelineWorkspace workspace;
  PipelineResult fifo;
  PipelineResult lifo;
  for (int round = 0; round < 200; ++round) {
    const auto kind = random.coin() ? ScheduleKind::gpipe : ScheduleKind::bfs;
    Case c = random_case(random, kind);
    c.spec.shape.backward = BackwardOrder::fifo;
    simulate(c.spec, workspace, fifo);
    c.spec.shape.backward = BackwardOrder::lifo;
    simulate(c.spec, workspace, lifo);
    REQUIRE(fifo.makespan == lifo.makespan);
  }
}

TEST_CASE("whole numbers stay whole, up to 2^53") {
  const Shape shape = shape_of(ScheduleKind::one_f_one_b, 2, 3);
  const double big = 1e15;
  const Times times = uniform_times(shape, big, 1, 0);
  PipelineWorkspace workspace;
  PipelineResult result;
  simulate(times.spec(shape), workspace, result);
  CHECK(result.makespan == 4e15 + 4);
}

TEST_CASE("nothing to do takes no time") {
  const Shape shape = shape_of(ScheduleKind::zb_h1, 2, 3);
  const Times times = uniform_times(shape, 0, 0, 0);
  PipelineWorkspace workspace;
  PipelineResult result;
  simulate(times.spec(shape), workspace, result);
  CHECK(result.makespan == 0);
  CHECK(result.bubble_of_total() == 0);
  CHECK(result.bubble_of_ideal() == 0);
}

}  // namespace
