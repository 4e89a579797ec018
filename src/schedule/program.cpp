#include "shardplan/schedule/program.hpp"

#include <cassert>

namespace shardplan::schedule {

int stage_of(const Shape& shape, int rank, int chunk) noexcept {
  switch (placement(shape.kind)) {
    case Placement::loop: return chunk * shape.p + rank;
    case Placement::vee: return chunk == 0 ? rank : 2 * shape.p - 1 - rank;
    case Placement::bidirectional: return chunk == 0 ? rank : shape.p - 1 - rank;
  }
  return rank;
}

void RankWriter::repeat(int count, std::initializer_list<Slot> pattern) {
  assert(pattern.size() <= Repeat::max_length);
  if (count <= 0) return;
  Repeat& repeat = repeats_.emplace_back();
  repeat.count = static_cast<std::uint32_t>(count);
  for (const Slot& slot : pattern) repeat.slots[repeat.length++] = slot;
}

void write_program(const Shape& shape, Program& program) {
  program.shape = shape;
  program.repeats.clear();
  program.first_repeat.clear();
  RankWriter writer(program.repeats);
  for (int rank = 0; rank < shape.p; ++rank) {
    program.first_repeat.push_back(static_cast<std::uint32_t>(program.repeats.size()));
    facts_of(shape.kind).write(shape, rank, writer);
  }
  program.first_repeat.push_back(static_cast<std::uint32_t>(program.repeats.size()));
  program.repeats.emplace_back();  // so that one past a rank's last entry can be looked at
}

std::size_t count_ops(const Program& program, int rank) noexcept {
  std::size_t ops = 0;
  for (const Repeat* repeat = program.begin(rank); repeat != program.end(rank); ++repeat) {
    ops += std::size_t{repeat->count} * repeat->length;
  }
  return ops;
}

}  // namespace shardplan::schedule
