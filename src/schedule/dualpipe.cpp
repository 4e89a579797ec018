// DualPipe (arXiv:2412.19437 section 3.2.1): microbatches enter at both ends, a forward of one direction overlaps a
// backward of the other.
#include <algorithm>

#include "orders.hpp"

namespace shardplan::schedule {
namespace {

/// The W's that the drain owes, in the order of their B's: the chunks take turns while both have backwards left, then
/// all are of the near chunk.
class OwedWeights {
 public:
  OwedWeights(Slot first, Slot second, int in_turn, Slot rest) noexcept
      : turns_{first, second}, in_turn_(in_turn), rest_(rest) {}
  Slot next() noexcept {
    const int n = taken_++;
    return n < in_turn_ ? turns_[n % 2] : rest_;
  }

 private:
  Slot turns_[2];
  int in_turn_;
  Slot rest_;
  int taken_ = 0;
};

}  // namespace

void write_dual_line(const DualLine& line, RankWriter& out) {
  const int inner = line.half_ranks - 1 - line.position;  // ranks between this one and the line's far end
  const int near = line.near;
  const int far = line.far;

  // Warm-up: forwards in, forwards in and out, then backwards of the outgoing chunk with their weights.
  out.repeat(2 * inner, {F(near)});
  out.repeat(line.position + 1, {F(near), F(far)});
  out.repeat(inner, {B(far), W(far), F(far)});

  // Steady state. The innermost rank does not overlap the first pair: its input would come too late.
  const int steady = line.microbatches - 2 * line.half_ranks + line.position + 1;
  if (inner == 0) {
    out.repeat(1, {F(near), BW(far), F_BW(far, near)});
  } else {
    out.repeat(1, {F_BW(near, far), F_BW(far, near)});
  }
  out.repeat(steady - 1, {F_BW(near, far), F_BW(far, near)});
  out.repeat(inner, {BW(far), F_BW(far, near)});

  // Drain: whole backwards at first; from the middle on only B, and the W's, as many as `both`, fill the waiting.
  const int both = line.position + 1;
  const int whole = both / 2;
  out.repeat(whole, {BW(far), BW(near)});
  const bool far_first = both % 2 == 0;
  if (!far_first) out.repeat(1, {BW(far), B(near)});
  out.repeat(both / 2, {B(far), B(near)});
  OwedWeights owed(far_first ? W(far) : W(near), far_first ? W(near) : W(far), both, W(near));
  for (int i = 0; i < inner; ++i) out.repeat(1, {owed.next(), B(near)});
  for (int i = 0; i < both; ++i) out.once(owed.next());
}

namespace {

void write(const Shape& shape, int rank, RankWriter& out) {
  const bool second_half = rank >= shape.p / 2;
  DualLine line;
  line.half_ranks = shape.p / 2;
  line.position = std::min(rank, shape.p - 1 - rank);
  line.microbatches = shape.m / 2;
  line.near = second_half ? 1 : 0;
  line.far = second_half ? 0 : 1;
  write_dual_line(line, out);
}

std::optional<double> makespan(const Shape& shape, const UniformTimes& t) noexcept {
  if (t.weight > t.backward || t.backward > t.forward) return std::nullopt;
  const double p = shape.p;
  return 1.5 * p * t.forward + (p + 1) * t.backward + 3 * t.weight + (shape.m - p / 2 - 2) * pair_time(t);
}

}  // namespace

constinit const ScheduleFacts rows::dualpipe = {
    .summary = "both ends at once, two copies of the weights",
    .needs = "p, m even, m >= 2p",
    .helps = "microbatches from both ends",
    .source = "DeepSeek-AI 2024 (2412.19437)",
    .placement = Placement::bidirectional,
    .bubble = {.less = 2, .passes = 3},  // 1.5p + (p + 1) + 3 + 3 (m - p/2 - 2) against 3m
    .splits_backward = true,
    .pairs_passes = true,
    .overlaps_expert_exchange = true,
    .even = true,
    .least_microbatches = 2,
    .write = write,
    .makespan = makespan,
    .in_flight = [](const Shape& shape, int) noexcept { return std::optional(shape.p + 1); },
};

}  // namespace shardplan::schedule
