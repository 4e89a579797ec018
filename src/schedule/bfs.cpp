// Breadth-first, looped pipeline (arXiv:2211.05953): every microbatch through a chunk before the next chunk starts.
#include "orders.hpp"

namespace shardplan::schedule {

namespace {

void write(const Shape& shape, int, RankWriter& out) {
  for (int chunk = 0; chunk < shape.v; ++chunk) out.repeat(shape.m, {F(chunk)});
  for (int chunk = shape.v - 1; chunk >= 0; --chunk) out.repeat(shape.m, {BW(chunk)});
}

std::optional<double> makespan(const Shape& shape, const UniformTimes& t) noexcept {
  const double p = shape.p;
  return shape.m >= p ? ramp_makespan(shape, t) : ((shape.v - 1) * p + shape.m + p - 1) * all_passes(t);
}

}  // namespace

constinit const ScheduleFacts rows::bfs = {
    .summary = "gpipe over v chunks a rank, breadth first",
    .helps = "smaller chunks, a shorter ramp",
    .source = "Lamy-Poirier 2022 (2211.05953)",
    .chunks = Chunks::any,
    .bubble = {.always = false},
    .in_phases = true,
    .write = write,
    .makespan = makespan,
    .in_flight = [](const Shape& shape, int) noexcept { return std::optional(shape.m * shape.v); },
};

}  // namespace shardplan::schedule
