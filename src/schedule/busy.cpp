#include "busy.hpp"

namespace shardplan::schedule {
namespace {

using Chunk = PipelineWorkspace::Chunk;

constexpr std::size_t index(int i) noexcept { return static_cast<std::size_t>(i); }

}  // namespace

void fold_busy(const PipelineSpec& spec, PipelineWorkspace& w, PipelineResult& result) noexcept {
  const int p = spec.shape.p;
  const std::size_t chunks = index(chunks_per_rank(spec.shape));
  result.busy.assign(index(p), 0);
  result.exposed_p2p.assign(index(p), 0);
  for (int rank = 0; rank < p; ++rank) {
    const Chunk* const chunk = w.chunks.data() + index(rank) * chunks;
    double busy = 0;
    double blocked = 0;
    for (const Repeat* repeat = w.program.begin(rank); repeat != w.program.end(rank); ++repeat) {
      for (const Slot& slot : *repeat) {
        const double count = repeat->count;
        const Chunk& c = chunk[slot.chunk];
        switch (slot.kind) {
          case OpKind::F:
            busy += count * c.f;
            blocked += count * c.forward_block;
            break;
          case OpKind::B:
            busy += count * c.b;
            blocked += count * c.backward_block;
            break;
          case OpKind::W: busy += count * c.w; break;
          case OpKind::BW:
            busy += count * c.bw;
            blocked += count * c.backward_block;
            break;
          case OpKind::F_BW: {
            const Chunk& back = chunk[slot.backward_chunk];
            busy += count * pair_time(c, back, spec.alpha);
            blocked += count * std::max(c.forward_block, back.backward_block);
            break;
          }
        }
      }
    }
    result.busy[index(rank)] = busy;
    result.exposed_p2p[index(rank)] = blocked;
  }
}

}  // namespace shardplan::schedule
