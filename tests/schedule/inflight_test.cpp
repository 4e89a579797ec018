// Activations held: the fold over repeats against a walk over every op, and that all are freed.
#include "support.hpp"
#include "support/catch.hpp"

namespace {

using namespace test;

/// Walks every op of a rank. Numbers are multiples of a quarter, so sums are exact.
struct Walk {
  double count = 0, bytes = 0, peak_count = 0, peak_bytes = 0;
  std::vector<double> live, at_peak, forward_bytes, backward_bytes;

  Walk(const PipelineSpec& spec, const Program& program, int rank) {
    const auto chunks = static_cast<std::size_t>(chunks_per_rank(spec.shape));
    live.assign(chunks, 0);
    at_peak = forward_bytes = backward_bytes = live;
    const auto change = [&](int chunk, double by) {
      const auto c = static_cast<std::size_t>(chunk);
      const auto stage = static_cast<std::size_t>(stage_of(spec.shape, rank, chunk));
      live[c] += by;
      count += by;
      bytes += by * (spec.activation_bytes.empty() ? 1 : spec.activation_bytes[stage]);
    };
    const auto forward = [&](int chunk) {
      change(chunk, 1);
      auto& most = forward_bytes[static_cast<std::size_t>(chunk)];
      most = std::max(most, bytes);
      peak_count = std::max(peak_count, count);
      if (bytes > peak_bytes) {
        peak_bytes = bytes;
        at_peak = live;
      }
    };
    const auto backward = [&](int chunk, double freed) {
      auto& most = backward_bytes[static_cast<std::size_t>(chunk)];
      most = std::max(most, bytes);
      change(chunk, -freed);
    };
    for_each_op(program, rank, [&](const Op& op) {
      switch (op.kind) {
        case OpKind::F: forward(op.chunk); break;
        case OpKind::B: backward(op.chunk, 1 - spec.retain); break;
        case OpKind::W: change(op.chunk, -spec.retain); break;
        case OpKind::BW: backward(op.chunk, 1); break;
        case OpKind::F_BW:
          forward(op.chunk);
          backward(op.backward_chunk, 1);
          break;
      }
    });
  }
};

TEST_CASE("peaks by repeats are the peaks op by op, and every activation is freed") {
  const auto kind = static_cast<ScheduleKind>(GENERATE(range(0, static_cast<int>(kinds))));
  Random random(51 + static_cast<unsigned>(kind));
  PipelineWorkspace workspace;
  PipelineResult result;
  for (int round = 0; round < 150; ++round) {
    const Shape shape = random.shape(kind);
    const Times times = random.times(shape);
    PipelineSpec spec = times.spec(shape);
    if (random.coin()) spec.activation_bytes = {};
    spec.retain = random.from(0, 4) / 4.0;
    CAPTURE(name(kind), shape.p, shape.m, shape.v, shape.group, spec.retain, round);
    simulate(spec, workspace, result);
    const auto chunks = static_cast<std::size_t>(chunks_per_rank(shape));
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(shape.p); ++rank) {
      const Walk walk(spec, workspace.program, static_cast<int>(rank));
      REQUIRE(walk.count == 0);
      REQUIRE(walk.bytes == 0);
      REQUIRE(result.peak_inflight[rank] == walk.peak_count);
      REQUIRE(result.peak_bytes[rank] == walk.peak_bytes);
      for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
        const std::size_t i = rank * chunks + chunk;
        REQUIRE(result.peak_live[i] == walk.at_peak[chunk]);
        REQUIRE(result.forward_bytes[i] == walk.forward_bytes[chunk]);
        REQUIRE(result.backward_bytes[i] == walk.backward_bytes[chunk]);
      }
    }
  }
}

TEST_CASE("a heavy chunk decides when the peak is") {
  // Rank 0 of two with two chunks: its second chunk weighs ten times the first.
  const Shape shape = shape_of(ScheduleKind::interleaved, 2, 8, 2);
  Times times = uniform_times(shape, 1, 1, 1);
  times.bytes = {1, 1, 10, 10};
  PipelineWorkspace workspace;
  PipelineResult result;
  simulate(times.spec(shape), workspace, result);
  CHECK(result.peak_inflight[0] == 5);  // 2 (p - 1) + (v - 1) p + 1
  CHECK(result.peak_live[0] + result.peak_live[1] <= 5);
  CHECK(result.peak_bytes[0] == result.peak_live[0] * 1 + result.peak_live[1] * 10);
  CHECK(result.peak_bytes[0] == 23);  // 3 of the light chunk, 2 of the heavy one
}

}  // namespace

TEST_CASE("activations folded alone are those of the simulation, however many rounds are alike") {
  const auto kind = static_cast<ScheduleKind>(GENERATE(range(0, static_cast<int>(kinds))));
  Random random(91 + static_cast<unsigned>(kind));
  PipelineWorkspace workspace;
  PipelineResult simulated, folded;
  for (int round = 0; round < 200; ++round) {
    const Shape shape = random.shape(kind, 6, 150);
    Times times = random.times(shape);
    if (random.coin()) std::fill(times.bytes.begin(), times.bytes.end(), 3.0);
    if (random.coin()) times.bytes.front() = 0.1;  // no whole number: nothing may be left out
    const PipelineSpec spec = times.spec(shape);
    simulate(spec, workspace, simulated);
    fold_activations(spec, workspace, folded);
    CAPTURE(name(kind), shape.p, shape.m, shape.v, shape.group);
    CHECK(folded.peak_inflight == simulated.peak_inflight);
    CHECK(folded.peak_bytes == simulated.peak_bytes);
    CHECK(folded.forward_bytes == simulated.forward_bytes);
    CHECK(folded.backward_bytes == simulated.backward_bytes);
    CHECK(folded.peak_live == simulated.peak_live);
  }
}
