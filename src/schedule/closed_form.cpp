#include "shardplan/schedule/closed_form.hpp"

#include <algorithm>
#include <cmath>

namespace shardplan::schedule {
namespace {

double pair_time(double forward, double backward, double alpha) noexcept {
  return std::max(forward, backward) + alpha * std::min(forward, backward);
}

bool all_equal(std::span<const double> values) noexcept {
  return std::all_of(values.begin(), values.end(), [&](double value) { return value == values.front(); });
}

double sum(std::span<const double> values) noexcept {
  double total = 0;
  for (const double value : values) total += value;
  return total;
}

/// Sum and largest of F and of B + W over the stages.
struct StageTimes {
  double sum_forward = 0, max_forward = 0;
  double sum_backward = 0, max_backward = 0;
};

StageTimes stage_times(const PipelineSpec& spec) noexcept {
  StageTimes times;
  for (std::size_t i = 0; i < spec.forward.size(); ++i) {
    const double bw = spec.backward[i] + spec.weight[i];
    times.sum_forward += spec.forward[i];
    times.sum_backward += bw;
    times.max_forward = std::max(times.max_forward, spec.forward[i]);
    times.max_backward = std::max(times.max_backward, bw);
  }
  return times;
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

/// How many p2p times the makespan grows by with equal stages, while a message takes no longer than an op.
std::optional<double> message_waits(const PipelineSpec& spec, const UniformTimes& t) noexcept {
  if (spec.p2p > std::min(t.forward, t.backward + t.weight)) return std::nullopt;
  const Shape& shape = spec.shape;
  const bool overlap = spec.p2p_mode == P2pMode::overlap;
  const double p = shape.p;
  const double m = shape.m;
  switch (shape.kind) {
    case ScheduleKind::one_f_one_b:
      if (overlap) return 2 * (p - 1 + std::floor((m - 1) * (p - 1) / p));
      if (m < 2) return std::nullopt;
      return p == 2 ? m + 1 : 2 * (m - 1) + 2 * (p - 1) - 1;
    case ScheduleKind::interleaved:
      if (!overlap || shape.group_size() != shape.p) return std::nullopt;
      return 2 * (p * shape.v - 1);
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<double> uniform_makespan(const Shape& shape, const UniformTimes& t) noexcept {
  const double p = shape.p;
  const double m = shape.m;
  const double v = shape.v;
  const double all = t.forward + t.backward + t.weight;
  const bool equal = t.forward == t.backward && t.backward == t.weight;
  const bool short_weight = t.weight <= t.forward && t.weight <= t.backward;
  const double pair = pair_time(t.forward, t.backward + t.weight, t.alpha);
  switch (shape.kind) {
    case ScheduleKind::naive: return m * p * all;
    case ScheduleKind::gpipe:
    case ScheduleKind::one_f_one_b: return (m + p - 1) * all;
    case ScheduleKind::interleaved: return (v * m + p - 1) * all;
    case ScheduleKind::bfs: return m >= p ? (v * m + p - 1) * all : ((v - 1) * p + m + p - 1) * all;
    case ScheduleKind::zb_h1:
      if (!short_weight || m < p) return std::nullopt;
      return m * all + (p - 1) * (t.forward + t.backward - t.weight);
    case ScheduleKind::zb_h2:
      if (!short_weight || m < 2 * p - 1) return std::nullopt;
      return m * all + (p - 1) * std::max(t.forward, t.forward + t.backward - 2 * t.weight);
    case ScheduleKind::zb_v:
      if (!equal || m < 2 * p - 1) return std::nullopt;
      return 2 * m * all + (p - 1) * t.forward;
    case ScheduleKind::dualpipe:
      if (t.weight > t.backward || t.backward > t.forward) return std::nullopt;
      return 1.5 * p * t.forward + (p + 1) * t.backward + 3 * t.weight + (m - p / 2 - 2) * pair;
    case ScheduleKind::dualpipe_v:
      if (t.weight > t.backward || t.backward > t.forward) return std::nullopt;
      return 3 * p * t.forward + (2 * p + 1) * t.backward + 3 * t.weight + (2 * m - p - 2) * pair;
  }
  return std::nullopt;
}

std::optional<double> makespan_closed_form(const PipelineSpec& spec) noexcept {
  const Shape& shape = spec.shape;
  const double m = shape.m;
  const double hops = 2.0 * (shape.p - 1) * spec.p2p;
  const bool silent = spec.p2p == 0 || shape.p == 1;
  if (shape.kind == ScheduleKind::naive) {
    return m * (sum(spec.forward) + sum(spec.backward) + sum(spec.weight) + hops);
  }
  if (shape.kind == ScheduleKind::gpipe && (silent || spec.p2p_mode == P2pMode::overlap)) {
    const StageTimes t = stage_times(spec);
    return t.sum_forward + t.sum_backward + (m - 1) * (t.max_forward + t.max_backward) + hops;
  }
  if (!all_equal(spec.forward) || !all_equal(spec.backward) || !all_equal(spec.weight)) return std::nullopt;
  const UniformTimes times{spec.forward.front(), spec.backward.front(), spec.weight.front(), spec.alpha};
  if (silent) return uniform_makespan(shape, times);
  const auto waits = message_waits(spec, times);
  if (!waits) return std::nullopt;
  return *uniform_makespan(shape, times) + *waits * spec.p2p;
}

double busy_closed_form(const PipelineSpec& spec, int rank) noexcept {
  const Shape& shape = spec.shape;
  const double m = microbatches_per_chunk(shape);
  const int chunks = chunks_per_rank(shape);
  const auto stage = [&](int chunk) { return static_cast<std::size_t>(stage_of(shape, rank, chunk)); };
  const auto full_backward = [&](int chunk) { return spec.backward[stage(chunk)] + spec.weight[stage(chunk)]; };
  double busy = 0;
  for (int chunk = 0; chunk < chunks; ++chunk) busy += m * (spec.forward[stage(chunk)] + full_backward(chunk));
  if (shape.kind != ScheduleKind::dualpipe && shape.kind != ScheduleKind::dualpipe_v) return busy;

  // What every F&B pair gains over running one after the other.
  const bool both_ways = shape.kind == ScheduleKind::dualpipe;
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
  const bool both_ways = placement(shape.kind) == Placement::bidirectional;
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
        const bool pairs = shape.kind == ScheduleKind::dualpipe_v;
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
  const int p = shape.p;
  const int m = shape.m;
  const int v = shape.v;
  switch (shape.kind) {
    case ScheduleKind::naive: return 1;
    case ScheduleKind::gpipe: return m;
    case ScheduleKind::one_f_one_b: return std::min(m, p - rank);
    case ScheduleKind::interleaved: return std::min(m * v, 2 * (p - 1 - rank) + (v - 1) * shape.group_size() + 1);
    case ScheduleKind::bfs: return m * v;
    case ScheduleKind::zb_h1: return std::min(m, p);
    case ScheduleKind::zb_h2: return std::min(m, 2 * p - 1);
    case ScheduleKind::zb_v:
      if (m < 2 * p - 1) return std::nullopt;
      return 2 * p;
    case ScheduleKind::dualpipe: return p + 1;
    case ScheduleKind::dualpipe_v: return 2 * p + 1;
  }
  return std::nullopt;
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
