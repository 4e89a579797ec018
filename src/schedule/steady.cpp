// Steps of many microbatches. Between its warm-up and its drain every op of microbatch i + c is what the op of
// microbatch i was, L later: start times are maxima of sums, so once that holds for as many microbatches in a row as an
// op reaches back, it holds until the drain, and the drain is shifted as a whole. A short step shows c and L; the rest
// is n times L.
#include <algorithm>
#include <cmath>

#include "busy.hpp"
#include "inflight.hpp"
#include "shardplan/schedule/simulate.hpp"

namespace shardplan::schedule {
namespace {

constexpr std::size_t index(int i) noexcept { return static_cast<std::size_t>(i); }

bool has_steady_state(const ScheduleFacts& facts) noexcept { return !facts.one_at_a_time && !facts.in_phases; }

/// Microbatches of a chunk after which the order of ops repeats.
int order_period(const Shape& shape) noexcept { return facts_of(shape.kind).in_groups ? shape.group_size() : 1; }

/// More microbatches of a chunk than lie between an op and any other that it waits for: what warm-up runs ahead, the
/// lag of the weights, and the groups of interleaved chunks.
int reach(const Shape& shape) noexcept {
  return 4 * shape.p + (facts_of(shape.kind).in_groups ? 3 * shape.group_size() : 0) + 8;
}

/// A step with so many microbatches through each chunk.
Shape with_microbatches(Shape shape, int per_chunk) noexcept {
  shape.m = both_directions(shape.kind) ? 2 * per_chunk : per_chunk;
  return shape;
}

/// The steady state of the step just simulated: `period` microbatches take `seconds`; period 0 where it is not reached.
struct Steady {
  int period = 0;
  double seconds = 0;
};

/// Whether all arrivals of `window` microbatches before `end` are those `period` earlier, later by the same time.
bool repeats(const PipelineWorkspace& w, std::size_t channels, int length, int end, int window, int period,
             double& seconds) noexcept {
  // Rounding of a sum that went through a few more additions.
  constexpr double rounding = 2e-15;
  seconds = 0;
  bool known = false;
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const double* const arrival = w.arrivals.data() + channel * index(length);
    // The pipeline's ends take their input from nobody: all zeros.
    if (arrival[end - 1] == 0 && arrival[end - window - period] == 0) continue;
    if (!known) seconds = arrival[end - 1] - arrival[end - 1 - period];
    known = true;
    for (int i = end - window; i < end; ++i) {
      if (std::abs(arrival[i] - arrival[i - period] - seconds) > rounding * arrival[i]) return false;
    }
  }
  return known;
}

Steady find_steady(const Shape& shape, const PipelineWorkspace& w, int drain) noexcept {
  const int length = microbatches_per_chunk(shape);
  const std::size_t channels = 2 * index(shape.p) * index(chunks_per_rank(shape));
  const int window = 2 * drain;
  const int step = order_period(shape);
  Steady steady;
  for (int period = step; period <= drain; period += step) {
    if (repeats(w, channels, length, length - drain, window, period, steady.seconds)) {
      steady.period = period;
      return steady;
    }
  }
  return steady;
}

/// What `rounds` more periods add to the result of the short step.
void extend(const PipelineSpec& spec, PipelineWorkspace& w, double rounds, double seconds,
            PipelineResult& result) noexcept {
  const std::size_t p = index(spec.shape.p);
  const double later = rounds * seconds;
  for (double& end : result.last_end) end += later;
  for (double& ready : result.grad_ready) ready += later;
  result.makespan = result.max_span = 0;
  for (std::size_t rank = 0; rank < p; ++rank) {
    result.makespan = std::max(result.makespan, result.last_end[rank]);
    result.max_span = std::max(result.max_span, result.last_end[rank] - result.first_start[rank]);
  }
  // A program of groups grows with the microbatches, and holds in each round what it held in the one before.
  const bool whole = std::all_of(spec.activation_bytes.begin(), spec.activation_bytes.end(),
                                 [](double bytes) { return bytes == std::floor(bytes); });
  if (facts_of(spec.shape.kind).in_groups && whole) {
    const std::size_t chunks = index(chunks_per_rank(spec.shape));
    const double more = spec.shape.m - w.program.shape.m;
    for (std::size_t i = 0; i < p * chunks; ++i) {
      const PipelineWorkspace::Chunk& chunk = w.chunks[i];
      result.busy[i / chunks] += more * (chunk.f + chunk.bw);
      result.exposed_p2p[i / chunks] += more * (chunk.forward_block + chunk.backward_block);
    }
  } else {
    write_program(spec.shape, w.program);
    fold_busy(spec, w, result);
    fold_inflight(spec, w, result);
  }
  for (std::size_t rank = 0; rank < p; ++rank) result.idle[rank] = result.makespan - result.busy[rank];
}

}  // namespace

bool simulate_steady(const PipelineSpec& spec, PipelineWorkspace& workspace, PipelineResult& result) noexcept {
  const Shape& shape = spec.shape;
  if (!has_steady_state(facts_of(shape.kind))) return false;
  const int full = microbatches_per_chunk(shape);
  const int drain = reach(shape);
  const int order = order_period(shape);
  PipelineSpec shorter = spec;
  const auto run = [&](int per_chunk) {
    shorter.shape = with_microbatches(shape, per_chunk);
    simulate(shorter, workspace, result);
    return find_steady(shorter.shape, workspace, drain);
  };
  // Longer and longer: the warm-up lasts where two ranks are nearly as slow.
  for (int least = 8 * drain; least <= full / 4; least *= 4) {
    int length = least + (full - least) % order;
    Steady steady = run(length);
    if (steady.period == 0) continue;
    if (const int beyond = (full - length) % steady.period; beyond != 0) {
      length += beyond;
      const int period = steady.period;
      steady = run(length);
      if (steady.period != period) continue;
    }
    extend(spec, workspace, (full - length) / steady.period, steady.seconds, result);
    return true;
  }
  return false;
}

}  // namespace shardplan::schedule
