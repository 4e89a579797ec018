#include "shardplan/schedule/closed_form.hpp"

#include <algorithm>
#include <cmath>

namespace shardplan::schedule {
namespace {

bool all_equal(std::span<const double> values) noexcept {
  return std::all_of(values.begin(), values.end(), [&](double value) { return value == values.front(); });
}

/// DualPipe's line of ranks as one half sees it: how long, where the rank stands, microbatches through a chunk.
struct Line {
  int half_ranks;
  int position;
  int microbatches;

  int steady() const noexcept { return microbatches - 2 * half_ranks + position + 1; }
  int inner() const noexcept { return half_ranks - 1 - position; }
  /// Forwards of the near chunk, and of the far one, that run together with a backward of the other.
  int near_pairs() const noexcept { return steady() - (inner() == 0 ? 1 : 0); }
  int far_pairs() const noexcept { return steady() + inner(); }
};

}  // namespace

std::optional<double> uniform_makespan(const Shape& shape, const UniformTimes& times) noexcept {
  return facts_of(shape.kind).makespan(shape, times);
}

std::optional<double> makespan_closed_form(const PipelineSpec& spec) noexcept {
  const ScheduleFacts& facts = facts_of(spec.shape.kind);
  if (facts.uneven_makespan != nullptr) {
    if (const auto makespan = facts.uneven_makespan(spec)) return makespan;
  }
  if (!all_equal(spec.forward) || !all_equal(spec.backward) || !all_equal(spec.weight)) return std::nullopt;
  const UniformTimes times{spec.forward.front(), spec.backward.front(), spec.weight.front(), spec.alpha};
  if (spec.p2p == 0 || spec.shape.p == 1) return uniform_makespan(spec.shape, times);
  if (facts.waits == nullptr || spec.p2p > std::min(times.forward, times.backward + times.weight)) return std::nullopt;
  const auto waits = facts.waits(spec);
  if (!waits) return std::nullopt;
  return *uniform_makespan(spec.shape, times) + *waits * spec.p2p;
}

double busy_closed_form(const PipelineSpec& spec, int rank) noexcept {
  const Shape& shape = spec.shape;
  const double m = microbatches_per_chunk(shape);
  const int chunks = chunks_per_rank(shape);
  const auto stage = [&](int chunk) { return static_cast<std::size_t>(stage_of(shape, rank, chunk)); };
  const auto full_backward = [&](int chunk) { return spec.backward[stage(chunk)] + spec.weight[stage(chunk)]; };
  double busy = 0;
  for (int chunk = 0; chunk < chunks; ++chunk) busy += m * (spec.forward[stage(chunk)] + full_backward(chunk));
  if (!facts_of(shape.kind).pairs_passes) return busy;

  // What every F&B pair gains over running one after the other.
  const bool both_ways = both_directions(shape.kind);
  const Line line{both_ways ? shape.p / 2 : shape.p, both_ways ? std::min(rank, shape.p - 1 - rank) : rank,
                  microbatches_per_chunk(shape)};
  const int near = both_ways && rank >= shape.p / 2 ? 1 : 0;
  const auto gain = [&](int forward, int backward) {
    return (1 - spec.alpha) * std::min(spec.forward[stage(forward)], full_backward(backward));
  };
  return busy - line.near_pairs() * gain(near, 1 - near) - line.far_pairs() * gain(1 - near, near);
}

double makespan_lower_bound(const PipelineSpec& spec) noexcept {
  const Shape& shape = spec.shape;
  const bool both_ways = both_directions(shape.kind);
  const bool exposed = spec.p2p_mode == P2pMode::exposed && shape.p > 1;
  const bool split = splits_backward(shape.kind);
  const int last_stage = shape.virtual_stages() - 1;
  const double m = microbatches_per_chunk(shape);

  // Forwards and backwards of the stages before this rank's first one, in either direction.
  double before = 0;
  double after = 0;
  double bound = 0;
  for (int rank = 0; rank < shape.p; ++rank) {
    double head = before;
    if (both_ways) {
      double other_way = 0;
      for (int i = 0; i < shape.p - 1 - rank; ++i) {
        other_way += spec.forward[static_cast<std::size_t>(i)] + spec.p2p;
      }
      head = std::min(head, other_way);
    }
    double blocked = 0;
    if (exposed && !both_ways) {
      for (int chunk = 0; chunk < shape.v; ++chunk) {
        const int stage = stage_of(shape, rank, chunk);
        const bool turn = placement(shape.kind) == Placement::vee && rank == shape.p - 1;
        const bool sends_forward = stage < last_stage && !(turn && chunk == 0);
        const bool sends_backward = stage > 0 && !(turn && chunk == 1);
        // A pair blocks once for two messages; count the one.
        const bool pairs = facts_of(shape.kind).pairs_passes && !both_ways;
        if (sends_forward && !pairs) blocked += m * spec.p2p;
        if (sends_backward) blocked += m * spec.p2p;
      }
      if (rank > 0) blocked -= spec.p2p;  // the last send's time is in `after`, or beyond the end
    }
    bound = std::max(bound, head + busy_closed_form(spec, rank) + std::max(0.0, blocked) + (split ? 0.0 : after));
    const auto stage = static_cast<std::size_t>(rank);
    before += spec.forward[stage] + spec.p2p;
    after += spec.backward[stage] + spec.weight[stage] + spec.p2p;
  }
  return bound;
}

std::optional<int> peak_inflight_closed_form(const Shape& shape, int rank) noexcept {
  return facts_of(shape.kind).in_flight(shape, rank);
}

double ideal_bubble_fraction(const Shape& shape, PipelineWorkspace& workspace, PipelineResult& result) noexcept {
  if (const auto makespan = uniform_makespan(shape, UniformTimes{})) {
    const double busy = 3.0 * shape.m * shape.v;
    return (*makespan - busy) / *makespan;
  }
  const auto stages = static_cast<std::size_t>(shape.virtual_stages());
  if (workspace.ones.size() < stages) workspace.ones.resize(stages, 1.0);
  PipelineSpec spec;
  spec.shape = shape;
  spec.forward = spec.backward = spec.weight = std::span<const double>(workspace.ones.data(), stages);
  simulate(spec, workspace, result);
  return result.bubble_of_total();
}

double ideal_bubble_fraction(ScheduleKind kind, int p, int m, int v) {
  PipelineWorkspace workspace;
  PipelineResult result;
  Shape shape;
  shape.kind = kind;
  shape.p = p;
  shape.m = m;
  shape.v = v;
  return ideal_bubble_fraction(shape, workspace, result);
}

}  // namespace shardplan::schedule
