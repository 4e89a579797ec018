// Interleaved 1F1B (arXiv:2104.04473 section 2.2) with Megatron-LM's microbatch group size N: a chunk runs N
// microbatches, then the next chunk does, and after the last chunk the next N microbatches come in. N = p is the
// paper's order.
#include <algorithm>

#include "orders.hpp"

namespace shardplan::schedule {
namespace {

/// Walks over (chunk, how many microbatches in a row) of one direction.
class Turns {
 public:
  Turns(const Shape& shape, bool backward) noexcept : shape_(shape), backward_(backward) { start_group(); }

  int chunk() const noexcept { return backward_ ? shape_.v - 1 - turn_ : turn_; }
  int left() const noexcept { return left_; }

  void take(int count) noexcept {
    left_ -= count;
    if (left_ > 0) return;
    if (++turn_ < shape_.v) {
      left_ = group_;
    } else {
      first_ += group_;
      turn_ = 0;
      start_group();
    }
  }

 private:
  void start_group() noexcept { left_ = group_ = std::min(shape_.group_size(), shape_.m - first_); }

  const Shape& shape_;
  bool backward_;
  int first_ = 0;  ///< microbatch of the group
  int group_ = 0;  ///< its size; the last one may be smaller
  int turn_ = 0;
  int left_ = 0;
};

void write(const Shape& shape, int rank, RankWriter& out) {
  const int total = shape.m * shape.v;
  const int warmup = std::min(total, 2 * (shape.p - 1 - rank) + (shape.v - 1) * shape.group_size());
  Turns forward(shape, false);
  Turns backward(shape, true);
  for (int left = warmup; left > 0;) {
    const int count = std::min(left, forward.left());
    out.repeat(count, {F(forward.chunk())});
    forward.take(count);
    left -= count;
  }
  for (int left = total - warmup; left > 0;) {
    const int count = std::min({left, forward.left(), backward.left()});
    out.repeat(count, {F(forward.chunk()), BW(backward.chunk())});
    forward.take(count);
    backward.take(count);
    left -= count;
  }
  for (int left = warmup; left > 0;) {
    const int count = std::min(left, backward.left());
    out.repeat(count, {BW(backward.chunk())});
    backward.take(count);
    left -= count;
  }
}

std::optional<double> waits(const PipelineSpec& spec) noexcept {
  const Shape& shape = spec.shape;
  if (spec.p2p_mode != P2pMode::overlap || shape.group_size() != shape.p) return std::nullopt;
  return 2.0 * (static_cast<double>(shape.p) * shape.v - 1);
}

std::optional<int> in_flight(const Shape& shape, int rank) noexcept {
  return std::min(shape.m * shape.v, 2 * (shape.p - 1 - rank) + (shape.v - 1) * shape.group_size() + 1);
}

}  // namespace

constinit const ScheduleFacts rows::interleaved = {
    .summary = "1f1b over v chunks a rank, depth first",
    .needs = "p, v >= 2, m = k p",
    .helps = "smaller chunks, a shorter ramp",
    .source = "Narayanan et al. 2021 (2104.04473)",
    .chunks = Chunks::several,
    .overlaps_expert_exchange = true,
    .in_groups = true,
    .write = write,
    .makespan = [](const Shape& shape,
                   const UniformTimes& t) noexcept { return std::optional(ramp_makespan(shape, t)); },
    .waits = waits,
    .in_flight = in_flight,
};

}  // namespace shardplan::schedule
