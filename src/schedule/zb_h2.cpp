// ZB-H2 (arXiv:2401.10241): more warm-up forwards, about twice 1F1B's memory, no bubble within a rank's span.
#include "orders.hpp"

namespace shardplan::schedule {

namespace {

void write(const Shape& shape, int rank, RankWriter& out) {
  write_lagging_weights(shape.m, 2 * (shape.p - rank) - 1, 2 * rank, out);
}

std::optional<double> makespan(const Shape& shape, const UniformTimes& t) noexcept {
  const double p = shape.p;
  const bool short_weight = t.weight <= t.forward && t.weight <= t.backward;
  if (!short_weight || shape.m < 2 * p - 1) return std::nullopt;
  return shape.m * all_passes(t) + (p - 1) * std::max(t.forward, t.forward + t.backward - 2 * t.weight);
}

}  // namespace

constinit const ScheduleFacts rows::zb_h2 = {
    .summary = "zb-h1 with 2p-1 microbatches in flight",
    .needs = "v = 1",
    .helps = "W fills the drain",
    .source = "Qi et al. 2023 (2401.10241)",
    .bubble = {.passes = 3, .always = false},
    .splits_backward = true,
    .write = write,
    .makespan = makespan,
    .in_flight = [](const Shape& shape, int) noexcept { return std::optional(std::min(shape.m, 2 * shape.p - 1)); },
};

}  // namespace shardplan::schedule
