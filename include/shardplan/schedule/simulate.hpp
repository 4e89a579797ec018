// One training step of a pipeline, op by op.
//
// A rank executes its fixed op list in order; an op starts when the rank is free and its input has arrived. Input from
// another rank arrives `p2p` after the op that made it ended. Time 0 is the first op's start. Any unit of time, any
// unit of bytes. Integer times below 2^53 stay exact integers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "shardplan/core/names.hpp"
#include "shardplan/schedule/program.hpp"
#include "shardplan/schedule/shape.hpp"

namespace shardplan::schedule {

/// overlap: p2p is latency only. exposed: the sender is also blocked for p2p after every op that sends (an F&B pair
/// once). Chunks that are neighbours on one rank exchange nothing.
enum class P2pMode : std::uint8_t { overlap, exposed };

/// A schedule with times. Spans are per virtual stage in model order, shape.virtual_stages() long; the caller keeps
/// them alive.
struct PipelineSpec {
  Shape shape;
  std::span<const double> forward;   ///< F of one microbatch
  std::span<const double> backward;  ///< B, the gradient of the input alone
  std::span<const double> weight;    ///< W, the gradient of the weights; schedules with one backward op take B + W
  double p2p = 0;
  P2pMode p2p_mode = P2pMode::overlap;
  double alpha = 1;   ///< dualpipe's F&B lasts max(F, BW) + alpha * min(F, BW): 1 no gain, 0 perfect overlap
  double retain = 1;  ///< share of an activation that lives on between B and W
  std::span<const double> activation_bytes;  ///< of one microbatch; empty: 1 each, so bytes are counts
};

/// Per rank: [rank]. Per chunk: [rank * chunks + chunk], its virtual stage is stage_of(shape, rank, chunk).
struct PipelineResult {
  double makespan = 0;  ///< from the first op's start to the last op's end over all ranks: ends in a global barrier
  double max_span = 0;  ///< largest span: the zero-bubble papers' cost, which bypasses the optimizer's barrier
  std::vector<double> busy;         ///< sum of the rank's ops
  std::vector<double> idle;         ///< makespan - busy; includes exposed_p2p
  std::vector<double> exposed_p2p;  ///< time the rank is blocked sending; 0 in overlap
  std::vector<double> first_start;
  std::vector<double> last_end;  ///< span = last_end - first_start

  // Activations. A forward counts from its start; BW frees at its end; B frees 1 - retain at its end, W the rest; an
  // F&B pair holds both.
  std::vector<double> peak_inflight;  ///< most forwards held at once, in chunks (divide by v for full stages)
  std::vector<double> peak_bytes;     ///< most activation bytes at once, each chunk by its own weight

  // Per chunk.
  std::vector<double> grad_ready;      ///< end of its last BW or W: gradients are complete
  std::vector<double> forward_bytes;   ///< most activation bytes on the rank while this chunk runs a forward
  std::vector<double> backward_bytes;  ///< and while it runs a BW or B
  std::vector<double> peak_live;       ///< forwards of this chunk that are held at the rank's peak_bytes

  double total_idle() const noexcept;
  double total_busy() const noexcept;
  /// Idle share of p * makespan: (p - 1)/(m + p - 1) for 1F1B with equal stages.
  double bubble_of_total() const noexcept;
  /// Idle over busy: (p - 1)/m for 1F1B with equal stages. Infinite where nothing is busy but p2p takes time.
  double bubble_of_ideal() const noexcept;
};

/// Buffers of a simulation, reused: warm, nothing is allocated. One per thread.
struct PipelineWorkspace {
  Program program;  ///< of the last shape; kept as long as the shape stays the same

  /// A queue of arrival times between two chunks, in one direction.
  struct Channel {
    double* head = nullptr;        ///< where the next arrival goes
    const double* tail = nullptr;  ///< the next one to be taken
    bool waited = false;           ///< the rank that takes from it stands still for it
  };
  struct Rank;
  struct Chunk {
    Channel forward_in, backward_in;
    Chunk* next = nullptr;      ///< takes the forwards' outputs; at the end of the pipeline a sink
    Chunk* previous = nullptr;  ///< takes the backwards' outputs
    Rank* next_rank = nullptr;  ///< where those two lie
    Rank* previous_rank = nullptr;
    double f = 0, b = 0, w = 0, bw = 0;
    double forward_delay = 0, backward_delay = 0;  ///< end of op to arrival
    double forward_block = 0, backward_block = 0;  ///< end of op to rank free
    double grad_ready = 0;
  };
  struct Rank {
    Chunk* chunk = nullptr;  ///< of `slot`, kept so that a woken rank has its queue at hand
    const Slot* slot = nullptr;
    const Repeat* repeat = nullptr;  ///< where the rank stands in its program
    const Repeat* end = nullptr;
    Chunk* chunks = nullptr;
    std::uint32_t left = 0;  ///< rounds of the entry, this one included
    int number = 0;
    double free = 0;
    double last_end = 0;
  };
  std::vector<double> arrivals;
  std::vector<Chunk> chunks;  ///< and a sink
  std::vector<Rank> ranks;
  std::vector<Rank*> ready;
  std::vector<double> live;
  std::vector<double> ones;
};

/// Start and end of every op, rank by rank in program order.
struct Timeline {
  std::vector<std::size_t> first_op;  ///< of each rank; p + 1 entries
  std::vector<double> start;
  std::vector<double> end;
};

/// Simulates a legal spec. Linear in the number of ops, nothing allocated once the buffers are warm.
void simulate(const PipelineSpec& spec, PipelineWorkspace& workspace, PipelineResult& result) noexcept;

/// The same, and every op's times. workspace.program names the ops (for_each_op).
void simulate(const PipelineSpec& spec, PipelineWorkspace& workspace, PipelineResult& result, Timeline& timeline);

/// The same result for a step of many microbatches, in the time of a short one: where the steady state repeats, to the
/// last bits of its op times over more microbatches than any op reaches back, it is repeated on paper. False where it
/// does not, or the schedule has no steady state (naive, gpipe, bfs), or the step is short: the result is of no use
/// then.
bool simulate_steady(const PipelineSpec& spec, PipelineWorkspace& workspace, PipelineResult& result) noexcept;

/// Of a simulation what no time decides: peak_inflight, peak_bytes, forward_bytes, backward_bytes and peak_live. The
/// other results are left as they were.
void fold_activations(const PipelineSpec& spec, PipelineWorkspace& workspace, PipelineResult& result) noexcept;

}  // namespace shardplan::schedule

namespace shardplan {
template <>
inline constexpr std::array<std::string_view, 2> names_of<schedule::P2pMode> = {"overlap", "exposed"};
}  // namespace shardplan
