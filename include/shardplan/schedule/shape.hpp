// The integers that fix a pipeline schedule, and which virtual stages each rank holds.
//
// p ranks, m microbatches, v chunks a rank, S = p * v virtual stages in model order.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "shardplan/core/names.hpp"
#include "shardplan/schedule/facts.hpp"

namespace shardplan::schedule {

/// Order of gpipe's and bfs' backward passes: as the microbatches came, or the reverse (autograd's own).
enum class BackwardOrder : std::uint8_t { fifo, lifo };

struct Shape {
  ScheduleKind kind = ScheduleKind::one_f_one_b;
  int p = 1;
  int m = 1;      ///< microbatches of a step; dualpipe: of both directions together
  int v = 1;      ///< as `parallel.virtual_pipeline`: zb-v and dualpipe-v have 2, dualpipe has 1
  int group = 0;  ///< interleaved: microbatches a chunk runs before the next chunk's turn; 0: p
  BackwardOrder backward = BackwardOrder::fifo;

  bool operator==(const Shape&) const = default;

  int group_size() const noexcept { return group == 0 ? p : group; }
  int virtual_stages() const noexcept { return p * v; }
};

inline Placement placement(ScheduleKind kind) noexcept { return facts_of(kind).placement; }
inline bool both_directions(ScheduleKind kind) noexcept { return placement(kind) == Placement::bidirectional; }

/// Chunks that a rank executes: v, and 2 where microbatches run both ways (there v is 1).
inline int chunks_per_rank(ScheduleKind kind, int v) noexcept { return both_directions(kind) ? 2 : v; }
inline int chunks_per_rank(const Shape& shape) noexcept { return chunks_per_rank(shape.kind, shape.v); }

/// Microbatches that pass through one chunk of a rank: m, and m / 2 where half of them run each way.
inline int microbatches_per_chunk(const Shape& shape) noexcept {
  return both_directions(shape.kind) ? shape.m / 2 : shape.m;
}

/// The number of the n-th microbatch that a chunk runs forward, and backward. Of both directions the second half of the
/// microbatches runs through chunk 1.
inline int forward_microbatch(const Shape& shape, int chunk, int n) noexcept {
  return both_directions(shape.kind) && chunk == 1 ? shape.m / 2 + n : n;
}
inline int backward_microbatch(const Shape& shape, int chunk, int n) noexcept {
  return shape.backward == BackwardOrder::lifo ? microbatches_per_chunk(shape) - 1 - n
                                               : forward_microbatch(shape, chunk, n);
}

/// The virtual stage (0 to S - 1, model order) that a rank's chunk is.
int stage_of(const Shape& shape, int rank, int chunk) noexcept;

/// Whether B and W are separate ops, so that activations live until W.
inline bool splits_backward(ScheduleKind kind) noexcept { return facts_of(kind).splits_backward; }

}  // namespace shardplan::schedule

namespace shardplan {
template <>
inline constexpr std::array<std::string_view, 2> names_of<schedule::BackwardOrder> = {"fifo", "lifo"};
}  // namespace shardplan
