// What each pipeline rank executes, in order, run-length coded: "3 x F, 253 x (F, BW), 3 x BW".
//
// A program knows no times. It is as short as the schedule's description (three entries a rank for 1F1B, whatever the
// number of microbatches): writing it, and folding memory over it, costs nothing per op.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "shardplan/schedule/shape.hpp"

namespace shardplan::schedule {

/// Forward; backward for the input, for the weights, for both; a forward together with the full backward of another
/// microbatch (DualPipe's F&B).
enum class OpKind : std::uint8_t { F, B, W, BW, F_BW };

/// One place of a repeated pattern. Microbatches are implicit: a chunk's n-th F is its n-th microbatch, and so on.
struct Slot {
  OpKind kind = OpKind::F;
  std::uint16_t chunk = 0;           ///< of the rank; F_BW: of the forward
  std::uint16_t backward_chunk = 0;  ///< F_BW only
};

/// The pattern, `count` times over.
struct Repeat {
  static constexpr std::size_t max_length = 6;
  std::uint32_t count = 0;
  std::uint32_t length = 0;
  std::array<Slot, max_length> slots{};

  const Slot* begin() const noexcept { return slots.data(); }
  const Slot* end() const noexcept { return slots.data() + length; }
};

/// All ranks' op lists. Reused: writing a shape that was written before allocates nothing.
struct Program {
  Shape shape;
  std::vector<Repeat> repeats;              ///< rank 0's, then rank 1's, ..., then an empty one
  std::vector<std::uint32_t> first_repeat;  ///< of each rank; p + 1 entries

  const Repeat* begin(int rank) const noexcept { return repeats.data() + first_repeat[static_cast<std::size_t>(rank)]; }
  const Repeat* end(int rank) const noexcept {
    return repeats.data() + first_repeat[static_cast<std::size_t>(rank) + 1];
  }
};

/// What a schedule's file writes one rank's order to.
class RankWriter {
 public:
  explicit RankWriter(std::vector<Repeat>& repeats) noexcept : repeats_(repeats) {}

  /// Appends the pattern `count` times; nothing where count is not positive.
  void repeat(int count, std::initializer_list<Slot> pattern);
  void once(Slot slot) { repeat(1, {slot}); }

 private:
  std::vector<Repeat>& repeats_;
};

/// Writes every rank's order of a legal shape (legality.hpp).
void write_program(const Shape& shape, Program& program);

/// Ops of one rank, an F_BW as one.
std::size_t count_ops(const Program& program, int rank) noexcept;

/// One op with its microbatches spelled out.
struct Op {
  OpKind kind = OpKind::F;
  int chunk = 0;
  int stage = 0;  ///< virtual stage
  int microbatch = 0;
  int backward_chunk = 0;  ///< F_BW only, as the next two
  int backward_stage = 0;
  int backward_microbatch = 0;
};

/// Calls visit(const Op&) for every op of the rank, in order.
template <class Visitor>
void for_each_op(const Program& program, int rank, Visitor&& visit) {
  const Shape& shape = program.shape;
  struct Counts {
    int f = 0, b = 0, w = 0;
  };
  std::vector<Counts> done(static_cast<std::size_t>(chunks_per_rank(shape)));
  for (const Repeat* repeat = program.begin(rank); repeat != program.end(rank); ++repeat) {
    for (std::uint32_t i = 0; i < repeat->count; ++i) {
      for (const Slot& slot : *repeat) {
        Op op;
        op.kind = slot.kind;
        op.chunk = slot.chunk;
        op.stage = stage_of(shape, rank, slot.chunk);
        Counts& counts = done[slot.chunk];
        switch (slot.kind) {
          case OpKind::F: op.microbatch = forward_microbatch(shape, slot.chunk, counts.f++); break;
          case OpKind::B: op.microbatch = backward_microbatch(shape, slot.chunk, counts.b++); break;
          case OpKind::W: op.microbatch = backward_microbatch(shape, slot.chunk, counts.w++); break;
          case OpKind::BW:
            op.microbatch = backward_microbatch(shape, slot.chunk, counts.b++);
            counts.w++;
            break;
          case OpKind::F_BW: {
            Counts& backward = done[slot.backward_chunk];
            op.microbatch = forward_microbatch(shape, slot.chunk, counts.f++);
            op.backward_chunk = slot.backward_chunk;
            op.backward_stage = stage_of(shape, rank, slot.backward_chunk);
            op.backward_microbatch = backward_microbatch(shape, slot.backward_chunk, backward.b++);
            backward.w++;
            break;
          }
        }
        visit(static_cast<const Op&>(op));
      }
    }
  }
}

}  // namespace shardplan::schedule
