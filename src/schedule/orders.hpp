// The schedules, one function a file: each writes one rank's op order of a legal shape.
#pragma once

#include "shardplan/schedule/program.hpp"

namespace shardplan::schedule {

constexpr Slot F(int chunk) noexcept { return {OpKind::F, static_cast<std::uint16_t>(chunk), 0}; }
constexpr Slot B(int chunk) noexcept { return {OpKind::B, static_cast<std::uint16_t>(chunk), 0}; }
constexpr Slot W(int chunk) noexcept { return {OpKind::W, static_cast<std::uint16_t>(chunk), 0}; }
constexpr Slot BW(int chunk) noexcept { return {OpKind::BW, static_cast<std::uint16_t>(chunk), 0}; }
constexpr Slot F_BW(int forward, int backward) noexcept {
  return {OpKind::F_BW, static_cast<std::uint16_t>(forward), static_cast<std::uint16_t>(backward)};
}

void write_naive(const Shape& shape, int rank, RankWriter& out);
void write_gpipe(const Shape& shape, int rank, RankWriter& out);
void write_one_f_one_b(const Shape& shape, int rank, RankWriter& out);
void write_interleaved(const Shape& shape, int rank, RankWriter& out);
void write_bfs(const Shape& shape, int rank, RankWriter& out);
void write_zb_h1(const Shape& shape, int rank, RankWriter& out);
void write_zb_h2(const Shape& shape, int rank, RankWriter& out);
void write_zb_v(const Shape& shape, int rank, RankWriter& out);
void write_dualpipe(const Shape& shape, int rank, RankWriter& out);
void write_dualpipe_v(const Shape& shape, int rank, RankWriter& out);

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

}  // namespace shardplan::schedule
