// 1F1B with a flush (PipeDream-flush; arXiv:2104.04473 section 2.2): a rank runs ahead by its distance to the last one.
#include <algorithm>
#include <cmath>

#include "orders.hpp"

namespace shardplan::schedule {

namespace {

void write(const Shape& shape, int rank, RankWriter& out) {
  const int warmup = std::min(shape.p - 1 - rank, shape.m);
  out.repeat(warmup, {F(0)});
  out.repeat(shape.m - warmup, {F(0), BW(0)});
  out.repeat(warmup, {BW(0)});
}

std::optional<double> waits(const PipelineSpec& spec) noexcept {
  const double p = spec.shape.p;
  const double m = spec.shape.m;
  if (spec.p2p_mode == P2pMode::overlap) return 2 * (p - 1 + std::floor((m - 1) * (p - 1) / p));
  if (m < 2) return std::nullopt;
  return p == 2 ? m + 1 : 2 * (m - 1) + 2 * (p - 1) - 1;
}

}  // namespace

constinit const ScheduleFacts rows::one_f_one_b = {
    .summary = "a backward follows each forward",
    .helps = "backwards start early and free memory",
    .source = "Narayanan et al. 2021 (2104.04473)",
    .write = write,
    .makespan = [](const Shape& shape,
                   const UniformTimes& t) noexcept { return std::optional(ramp_makespan(shape, t)); },
    .waits = waits,
    .in_flight = [](const Shape& shape, int rank) noexcept { return std::optional(std::min(shape.m, shape.p - rank)); },
};

}  // namespace shardplan::schedule
