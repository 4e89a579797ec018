// What the files of the schedules share: ops, orders that two of them write, their closed forms' arithmetic.
#pragma once

#include <algorithm>
#include <optional>
#include <span>

#include "rows.hpp"
#include "shardplan/schedule/closed_form.hpp"
#include "shardplan/schedule/program.hpp"

namespace shardplan::schedule {

constexpr Slot F(int chunk) noexcept { return {OpKind::F, static_cast<std::uint16_t>(chunk), 0}; }
constexpr Slot B(int chunk) noexcept { return {OpKind::B, static_cast<std::uint16_t>(chunk), 0}; }
constexpr Slot W(int chunk) noexcept { return {OpKind::W, static_cast<std::uint16_t>(chunk), 0}; }
constexpr Slot BW(int chunk) noexcept { return {OpKind::BW, static_cast<std::uint16_t>(chunk), 0}; }
constexpr Slot F_BW(int forward, int backward) noexcept {
  return {OpKind::F_BW, static_cast<std::uint16_t>(forward), static_cast<std::uint16_t>(backward)};
}

/// zb-h1 and zb-h2: `warmup` forwards, then B, W, F in turn, where the W of a microbatch comes `lag` backwards after
/// its B.
void write_lagging_weights(int microbatches, int warmup, int lag, RankWriter& out);

/// dualpipe and dualpipe-v, seen from one end of a line of `half_ranks` ranks that microbatches pass twice: `position`
/// 0 is the end where they come in, chunk `near` is on the way in, chunk `far` on the way out.
struct DualLine {
  int half_ranks = 1;
  int position = 0;
  int microbatches = 0;  ///< through each chunk
  int near = 0;
  int far = 1;
};
void write_dual_line(const DualLine& line, RankWriter& out);

inline double sum(std::span<const double> values) noexcept {
  double total = 0;
  for (const double value : values) total += value;
  return total;
}
/// F, B and W of a microbatch.
constexpr double all_passes(const UniformTimes& t) noexcept { return t.forward + t.backward + t.weight; }
/// A forward together with a whole backward.
inline double pair_time(const UniformTimes& t) noexcept {
  const double backward = t.backward + t.weight;
  return std::max(t.forward, backward) + t.alpha * std::min(t.forward, backward);
}
/// (v m + p - 1) microbatches of work: 1f1b, gpipe, interleaved.
inline double ramp_makespan(const Shape& shape, const UniformTimes& t) noexcept {
  return (static_cast<double>(shape.v) * shape.m + shape.p - 1) * all_passes(t);
}

}  // namespace shardplan::schedule
