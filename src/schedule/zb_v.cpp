// ZB-V (arXiv:2401.10241, the hand-made order, as in torch's ScheduleZBVZeroBubble): two chunks in a vee.
#include <algorithm>
#include <array>

#include "orders.hpp"

namespace shardplan::schedule {
namespace {

/// Writes patterns of an order that was made for more microbatches than there are: what is beyond m falls out.
class ClippedWriter {
 public:
  ClippedWriter(int m, RankWriter& out) noexcept : m_(m), out_(out) {}

  void repeat(int count, std::initializer_list<Slot> pattern) {
    if (count <= 0) return;
    bool whole = true;
    for (const Slot& slot : pattern) {
      int& n = done(slot);
      n += count;
      whole = whole && n <= m_;
    }
    if (whole) return out_.repeat(count, pattern);
    for (const Slot& slot : pattern) done(slot) -= count;
    for (int i = 0; i < count; ++i) {
      for (const Slot& slot : pattern) {
        if (done(slot)++ < m_) out_.once(slot);
      }
    }
  }

 private:
  int& done(const Slot& slot) noexcept { return done_[static_cast<std::size_t>(slot.kind) * 2 + slot.chunk]; }

  int m_;
  RankWriter& out_;
  std::array<int, 6> done_{};  ///< F, B, W of each chunk
};

void write(const Shape& shape, int rank, RankWriter& out) {
  const int p = shape.p;
  const int m = std::max(shape.m, 2 * p - 1);  // fewer do not fill the vee
  ClippedWriter vee(shape.m, out);
  vee.repeat(2 * (p - rank) - 1, {F(0)});
  vee.repeat(rank, {F(1), F(0)});
  vee.repeat(p - rank, {F(1), B(1), W(1)});
  vee.repeat(m - (2 * p - rank - 1), {F(0), B(0), W(0), F(1), B(1), W(1)});
  vee.repeat(p - rank - 1, {B(0), W(0), F(1), B(1), W(1)});
  vee.repeat(rank, {B(0), B(1)});
  vee.repeat(p - rank, {B(0), W(0)});
  vee.repeat(rank, {W(1)});
  vee.repeat(rank, {W(0)});
}

std::optional<double> makespan(const Shape& shape, const UniformTimes& t) noexcept {
  const double p = shape.p;
  const double m = shape.m;
  const bool equal = t.forward == t.backward && t.backward == t.weight;
  if (!equal || m < 2 * p - 1) return std::nullopt;
  return 2 * m * all_passes(t) + (p - 1) * t.forward;
}

std::optional<int> in_flight(const Shape& shape, int) noexcept {
  if (shape.m < 2 * shape.p - 1) return std::nullopt;
  return 2 * shape.p;
}

}  // namespace

constinit const ScheduleFacts rows::zb_v = {
    .summary = "two chunks a rank in a V, split backward",
    .needs = "v = 2",
    .helps = "W fills the drain, both ends on stage 0",
    .source = "Qi et al. 2024 (2405.15362)",
    .placement = Placement::vee,
    .chunks = Chunks::two,
    .bubble = {.passes = 6, .always = false},
    .splits_backward = true,
    .write = write,
    .makespan = makespan,
    .in_flight = in_flight,
};

}  // namespace shardplan::schedule
