#include "inflight.hpp"

#include <algorithm>

namespace shardplan::schedule {
namespace {

/// What one rank holds, updated op by op.
class Held {
 public:
  Held(const PipelineSpec& spec, int rank, int chunks, PipelineWorkspace& workspace, PipelineResult& result) noexcept
      : spec_(spec),
        rank_(static_cast<std::size_t>(rank)),
        chunks_(static_cast<std::size_t>(chunks)),
        live_(workspace.live.data()),
        weight_(workspace.live.data() + chunks),
        result_(result) {
    first_ = rank_ * chunks_;
    for (std::size_t chunk = 0; chunk < chunks_; ++chunk) {
      const auto stage = static_cast<std::size_t>(stage_of(spec.shape, rank, static_cast<int>(chunk)));
      weight_[chunk] = spec.activation_bytes.empty() ? 1.0 : spec.activation_bytes[stage];
    }
    std::fill(live_, live_ + chunks_, 0.0);
  }

  void round(const Repeat& repeat) noexcept {
    for (const Slot& slot : repeat) {
      switch (slot.kind) {
        case OpKind::F: hold(slot.chunk); break;
        case OpKind::B:
          see(result_.backward_bytes, slot.chunk);
          release(slot.chunk, 1 - spec_.retain);
          break;
        case OpKind::W: release(slot.chunk, spec_.retain); break;
        case OpKind::BW:
          see(result_.backward_bytes, slot.chunk);
          release(slot.chunk, 1);
          break;
        case OpKind::F_BW:
          hold(slot.chunk);
          see(result_.backward_bytes, slot.backward_chunk);
          release(slot.backward_chunk, 1);
          break;
      }
    }
  }

  /// As if the pattern ran `rounds` more times, without looking at the peaks.
  void skip(const Repeat& repeat, double rounds) noexcept {
    for (const Slot& slot : repeat) {
      switch (slot.kind) {
        case OpKind::F: release(slot.chunk, -rounds); break;
        case OpKind::B: release(slot.chunk, rounds * (1 - spec_.retain)); break;
        case OpKind::W: release(slot.chunk, rounds * spec_.retain); break;
        case OpKind::BW: release(slot.chunk, rounds); break;
        case OpKind::F_BW:
          release(slot.chunk, -rounds);
          release(slot.backward_chunk, rounds);
          break;
      }
    }
  }

 private:
  void see(std::vector<double>& most, std::size_t chunk) noexcept {
    most[first_ + chunk] = std::max(most[first_ + chunk], bytes_);
  }

  void hold(std::size_t chunk) noexcept {
    release(chunk, -1);
    see(result_.forward_bytes, chunk);
    result_.peak_inflight[rank_] = std::max(result_.peak_inflight[rank_], count_);
    if (bytes_ > result_.peak_bytes[rank_]) {
      result_.peak_bytes[rank_] = bytes_;
      std::copy(live_, live_ + chunks_, result_.peak_live.begin() + static_cast<std::ptrdiff_t>(first_));
    }
  }

  void release(std::size_t chunk, double share) noexcept {
    live_[chunk] -= share;
    count_ -= share;
    bytes_ -= share * weight_[chunk];
  }

  const PipelineSpec& spec_;
  std::size_t rank_;
  std::size_t chunks_;
  std::size_t first_ = 0;
  double* live_;    ///< per chunk
  double* weight_;  ///< per chunk
  double count_ = 0;
  double bytes_ = 0;
  PipelineResult& result_;
};

}  // namespace

void fold_inflight(const PipelineSpec& spec, PipelineWorkspace& workspace, PipelineResult& result) noexcept {
  const int p = spec.shape.p;
  const int chunks = chunks_per_rank(spec.shape);
  const auto ranks = static_cast<std::size_t>(p);
  const std::size_t all_chunks = ranks * static_cast<std::size_t>(chunks);
  workspace.live.resize(2 * static_cast<std::size_t>(chunks));
  result.peak_inflight.assign(ranks, 0);
  result.peak_bytes.assign(ranks, 0);
  result.forward_bytes.assign(all_chunks, 0);
  result.backward_bytes.assign(all_chunks, 0);
  result.peak_live.assign(all_chunks, 0);
  for (int rank = 0; rank < p; ++rank) {
    Held held(spec, rank, chunks, workspace, result);
    for (const Repeat* repeat = workspace.program.begin(rank); repeat != workspace.program.end(rank); ++repeat) {
      held.round(*repeat);
      if (repeat->count > 2) held.skip(*repeat, repeat->count - 2);
      if (repeat->count > 1) held.round(*repeat);
    }
  }
}

}  // namespace shardplan::schedule
