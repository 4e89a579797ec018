#include "shardplan/schedule/simulate.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>

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
void lay_channels(const PipelineSpec& spec, PipelineWorkspace& w) {
  const Shape& shape = spec.shape;
  const int chunks = chunks_per_rank(shape);
  const std::size_t all_chunks = index(shape.p) * index(chunks);
  const std::size_t length = index(microbatches_per_chunk(shape));
  // After the chunks' own, the sink of the forwards and that of the backwards; dualpipe has two ends, so two times
  // length.
  const std::size_t sink = 2 * all_chunks;
  w.chunks.assign(all_chunks, Chunk{});
  w.channels.assign(sink + 2, Channel{});
  if (w.arrivals.size() < (sink + 4) * length) w.arrivals.resize((sink + 4) * length);
  for (std::size_t i = 0; i < w.channels.size(); ++i) {
    w.channels[i].head = w.arrivals.data() + (i <= sink ? i : i + 1) * length;
    w.channels[i].tail = w.channels[i].head;
  }

  const bool exposed = spec.p2p_mode == P2pMode::exposed;
  const auto fill_with_zeros = [length](Channel& channel) {
    std::fill(channel.head, channel.head + length, 0.0);
    channel.head += length;
  };
  for (int rank = 0; rank < shape.p; ++rank) {
    for (int c = 0; c < chunks; ++c) {
      const std::size_t here = index(rank) * index(chunks) + index(c);
      const std::size_t stage = index(stage_of(shape, rank, c));
      Chunk& chunk = w.chunks[here];
      chunk.f = spec.forward[stage];
      chunk.b = spec.backward[stage];
      chunk.w = spec.weight[stage];
      chunk.bw = chunk.b + chunk.w;
      w.channels[2 * here].consumer = rank;
      w.channels[2 * here + 1].consumer = rank;
    }
  }
  for (Chunk& chunk : w.chunks) {
    chunk.forward_out = &w.channels[sink];
    chunk.backward_out = &w.channels[sink + 1];
  }
  for (int rank = 0; rank < shape.p; ++rank) {
    for (int c = 0; c < chunks; ++c) {
      const std::size_t here = index(rank) * index(chunks) + index(c);
      const Place to = next_place(shape, rank, c);
      if (to.rank < 0) {
        fill_with_zeros(w.channels[2 * here + 1]);  // its own forward is the backward's input
        continue;
      }
      const std::size_t there = index(to.rank) * index(chunks) + index(to.chunk);
      const double p2p = to.rank == rank ? 0.0 : spec.p2p;
      w.chunks[here].forward_out = &w.channels[2 * there];
      w.chunks[there].backward_out = &w.channels[2 * here + 1];
      w.chunks[here].forward_delay = w.chunks[there].backward_delay = p2p;
      w.chunks[here].forward_block = w.chunks[there].backward_block = exposed ? p2p : 0.0;
    }
  }
  for (std::size_t here = 0; here < all_chunks; ++here) {
    if (w.chunks[here].backward_out == &w.channels[sink + 1]) fill_with_zeros(w.channels[2 * here]);
  }
}

struct NoTimeline {
  void rank(int) noexcept {}
  void op(double, double) noexcept {}
  void stop() noexcept {}
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
  void rank(int rank) noexcept { at_ = next_[rank_ = index(rank)]; }
  void op(double start, double end) noexcept {
    timeline_.start[at_] = start;
    timeline_.end[at_++] = end;
  }
  void stop() noexcept { next_[rank_] = at_; }

 private:
  Timeline& timeline_;
  std::vector<std::size_t> next_;
  std::size_t rank_ = 0;
  std::size_t at_ = 0;
};

// Lets a rank run until an input is missing; whoever makes that input puts the rank back on the list of ready ranks.
// Every op runs once and every rank is woken at most once an op: linear.
template <class Recorder>
void run_ranks(const PipelineSpec& spec, PipelineWorkspace& w, Recorder& recorder) noexcept {
  const Shape& shape = spec.shape;
  const std::size_t chunks = index(chunks_per_rank(shape));
  const double alpha = spec.alpha;
  std::int32_t* const ready = w.ready.data();
  std::size_t waiting = 0;
  for (int rank = shape.p - 1; rank >= 0; --rank) ready[waiting++] = rank;

  const auto send = [ready, &waiting](Channel& channel, double arrival) {
    *channel.head++ = arrival;
    if (channel.waited) {
      channel.waited = false;
      ready[waiting++] = channel.consumer;
    }
  };
  const auto missing = [](Channel& channel) {
    if (channel.tail != channel.head) return false;
    channel.waited = true;
    return true;
  };

  while (waiting > 0) {
    const std::int32_t at = ready[--waiting];
    Rank& rank = w.ranks[index(at)];
    Chunk* const chunk = w.chunks.data() + index(at) * chunks;
    Channel* const inputs = w.channels.data() + 2 * index(at) * chunks;
    double free = rank.free;
    double end = rank.last_end;
    recorder.rank(at);
    bool stopped = false;
    while (rank.run != rank.end && !stopped) {
      const Run& run = *rank.run;
      const Slot* slot = run.begin() + rank.slot;
      std::uint32_t left = run.count - rank.iteration;
      for (; left > 0; --left) {
        for (; slot != run.end(); ++slot) {
          Chunk& c = chunk[slot->chunk];
          double start = free;
          switch (slot->kind) {
            case OpKind::F: {
              Channel& input = inputs[2 * slot->chunk];
              if (missing(input)) goto stop;
              start = std::max(free, *input.tail++);
              end = start + c.f;
              free = end + c.forward_block;
              send(*c.forward_out, end + c.forward_delay);
              break;
            }
            case OpKind::B: {
              Channel& input = inputs[2 * slot->chunk + 1];
              if (missing(input)) goto stop;
              start = std::max(free, *input.tail++);
              end = start + c.b;
              free = end + c.backward_block;
              send(*c.backward_out, end + c.backward_delay);
              break;
            }
            case OpKind::W:
              free = end = start + c.w;
              c.grad_ready = end;
              break;
            case OpKind::BW: {
              Channel& input = inputs[2 * slot->chunk + 1];
              if (missing(input)) goto stop;
              start = std::max(free, *input.tail++);
              end = start + c.bw;
              free = end + c.backward_block;
              c.grad_ready = end;
              send(*c.backward_out, end + c.backward_delay);
              break;
            }
            case OpKind::F_BW: {
              Chunk& back = chunk[slot->backward_chunk];
              Channel& forward = inputs[2 * slot->chunk];
              Channel& backward = inputs[2 * slot->backward_chunk + 1];
              if (missing(forward) || missing(backward)) goto stop;
              start = std::max({free, *forward.tail++, *backward.tail++});
              end = start + std::max(c.f, back.bw) + alpha * std::min(c.f, back.bw);
              free = end + std::max(c.forward_block, back.backward_block);
              back.grad_ready = end;
              send(*c.forward_out, end + c.forward_delay);
              send(*back.backward_out, end + back.backward_delay);
              break;
            }
          }
          recorder.op(start, end);
        }
        slot = run.begin();
      }
      ++rank.run;
      rank.iteration = rank.slot = 0;
      continue;
    stop:
      rank.iteration = run.count - left;
      rank.slot = static_cast<std::uint32_t>(slot - run.begin());
      stopped = true;
    }
    rank.free = free;
    rank.last_end = end;
    recorder.stop();
  }
}

/// Busy and blocked time: counts of the program times durations, so no sum over ops.
void fold_busy(const PipelineSpec& spec, PipelineWorkspace& w, PipelineResult& result) noexcept {
  const int p = spec.shape.p;
  const std::size_t chunks = index(chunks_per_rank(spec.shape));
  result.busy.assign(index(p), 0);
  result.exposed_p2p.assign(index(p), 0);
  for (int rank = 0; rank < p; ++rank) {
    const Chunk* const chunk = w.chunks.data() + index(rank) * chunks;
    double busy = 0;
    double blocked = 0;
    for (const Run* run = w.program.begin(rank); run != w.program.end(rank); ++run) {
      for (const Slot& slot : *run) {
        const double count = run->count;
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
            busy += count * (std::max(c.f, back.bw) + spec.alpha * std::min(c.f, back.bw));
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

void collect(const PipelineSpec& spec, PipelineWorkspace& w, PipelineResult& result) noexcept {
  const std::size_t p = index(spec.shape.p);
  const std::size_t chunks = index(chunks_per_rank(spec.shape));
  const std::size_t length = index(microbatches_per_chunk(spec.shape));
  fold_busy(spec, w, result);
  result.first_start.resize(p);
  result.last_end.resize(p);
  result.idle.resize(p);
  result.grad_ready.resize(w.chunks.size());
  result.makespan = 0;
  result.max_span = 0;
  for (std::size_t rank = 0; rank < p; ++rank) {
    // Every order starts with a forward, and nothing was before it.
    const std::size_t first_input = 2 * (rank * chunks + w.program.begin(static_cast<int>(rank))->slots[0].chunk);
    result.first_start[rank] = w.arrivals[first_input * length];
    result.last_end[rank] = w.ranks[rank].last_end;
    result.makespan = std::max(result.makespan, result.last_end[rank]);
    result.max_span = std::max(result.max_span, result.last_end[rank] - result.first_start[rank]);
  }
  for (std::size_t rank = 0; rank < p; ++rank) result.idle[rank] = result.makespan - result.busy[rank];
  for (std::size_t i = 0; i < w.chunks.size(); ++i) result.grad_ready[i] = w.chunks[i].grad_ready;
}

template <class Recorder>
void run_step(const PipelineSpec& spec, PipelineWorkspace& w, PipelineResult& result, Recorder& recorder) noexcept {
  lay_channels(spec, w);
  w.ready.resize(index(spec.shape.p));
  w.ranks.assign(index(spec.shape.p), Rank{});
  for (int rank = 0; rank < spec.shape.p; ++rank) {
    w.ranks[index(rank)].run = w.program.begin(rank);
    w.ranks[index(rank)].end = w.program.end(rank);
  }
  run_ranks(spec, w, recorder);
  assert(std::all_of(w.ranks.begin(), w.ranks.end(), [](const Rank& rank) { return rank.run == rank.end; }));
  collect(spec, w, result);
  fold_inflight(spec, w, result);
}

void prepare(const Shape& shape, Program& program) {
  if (program.first_run.empty() || !(program.shape == shape)) write_program(shape, program);
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
