#include "shardplan/schedule/simulate.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "busy.hpp"
#include "inflight.hpp"

namespace shardplan::schedule {
namespace {

using Channel = PipelineWorkspace::Channel;
using Chunk = PipelineWorkspace::Chunk;
using Rank = PipelineWorkspace::Rank;

constexpr std::size_t index(int i) noexcept { return static_cast<std::size_t>(i); }

/// Where a chunk's output goes: a rank and a chunk, or nowhere (rank -1: the end of the pipeline).
struct Place {
  int rank = -1;
  int chunk = 0;
};

Place next_place(const Shape& shape, int rank, int chunk) noexcept {
  const int p = shape.p;
  switch (placement(shape.kind)) {
    case Placement::loop:
      if (rank + 1 < p) return {rank + 1, chunk};
      return chunk + 1 < shape.v ? Place{0, chunk + 1} : Place{};
    case Placement::vee:
      if (chunk == 0) return rank + 1 < p ? Place{rank + 1, 0} : Place{rank, 1};
      return rank > 0 ? Place{rank - 1, 1} : Place{};
    case Placement::bidirectional:
      if (chunk == 0) return rank + 1 < p ? Place{rank + 1, 0} : Place{};
      return rank > 0 ? Place{rank - 1, 1} : Place{};
  }
  return {};
}

// Every chunk takes its forward inputs from one channel and its backward inputs from another. All schedules keep the
// microbatches of a channel in order, so a channel is a queue: arrival times, written at its head, taken at its tail.
// The pipeline's sources are full of zeros from the start; its sinks are written and never read.
void lay_channels(const Shape& shape, PipelineWorkspace& w) {
  const std::size_t all_chunks = index(shape.p) * index(chunks_per_rank(shape));
  const std::size_t length = index(microbatches_per_chunk(shape));
  // The sinks are twice as long: both of dualpipe's ends write there.
  const std::size_t size = (2 * all_chunks + 4) * length;
  if (w.arrivals.size() < size) w.arrivals.resize(size);
  w.chunks.assign(all_chunks + 1, Chunk{});
  double* at = w.arrivals.data();
  const auto lay = [&at](Channel& channel, std::size_t entries) {
    channel.tail = channel.head = at;
    at += entries;
  };
  for (std::size_t i = 0; i <= all_chunks; ++i) {
    lay(w.chunks[i].forward_in, i < all_chunks ? length : 2 * length);
    lay(w.chunks[i].backward_in, i < all_chunks ? length : 2 * length);
  }
}

void connect(const PipelineSpec& spec, PipelineWorkspace& w) {
  const Shape& shape = spec.shape;
  const std::size_t chunks = index(chunks_per_rank(shape));
  const std::size_t length = index(microbatches_per_chunk(shape));
  const bool exposed = spec.p2p_mode == P2pMode::exposed;
  Chunk* const sink = &w.chunks.back();
  const auto fill_with_zeros = [length](Channel& channel) {
    std::fill(channel.head, channel.head + length, 0.0);
    channel.head += length;
  };
  for (int rank = 0; rank < shape.p; ++rank) {
    for (std::size_t c = 0; c < chunks; ++c) {
      const std::size_t stage = index(stage_of(shape, rank, static_cast<int>(c)));
      Chunk& here = w.chunks[index(rank) * chunks + c];
      here.f = spec.forward[stage];
      here.b = spec.backward[stage];
      here.w = spec.weight[stage];
      here.bw = here.b + here.w;
      if (here.previous == nullptr) here.previous = sink;
      const Place to = next_place(shape, rank, static_cast<int>(c));
      if (to.rank < 0) {
        here.next = sink;
        fill_with_zeros(here.backward_in);  // its own forward is the backward's input
        continue;
      }
      Chunk& there = w.chunks[index(to.rank) * chunks + index(to.chunk)];
      const double p2p = to.rank == rank ? 0.0 : spec.p2p;
      here.next = &there;
      there.previous = &here;
      here.next_rank = &w.ranks[index(to.rank)];
      there.previous_rank = &w.ranks[index(rank)];
      here.forward_delay = there.backward_delay = p2p;
      here.forward_block = there.backward_block = exposed ? p2p : 0.0;
    }
  }
  for (Chunk& chunk : w.chunks) {
    if (chunk.previous == sink) fill_with_zeros(chunk.forward_in);
  }
}

void start_ranks(PipelineWorkspace& w) {
  const Shape& shape = w.program.shape;
  w.ready.resize(index(shape.p));
  w.ranks.resize(index(shape.p));
  for (int number = 0; number < shape.p; ++number) {
    Rank& rank = w.ranks[index(number)];
    rank = Rank{};
    rank.number = number;
    rank.repeat = w.program.begin(number);
    rank.end = w.program.end(number);
    rank.slot = rank.repeat->begin();
    rank.left = rank.repeat->count;
    rank.chunks = w.chunks.data() + index(number) * index(chunks_per_rank(shape));
    rank.chunk = rank.chunks + rank.slot->chunk;
  }
}

struct NoTimeline {
  void visit(const Rank&) noexcept {}
  void op(double, double) noexcept {}
  void leave() noexcept {}
};

/// Writes each rank's ops at its own place, visit by visit.
class TimelineWriter {
 public:
  TimelineWriter(const Program& program, Timeline& timeline) : timeline_(timeline) {
    timeline.first_op.assign(1, 0);
    for (int rank = 0; rank < program.shape.p; ++rank) {
      timeline.first_op.push_back(timeline.first_op.back() + count_ops(program, rank));
    }
    next_.assign(timeline.first_op.begin(), timeline.first_op.end() - 1);
    timeline.start.resize(timeline.first_op.back());
    timeline.end.resize(timeline.first_op.back());
  }
  void visit(const Rank& rank) noexcept { at_ = next_[rank_ = index(rank.number)]; }
  void op(double start, double end) noexcept {
    timeline_.start[at_] = start;
    timeline_.end[at_++] = end;
  }
  void leave() noexcept { next_[rank_] = at_; }

 private:
  Timeline& timeline_;
  std::vector<std::size_t> next_;
  std::size_t rank_ = 0;
  std::size_t at_ = 0;
};

/// Ranks that can go on. The last one woken comes first and stays in a register: mostly it is the only one.
class ReadyRanks {
 public:
  ReadyRanks(std::vector<Rank>& ranks, std::vector<Rank*>& waiting) noexcept : top_(waiting.data()) {
    for (std::size_t i = ranks.size(); i-- > 1;) *top_++ = &ranks[i];
    first_ = waiting.data();
    next_ = &ranks.front();
  }
  void add(Rank* rank) noexcept {
    if (next_ != nullptr) *top_++ = next_;
    next_ = rank;
  }
  Rank* take() noexcept {
    if (next_ == nullptr) return top_ == first_ ? nullptr : *--top_;
    return std::exchange(next_, nullptr);
  }

 private:
  Rank* next_;
  Rank** first_;
  Rank** top_;
};

// Lets a rank run until an input is missing; whoever makes that input puts the rank back on the list of ready ranks.
// Every op runs once and wakes at most two ranks: linear.
template <class Recorder>
void run_ranks(double alpha, PipelineWorkspace& w, Recorder& recorder) noexcept {
  ReadyRanks ready(w.ranks, w.ready);
  const auto send = [&ready](Channel& channel, Rank* consumer, double arrival) {
    *channel.head++ = arrival;
    if (channel.waited) {
      channel.waited = false;
      ready.add(consumer);
    }
  };
  const auto missing = [](Channel& channel) {
    if (channel.tail != channel.head) return false;
    channel.waited = true;
    return true;
  };

  while (Rank* const rank = ready.take()) {
    double free = rank->free;
    double end = rank->last_end;

    // Executes one op; false where an input has not been made yet.
    const auto execute = [&](const Slot& slot, Chunk& chunk) {
      double start = free;
      switch (slot.kind) {
        case OpKind::F:
          if (missing(chunk.forward_in)) return false;
          start = std::max(free, *chunk.forward_in.tail++);
          end = start + chunk.f;
          free = end + chunk.forward_block;
          send(chunk.next->forward_in, chunk.next_rank, end + chunk.forward_delay);
          break;
        case OpKind::B:
        case OpKind::BW:
          if (missing(chunk.backward_in)) return false;
          start = std::max(free, *chunk.backward_in.tail++);
          end = start + (slot.kind == OpKind::B ? chunk.b : chunk.bw);
          free = end + chunk.backward_block;
          chunk.grad_ready = end;  // of a B: its W is still to come, and overwrites this
          send(chunk.previous->backward_in, chunk.previous_rank, end + chunk.backward_delay);
          break;
        case OpKind::W:
          free = end = start + chunk.w;
          chunk.grad_ready = end;
          break;
        case OpKind::F_BW: {
          Chunk& back = rank->chunks[slot.backward_chunk];
          if (missing(chunk.forward_in) || missing(back.backward_in)) return false;
          start = std::max({free, *chunk.forward_in.tail++, *back.backward_in.tail++});
          end = start + pair_time(chunk, back, alpha);
          free = end + std::max(chunk.forward_block, back.backward_block);
          back.grad_ready = end;
          send(chunk.next->forward_in, chunk.next_rank, end + chunk.forward_delay);
          send(back.previous->backward_in, back.previous_rank, end + back.backward_delay);
          break;
        }
      }
      recorder.op(start, end);
      return true;
    };

    recorder.visit(*rank);
    const Repeat* repeat = rank->repeat;
    const Slot* slot = rank->slot;
    Chunk* chunk = rank->chunk;
    std::uint32_t left = rank->left;
    while (repeat != rank->end && execute(*slot, *chunk)) {
      if (++slot == repeat->end()) {
        if (--left == 0) {
          ++repeat;  // the entry after the last one is there, and empty
          left = repeat->count;
        }
        slot = repeat->begin();
      }
      chunk = rank->chunks + slot->chunk;
    }
    rank->repeat = repeat;
    rank->slot = slot;
    rank->chunk = chunk;
    rank->left = left;
    rank->free = free;
    rank->last_end = end;
    recorder.leave();
  }
}

/// Of the naive schedule: one microbatch at a time, down the stages and back, so an op starts when the one before it
/// has ended and its message has arrived. The same sums in the same order as run_ranks, without its queues.
void run_naive(int microbatches, PipelineWorkspace& w) noexcept {
  const std::size_t p = w.ranks.size();
  Chunk* const chunks = w.chunks.data();
  double now = 0;
  for (int m = 0; m < microbatches; ++m) {
    for (std::size_t rank = 0; rank < p; ++rank) {
      if (m == 0 && rank > 0) *chunks[rank].forward_in.head = now;
      now += chunks[rank].f;
      if (rank + 1 < p) now += chunks[rank].forward_delay;
    }
    for (std::size_t rank = p; rank-- > 0;) {
      now += chunks[rank].bw;
      chunks[rank].grad_ready = w.ranks[rank].last_end = now;
      if (rank > 0) now += chunks[rank].backward_delay;
    }
  }
  for (Rank& rank : w.ranks) rank.repeat = rank.end;
}

void collect(const PipelineSpec& spec, PipelineWorkspace& w, PipelineResult& result) noexcept {
  const std::size_t p = index(spec.shape.p);
  const std::size_t chunks = index(chunks_per_rank(spec.shape));
  const std::size_t length = index(microbatches_per_chunk(spec.shape));
  fold_busy(spec, w, result);
  result.first_start.resize(p);
  result.last_end.resize(p);
  result.idle.resize(p);
  result.grad_ready.resize(p * chunks);
  result.makespan = 0;
  result.max_span = 0;
  for (std::size_t rank = 0; rank < p; ++rank) {
    // Every order starts with a forward, and nothing was before it: its input's arrival, the channel's first entry.
    const std::size_t first_chunk = w.program.begin(static_cast<int>(rank))->slots[0].chunk;
    result.first_start[rank] = w.arrivals[2 * (rank * chunks + first_chunk) * length];
    result.last_end[rank] = w.ranks[rank].last_end;
    result.makespan = std::max(result.makespan, result.last_end[rank]);
    result.max_span = std::max(result.max_span, result.last_end[rank] - result.first_start[rank]);
  }
  for (std::size_t rank = 0; rank < p; ++rank) result.idle[rank] = result.makespan - result.busy[rank];
  for (std::size_t i = 0; i < p * chunks; ++i) result.grad_ready[i] = w.chunks[i].grad_ready;
}

template <class Recorder>
void run_step(const PipelineSpec& spec, PipelineWorkspace& w, PipelineResult& result, Recorder& recorder) noexcept {
  lay_channels(spec.shape, w);
  start_ranks(w);
  connect(spec, w);
  if (std::is_same_v<Recorder, NoTimeline> && facts_of(spec.shape.kind).one_at_a_time) {
    run_naive(spec.shape.m, w);
  } else {
    run_ranks(spec.alpha, w, recorder);
  }
  assert(std::all_of(w.ranks.begin(), w.ranks.end(), [](const Rank& rank) { return rank.repeat == rank.end; }));
  collect(spec, w, result);
  fold_inflight(spec, w, result);
}

void prepare(const Shape& shape, Program& program) {
  if (program.first_repeat.empty() || !(program.shape == shape)) write_program(shape, program);
}

}  // namespace

void simulate(const PipelineSpec& spec, PipelineWorkspace& workspace, PipelineResult& result) noexcept {
  prepare(spec.shape, workspace.program);
  NoTimeline recorder;
  run_step(spec, workspace, result, recorder);
}

void simulate(const PipelineSpec& spec, PipelineWorkspace& workspace, PipelineResult& result, Timeline& timeline) {
  prepare(spec.shape, workspace.program);
  TimelineWriter recorder(workspace.program, timeline);
  run_step(spec, workspace, result, recorder);
}

namespace {

/// In the steady state of an interleaved step each round of N microbatches holds what the round before it held: a step
/// of a few rounds has the same peaks. Whole numbers of bytes, so that the sums are the same to the last bit.
Shape with_fewer_rounds(const PipelineSpec& spec) noexcept {
  Shape shape = spec.shape;
  // Warm-up holds less than 2 p + N v forwards, a round runs N v of them; two rounds are steady.
  constexpr int enough = 6;
  const int group = shape.group_size();
  if (!facts_of(shape.kind).in_groups || shape.m / group <= enough) return shape;
  const bool whole = std::all_of(spec.activation_bytes.begin(), spec.activation_bytes.end(),
                                 [](double bytes) { return bytes == std::floor(bytes); });
  if (whole) shape.m = enough * group + shape.m % group;
  return shape;
}

}  // namespace

void fold_activations(const PipelineSpec& spec, PipelineWorkspace& workspace, PipelineResult& result) noexcept {
  PipelineSpec shorter = spec;
  shorter.shape = with_fewer_rounds(spec);
  prepare(shorter.shape, workspace.program);
  fold_inflight(shorter, workspace, result);
}

double PipelineResult::total_idle() const noexcept { return std::accumulate(idle.begin(), idle.end(), 0.0); }
double PipelineResult::total_busy() const noexcept { return std::accumulate(busy.begin(), busy.end(), 0.0); }

double PipelineResult::bubble_of_total() const noexcept {
  const double total = static_cast<double>(idle.size()) * makespan;
  return total > 0 ? total_idle() / total : 0;
}

double PipelineResult::bubble_of_ideal() const noexcept {
  const double waiting = total_idle();
  if (waiting == 0) return 0;
  const double working = total_busy();
  return working > 0 ? waiting / working : std::numeric_limits<double>::infinity();
}

}  // namespace shardplan::schedule
