// DualPipe-V ("cut in half", Sea AI Lab and DeepSeek): DualPipe's order on a vee, without the second copy of the
// weights.
#include "orders.hpp"

namespace shardplan::schedule {

namespace {

void write(const Shape& shape, int rank, RankWriter& out) {
  DualLine line;
  line.half_ranks = shape.p;
  line.position = rank;
  line.microbatches = shape.m;
  write_dual_line(line, out);
}

std::optional<double> makespan(const Shape& shape, const UniformTimes& t) noexcept {
  if (t.weight > t.backward || t.backward > t.forward) return std::nullopt;
  const double p = shape.p;
  return 3 * p * t.forward + (2 * p + 1) * t.backward + 3 * t.weight + (2.0 * shape.m - p - 2) * pair_time(t);
}

}  // namespace

constinit const ScheduleFacts rows::dualpipe_v = {
    .summary = "half of dualpipe folded into a V, one copy",
    .needs = "v = 2, m >= 2p",
    .helps = "microbatches from both ends",
    .source = "DeepSeek-AI 2025 (github.com/deepseek-ai/DualPipe)",
    .placement = Placement::vee,
    .chunks = Chunks::two,
    .bubble = {.passes = 3},  // 3p + (2p + 1) + 3 + 3 (2m - p - 2) against 6m
    .splits_backward = true,
    .pairs_passes = true,
    .overlaps_expert_exchange = true,
    .least_microbatches = 2,
    .write = write,
    .makespan = makespan,
    .in_flight = [](const Shape& shape, int) noexcept { return std::optional(2 * shape.p + 1); },
};

}  // namespace shardplan::schedule
