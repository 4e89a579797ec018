// ZB-H1 (arXiv:2401.10241): 1F1B's order and memory; W waits so that the drain is filled.
#include <algorithm>

#include "orders.hpp"

namespace shardplan::schedule {

void write_lagging_weights(int microbatches, int warmup, int lag, RankWriter& out) {
  const int m = microbatches;
  warmup = std::min(warmup, m);
  lag = std::min(lag, m);
  // The k-th backward is followed by a W from k = lag on, and by an F as long as there is one: k < m - warmup.
  const int forwards = m - warmup;
  out.repeat(warmup, {F(0)});
  out.repeat(std::min(lag, forwards), {B(0), F(0)});
  out.repeat(forwards - lag, {B(0), W(0), F(0)});
  out.repeat(lag - forwards, {B(0)});
  out.repeat(m - std::max(lag, forwards), {B(0), W(0)});
  out.repeat(lag, {W(0)});
}

namespace {

void write(const Shape& shape, int rank, RankWriter& out) { write_lagging_weights(shape.m, shape.p - rank, rank, out); }

std::optional<double> makespan(const Shape& shape, const UniformTimes& t) noexcept {
  const bool short_weight = t.weight <= t.forward && t.weight <= t.backward;
  if (!short_weight || shape.m < shape.p) return std::nullopt;
  return shape.m * all_passes(t) + (shape.p - 1.0) * (t.forward + t.backward - t.weight);
}

}  // namespace

constinit const ScheduleFacts rows::zb_h1 = {
    .summary = "weight gradients fill the tail of 1f1b",
    .needs = "v = 1",
    .helps = "W fills the drain",
    .source = "Qi et al. 2023 (2401.10241)",
    .bubble = {.passes = 3, .always = false},
    .splits_backward = true,
    .write = write,
    .makespan = makespan,
    .in_flight = [](const Shape& shape, int) noexcept { return std::optional(std::min(shape.m, shape.p)); },
};

}  // namespace shardplan::schedule
