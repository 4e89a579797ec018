#include <string>
#include <vector>

#include "support.hpp"
#include "support/catch.hpp"

namespace {

using namespace test;

struct Row {
  Shape shape;
  ShapeField field;
  std::vector<int> nearest;
  std::string rule;  ///< a part of it
};

TEST_CASE("what is illegal, which number is wrong, what would be right") {
  const Row row = GENERATE(values<Row>({
      {shape_of(ScheduleKind::naive, 2, 2, 2), ShapeField::v, {1}, "1 chunk"},
      {shape_of(ScheduleKind::gpipe, 2, 2, 3), ShapeField::v, {1}, "1 chunk"},
      {shape_of(ScheduleKind::one_f_one_b, 4, 8, 2), ShapeField::v, {1}, "1 chunk"},
      {shape_of(ScheduleKind::zb_h1, 4, 8, 2), ShapeField::v, {1}, "1 chunk"},
      {shape_of(ScheduleKind::zb_h2, 4, 8, 2), ShapeField::v, {1}, "1 chunk"},
      {shape_of(ScheduleKind::dualpipe, 4, 8, 2), ShapeField::v, {1}, "1 chunk"},
      {shape_of(ScheduleKind::interleaved, 4, 8, 1), ShapeField::v, {2}, "at least 2 chunks"},
      {shape_of(ScheduleKind::zb_v, 4, 8, 3), ShapeField::v, {2}, "exactly 2"},
      {shape_of(ScheduleKind::zb_v, 4, 8, 1), ShapeField::v, {2}, "exactly 2"},
      {shape_of(ScheduleKind::dualpipe_v, 4, 8, 1), ShapeField::v, {2}, "exactly 2"},
      {shape_of(ScheduleKind::interleaved, 1, 8, 2), ShapeField::p, {2}, "at least 2 ranks"},
      {shape_of(ScheduleKind::interleaved, 4, 3, 2), ShapeField::m, {4}, "at least p = 4"},
      {shape_of(ScheduleKind::interleaved, 4, 10, 2), ShapeField::m, {8, 12}, "the rest is 2"},
      {shape_of(ScheduleKind::interleaved, 4, 8, 2, 3), ShapeField::group, {4}, "from p = 4 to m = 8"},
      {shape_of(ScheduleKind::interleaved, 4, 8, 2, 9), ShapeField::group, {8}, "from p = 4 to m = 8"},
      {shape_of(ScheduleKind::interleaved, 4, 11, 2, 5), ShapeField::group, {6}, "the rest is 1"},
      {shape_of(ScheduleKind::interleaved, 2, 4, 2, 3), ShapeField::group, {2, 4}, "the rest is 1"},
      {shape_of(ScheduleKind::one_f_one_b, 4, 8, 1, 4), ShapeField::group, {}, "only interleaved"},
      {shape_of(ScheduleKind::dualpipe, 5, 20), ShapeField::p, {4, 6}, "even number of ranks"},
      {shape_of(ScheduleKind::dualpipe, 8, 15), ShapeField::m, {16}, "at least 2p = 16"},
      {shape_of(ScheduleKind::dualpipe, 8, 17), ShapeField::m, {16, 18}, "even number of microbatches"},
      {shape_of(ScheduleKind::dualpipe_v, 4, 7, 2), ShapeField::m, {8}, "at least 2p = 8"},
      {shape_of(ScheduleKind::gpipe, 0, 8), ShapeField::p, {1}, "at least 1"},
      {shape_of(ScheduleKind::gpipe, 2, 0), ShapeField::m, {1}, "at least 1"},
      {shape_of(ScheduleKind::bfs, 2, 2, 0), ShapeField::v, {1}, "at least 1"},
  }));
  CAPTURE(name(row.shape.kind), row.shape.p, row.shape.m, row.shape.v, row.shape.group);
  const auto problem = check_schedule(row.shape);
  REQUIRE(problem.has_value());
  CHECK_FALSE(is_legal(row.shape));
  CHECK(name(problem->field) == name(row.field));
  CHECK(problem->nearest == row.nearest);
  CHECK_THAT(problem->rule, test::Contains(row.rule));
}

TEST_CASE("what is legal") {
  const Shape shape = GENERATE(values<Shape>({
      shape_of(ScheduleKind::one_f_one_b, 8, 1),
      shape_of(ScheduleKind::interleaved, 4, 11, 2, 7),  // a last group of 4 = p
      shape_of(ScheduleKind::interleaved, 4, 8, 2, 8),
      shape_of(ScheduleKind::bfs, 1, 3, 1),
      shape_of(ScheduleKind::zb_h2, 4, 2),
      shape_of(ScheduleKind::zb_v, 1, 1, 2),
      shape_of(ScheduleKind::dualpipe, 2, 4),
      shape_of(ScheduleKind::dualpipe_v, 3, 7, 2),
  }));
  CAPTURE(name(shape.kind), shape.p, shape.m);
  CHECK_FALSE(check_schedule(shape).has_value());
  CHECK(is_legal(shape));
}

TEST_CASE("every nearest value is legal, and words agree") {
  Random random(3);
  for (int round = 0; round < 3000; ++round) {
    Shape shape;
    shape.kind = static_cast<ScheduleKind>(random.from(0, static_cast<int>(kinds) - 1));
    shape.p = random.from(1, 9);
    shape.m = random.from(1, 20);
    shape.v = random.from(1, 3);
    shape.group = random.from(0, 3) == 0 ? random.from(1, 12) : 0;
    const auto problem = check_schedule(shape);
    REQUIRE(problem.has_value() != is_legal(shape));
    if (!problem || problem->nearest.empty()) continue;
    CAPTURE(name(shape.kind), shape.p, shape.m, shape.v, shape.group, problem->rule);
    int right = 0;
    for (const int value : problem->nearest) {
      Shape changed = shape;
      switch (problem->field) {
        case ShapeField::p: changed.p = value; break;
        case ShapeField::m: changed.m = value; break;
        case ShapeField::v: changed.v = value; break;
        case ShapeField::group: changed.group = value; break;
      }
      const auto left = check_schedule(changed);
      if (!left || left->field != problem->field) ++right;
    }
    REQUIRE(right == static_cast<int>(problem->nearest.size()));
  }
}

TEST_CASE("huge numbers have an answer, quickly") {
  const int huge = 2147483647;
  CHECK(check_schedule(shape_of(ScheduleKind::dualpipe, huge, huge)).has_value());
  CHECK(check_schedule(shape_of(ScheduleKind::dualpipe_v, huge, huge, 2)).has_value());
  CHECK(check_schedule(shape_of(ScheduleKind::interleaved, 2, huge, 2)).has_value());
}

}  // namespace
