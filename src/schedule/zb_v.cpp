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

}  // namespace

void write_zb_v(const Shape& shape, int rank, RankWriter& out) {
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

}  // namespace shardplan::schedule
