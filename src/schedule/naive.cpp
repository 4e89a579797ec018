// Naive model parallelism: a microbatch goes all the way forward and back before the next one starts.
#include "orders.hpp"

namespace shardplan::schedule {

namespace {

void write(const Shape& shape, int, RankWriter& out) { out.repeat(shape.m, {F(0), BW(0)}); }

std::optional<double> makespan(const Shape& shape, const UniformTimes& t) noexcept {
  return static_cast<double>(shape.m) * shape.p * all_passes(t);
}

std::optional<double> uneven_makespan(const PipelineSpec& spec) noexcept {
  const double hops = 2.0 * (spec.shape.p - 1) * spec.p2p;
  return spec.shape.m * (sum(spec.forward) + sum(spec.backward) + sum(spec.weight) + hops);
}

}  // namespace

constinit const ScheduleFacts rows::naive = {
    .summary = "one microbatch at a time through all stages",
    .helps = "microbatches overlap",
    .source = "definition",
    .one_at_a_time = true,
    .write = write,
    .makespan = makespan,
    .uneven_makespan = uneven_makespan,
    .in_flight = [](const Shape&, int) noexcept { return std::optional<int>(1); },
};

}  // namespace shardplan::schedule
