// A warm simulation allocates nothing.
#include <atomic>
#include <cstdlib>
#include <new>

#include "shardplan/schedule/closed_form.hpp"
#include "support.hpp"
#include "support/catch.hpp"

namespace {
std::atomic<long> allocations{0};
}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
// Replaced together: a replaced delete would free what another new made.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

using namespace test;

TEST_CASE("warm buffers are enough") {
  PipelineWorkspace workspace;
  PipelineResult result;
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < kinds; ++i) {
    const auto kind = static_cast<ScheduleKind>(i);
    const bool two = kind == ScheduleKind::zb_v || kind == ScheduleKind::dualpipe_v;
    const bool free = kind == ScheduleKind::interleaved || kind == ScheduleKind::bfs;
    shapes.push_back(shape_of(kind, 4, 16, two || free ? 2 : 1));
  }
  shapes.push_back(shape_of(ScheduleKind::zb_v, 4, 3, 2));  // the clipped order
  std::vector<Times> times;
  for (const Shape& shape : shapes) times.push_back(uniform_times(shape, 3, 2, 1));
  const auto run_all = [&] {
    double sum = 0;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      simulate(times[i].spec(shapes[i]), workspace, result);
      sum += result.makespan + ideal_bubble_fraction(shapes[i], workspace, result);
    }
    return sum;
  };
  const double first = run_all();
  const long before = allocations;
  REQUIRE(before > 0);
  const double second = run_all();
  CHECK(allocations == before);
  CHECK(first == second);
}

}  // namespace
