// Numbers of papers.
#include "support.hpp"
#include "support/catch.hpp"

namespace {

using namespace test;

// Bubble rates of arXiv:2401.10241 (1F1B, ZB-H1, ZB-H2) from its profiled times, milliseconds: 1 - m T / cost, where
// the cost is the longest span of a rank and T_comm is latency. Figures carried from the paper's two tables; that times
// of one table give the rates of the other to four decimals in all 36 cases vouches for both.
struct Rate {
  int p, m;
  double f, b, w, comm;
  double one_f_one_b, zb_h1, zb_h2;
};

TEST_CASE("the zero-bubble paper's bubble rates") {
  const Rate row = GENERATE(values<Rate>({
      // 1.5B
      {8, 24, 18.522, 18.086, 9.337, 0.601, 0.2431, 0.1585, 0.1083},
      {8, 32, 18.513, 18.086, 9.331, 0.626, 0.1985, 0.1242, 0.0837},
      {8, 64, 18.546, 18.097, 9.321, 0.762, 0.1240, 0.0674, 0.0444},
      // 6.2B
      {8, 24, 29.718, 29.444, 19.927, 0.527, 0.2347, 0.1323, 0.0698},
      {8, 32, 29.802, 29.428, 19.530, 0.577, 0.1898, 0.1045, 0.0559},
      {8, 64, 29.935, 29.621, 19.388, 0.535, 0.1091, 0.0554, 0.0294},
      // 14.6B
      {16, 48, 11.347, 11.248, 8.132, 0.377, 0.2552, 0.1397, 0.0672},
      {16, 64, 11.307, 11.254, 8.101, 0.379, 0.2082, 0.1088, 0.0516},
      {16, 128, 11.325, 11.308, 8.109, 0.378, 0.1251, 0.0576, 0.0266},
      // 28.3B
      {32, 96, 10.419, 10.207, 7.715, 0.408, 0.2646, 0.1421, 0.0641},
      {32, 128, 10.408, 10.204, 7.703, 0.408, 0.2168, 0.1106, 0.0490},
      {32, 256, 10.402, 10.248, 7.698, 0.460, 0.1352, 0.0594, 0.0257},
  }));
  CAPTURE(row.p, row.m, row.f);
  PipelineWorkspace workspace;
  PipelineResult result;
  const auto rate = [&](ScheduleKind kind) {
    const Shape shape = shape_of(kind, row.p, row.m);
    const Times times = uniform_times(shape, row.f, row.b, row.w);
    PipelineSpec spec = times.spec(shape);
    spec.p2p = row.comm;
    simulate(spec, workspace, result);
    return 1 - row.m * (row.f + row.b + row.w) / result.max_span;
  };
  CHECK_THAT(rate(ScheduleKind::one_f_one_b), test::WithinAbs(row.one_f_one_b, 0.5001e-4));
  CHECK_THAT(rate(ScheduleKind::zb_h1), test::WithinAbs(row.zb_h1, 0.5001e-4));
  CHECK_THAT(rate(ScheduleKind::zb_h2), test::WithinAbs(row.zb_h2, 0.5001e-4));
}

// arXiv:2401.10241 sections 2 and 6: with F = B = W the hand-made schedules leave a third of 1F1B's bubble, or none;
// memory is 1F1B's p stages, or 2p - 1. Of the span, that is: the optimizer step must not wait for the other ranks.
TEST_CASE("zero-bubble schedules with equal passes") {
  const int p = GENERATE(1, 2, 4, 8);
  const int m = 3 * p;
  PipelineWorkspace workspace;
  PipelineResult result;
  const auto run = [&](ScheduleKind kind, int v) {
    const Shape shape = shape_of(kind, p, m, v);
    const Times times = uniform_times(shape, 1, 1, 1);
    simulate(times.spec(shape), workspace, result);
    return result.max_span - 3.0 * m * v;
  };
  CHECK(run(ScheduleKind::one_f_one_b, 1) == 3 * (p - 1));
  CHECK(run(ScheduleKind::zb_h1, 1) == p - 1);
  CHECK(result.peak_inflight.front() == p);
  CHECK(run(ScheduleKind::zb_h2, 1) == 0);
  CHECK(result.peak_inflight.front() == 2 * p - 1);
  CHECK(run(ScheduleKind::zb_v, 2) == 0);
  CHECK(result.peak_inflight.front() == 2 * p);  // of half stages
}

// arXiv:2412.19437 table 2: the bubble is (p/2 - 1)(F&B + B - 3W) with B the full backward, where F = B_input, W is no
// longer and the pair gains nothing; activations are p + 1 microbatches.
TEST_CASE("DualPipe's bubble and memory") {
  const int p = GENERATE(2, 4, 8, 16);
  const double w = GENERATE(1.0, 2.0, 3.0);
  const double f = 3;
  const int m = 3 * p;
  const Shape shape = shape_of(ScheduleKind::dualpipe, p, m);
  const Times times = uniform_times(shape, f, f, w);
  PipelineWorkspace workspace;
  PipelineResult result;
  simulate(times.spec(shape), workspace, result);
  const double backward = f + w;
  const double bubble = (p / 2 - 1) * ((f + backward) + backward - 3 * w);
  for (std::size_t rank = 0; rank < result.idle.size(); ++rank) {
    CHECK(result.idle[rank] == bubble);
    CHECK(result.peak_inflight[rank] == p + 1);
  }
}

}  // namespace
