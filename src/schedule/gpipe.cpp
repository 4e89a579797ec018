// GPipe (arXiv:1811.06965): all forwards, then all backwards.
#include "orders.hpp"

namespace shardplan::schedule {

namespace {

void write(const Shape& shape, int, RankWriter& out) {
  out.repeat(shape.m, {F(0)});
  out.repeat(shape.m, {BW(0)});
}

/// A flow shop of identical jobs: uneven stages too, unless messages block the ranks.
std::optional<double> uneven_makespan(const PipelineSpec& spec) noexcept {
  const int p = spec.shape.p;
  if (spec.p2p != 0 && p != 1 && spec.p2p_mode != P2pMode::overlap) return std::nullopt;
  double sum_forward = 0, sum_backward = 0, max_forward = 0, max_backward = 0;
  for (std::size_t i = 0; i < spec.forward.size(); ++i) {
    const double backward = spec.backward[i] + spec.weight[i];
    sum_forward += spec.forward[i];
    sum_backward += backward;
    max_forward = std::max(max_forward, spec.forward[i]);
    max_backward = std::max(max_backward, backward);
  }
  const double hops = 2.0 * (p - 1) * spec.p2p;
  return sum_forward + sum_backward + (spec.shape.m - 1.0) * (max_forward + max_backward) + hops;
}

}  // namespace

constinit const ScheduleFacts rows::gpipe = {
    .summary = "all forwards, then all backwards",
    .helps = "microbatches overlap",
    .source = "Huang et al. 2018 (1811.06965)",
    .in_phases = true,
    .write = write,
    .makespan = [](const Shape& shape,
                   const UniformTimes& t) noexcept { return std::optional(ramp_makespan(shape, t)); },
    .uneven_makespan = uneven_makespan,
    .in_flight = [](const Shape& shape, int) noexcept { return std::optional(shape.m); },
};

}  // namespace shardplan::schedule
