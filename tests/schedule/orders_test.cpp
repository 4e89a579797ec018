// Op orders, spelled out for small shapes as the papers and frameworks draw them.
#include <string>

#include "support.hpp"
#include "support/catch.hpp"

namespace {

using namespace test;

struct Row {
  Shape shape;
  int rank;
  std::string order;
};

TEST_CASE("each schedule's order of a small pipeline") {
  const Row row = GENERATE(values<Row>({
      {shape_of(ScheduleKind::naive, 2, 2), 0, "F0@0 BW0@0 F1@0 BW1@0"},
      {shape_of(ScheduleKind::gpipe, 2, 2), 1, "F0@1 F1@1 BW0@1 BW1@1"},
      {{ScheduleKind::gpipe, 2, 3, 1, 0, BackwardOrder::lifo}, 0, "F0@0 F1@0 F2@0 BW2@0 BW1@0 BW0@0"},
      // arXiv:2104.04473 figure 3: warm-up p - 1 - rank, then one forward, one backward.
      {shape_of(ScheduleKind::one_f_one_b, 3, 4), 0, "F0@0 F1@0 F2@0 BW0@0 F3@0 BW1@0 BW2@0 BW3@0"},
      {shape_of(ScheduleKind::one_f_one_b, 3, 4), 2, "F0@2 BW0@2 F1@2 BW1@2 F2@2 BW2@2 F3@2 BW3@2"},
      {shape_of(ScheduleKind::one_f_one_b, 8, 2), 0, "F0@0 F1@0 BW0@0 BW1@0"},
      // Megatron-LM: 2 (p - 1 - rank) + (v - 1) N warm-up forwards.
      {shape_of(ScheduleKind::interleaved, 2, 4, 2), 1,
       "F0@1 F1@1 F0@3 BW0@3 F1@3 BW1@3 F2@1 BW0@1 F3@1 BW1@1 F2@3 BW2@3 F3@3 BW3@3 BW2@1 BW3@1"},
      {shape_of(ScheduleKind::interleaved, 2, 5, 2, 3), 1,  // groups of 3 and 2
       "F0@1 F1@1 F2@1 F0@3 BW0@3 F1@3 BW1@3 F2@3 BW2@3 F3@1 BW0@1 F4@1 BW1@1 F3@3 BW2@1 F4@3 BW3@3 BW4@3 BW3@1 BW4@1"},
      {shape_of(ScheduleKind::bfs, 2, 2, 2), 0, "F0@0 F1@0 F0@2 F1@2 BW0@2 BW1@2 BW0@0 BW1@0"},
      {{ScheduleKind::bfs, 2, 2, 2, 0, BackwardOrder::lifo}, 1, "F0@1 F1@1 F0@3 F1@3 BW1@3 BW0@3 BW1@1 BW0@1"},
      // arXiv:2401.10241 figure 3, top: 1F1B's warm-up plus one; W waits `rank` backwards.
      {shape_of(ScheduleKind::zb_h1, 3, 4), 0, "F0@0 F1@0 F2@0 B0@0 W0@0 F3@0 B1@0 W1@0 B2@0 W2@0 B3@0 W3@0"},
      {shape_of(ScheduleKind::zb_h1, 3, 4), 2, "F0@2 B0@2 F1@2 B1@2 F2@2 B2@2 W0@2 F3@2 B3@2 W1@2 W2@2 W3@2"},
      // Bottom: 2 (p - rank) - 1 warm-up forwards, W waits 2 x rank backwards.
      {shape_of(ScheduleKind::zb_h2, 2, 4), 0, "F0@0 F1@0 F2@0 B0@0 W0@0 F3@0 B1@0 W1@0 B2@0 W2@0 B3@0 W3@0"},
      {shape_of(ScheduleKind::zb_h2, 2, 4), 1, "F0@1 B0@1 F1@1 B1@1 F2@1 B2@1 W0@1 F3@1 B3@1 W1@1 W2@1 W3@1"},
      {shape_of(ScheduleKind::zb_v, 2, 3, 2), 1,
       "F0@1 F0@2 F1@1 F1@2 B0@2 W0@2 F2@1 B0@1 W0@1 F2@2 B1@2 W1@2 B1@1 B2@2 B2@1 W1@1 W2@2 W2@1"},
      {shape_of(ScheduleKind::zb_v, 2, 1, 2), 0, "F0@0 F0@3 B0@3 W0@3 B0@0 W0@0"},  // made for 3, 2 fall out
      // DualPipe, both halves of the ranks are mirror images.
      {shape_of(ScheduleKind::dualpipe, 2, 4), 0, "F0@0 F2@1 F1@0 BW2@1 F3@1&BW0@0 BW3@1 B1@0 W1@0"},
      {shape_of(ScheduleKind::dualpipe, 2, 4), 1, "F2@0 F0@1 F3@0 BW0@1 F1@1&BW2@0 BW1@1 B3@0 W3@0"},
      {shape_of(ScheduleKind::dualpipe_v, 1, 2, 2), 0, "F0@0 F0@1 F1@0 BW0@1 F1@1&BW0@0 BW1@1 B1@0 W1@0"},
  }));
  CAPTURE(name(row.shape.kind), row.rank);
  CHECK(order_of(row.shape, row.rank) == row.order);
}

TEST_CASE("virtual stages of a rank") {
  struct Place {
    Shape shape;
    int rank, chunk, stage;
  };
  const Place place = GENERATE(values<Place>({
      {shape_of(ScheduleKind::interleaved, 4, 8, 3), 1, 2, 9},
      {shape_of(ScheduleKind::zb_v, 4, 8, 2), 0, 1, 7},
      {shape_of(ScheduleKind::zb_v, 4, 8, 2), 3, 1, 4},
      {shape_of(ScheduleKind::dualpipe, 4, 8), 0, 1, 3},
      {shape_of(ScheduleKind::dualpipe, 4, 8), 2, 1, 1},
  }));
  CHECK(stage_of(place.shape, place.rank, place.chunk) == place.stage);
}

TEST_CASE("a program is as long as the schedule's description, not as the step") {
  Program program;
  write_program(shape_of(ScheduleKind::one_f_one_b, 4, 100000), program);
  CHECK(program.repeats.size() <= 4 * 3 + 1);
  CHECK(count_ops(program, 0) == 200000);
}

}  // namespace
