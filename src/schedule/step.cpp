#include "shardplan/schedule/step.hpp"

#include <algorithm>

#include "shardplan/schedule/legality.hpp"

namespace shardplan::schedule {

std::vector<HeldPoint> held_over_time(const StepView& step, int rank) {
  const PipelineSpec& spec = step.spec;
  std::vector<HeldPoint> points;
  HeldPoint now;
  const auto change = [&](double time, int stage, double by) {
    now.time = time;
    now.count += by;
    now.bytes += by * (spec.activation_bytes.empty() ? 1.0 : spec.activation_bytes[static_cast<std::size_t>(stage)]);
    if (!points.empty() && points.back().time == time) {
      points.back() = now;
    } else {
      points.push_back(now);
    }
  };
  std::size_t at = step.first_op(rank);
  for_each_op(step.program, rank, [&](const Op& op) {
    const double start = step.timeline.start[at];
    const double end = step.timeline.end[at++];
    switch (op.kind) {
      case OpKind::F: change(start, op.stage, 1); break;
      case OpKind::B: change(end, op.stage, spec.retain - 1); break;
      case OpKind::W: change(end, op.stage, -spec.retain); break;
      case OpKind::BW: change(end, op.stage, -1); break;
      case OpKind::F_BW:
        change(start, op.stage, 1);
        change(end, op.backward_stage, -1);
        break;
    }
  });
  return points;
}

std::vector<double> aligned_grad_sync(const StepView& step, int rank) {
  const Shape& shape = step.spec.shape;
  std::vector<double> ends;  // of the rank's backward slots
  std::vector<std::size_t> last(static_cast<std::size_t>(chunks_per_rank(shape)), 0);
  std::size_t at = step.first_op(rank);
  for_each_op(step.program, rank, [&](const Op& op) {
    const double end = step.timeline.end[at++];
    if (op.kind != OpKind::BW) return;
    const int chunk = op.stage / shape.p;
    last[static_cast<std::size_t>(chunk)] = ends.size();
    ends.push_back(end);
  });
  std::vector<double> starts;
  starts.reserve(last.size());
  for (const std::size_t slot : last) {
    starts.push_back(ends[std::min(slot + static_cast<std::size_t>(rank), ends.size() - 1)]);
  }
  return starts;
}

std::vector<Alternative> legal_alternatives(int p, int m, int chunks, const RankTimes& times,
                                            std::optional<ScheduleKind> current) {
  std::vector<Alternative> all;
  PipelineWorkspace workspace;
  PipelineResult result;
  for (std::size_t i = 0; i < names_of<ScheduleKind>.size(); ++i) {
    const auto kind = static_cast<ScheduleKind>(i);
    const int fixed = fixed_chunks(kind);
    const int v = kind == current ? chunks : fixed > 0 ? fixed : std::max(chunks, 2);
    const Shape shape{kind, p, m, v, 0, BackwardOrder::fifo};
    if (!is_legal(shape)) continue;
    const auto stages = static_cast<std::size_t>(shape.virtual_stages());
    const std::vector<double> forward(stages, times.forward / v);
    const std::vector<double> backward(stages, times.backward / v);
    const std::vector<double> weight(stages, times.weight / v);
    PipelineSpec spec;
    spec.shape = shape;
    spec.forward = forward;
    spec.backward = backward;
    spec.weight = weight;
    spec.p2p = times.p2p;
    spec.p2p_mode = times.p2p_mode;
    simulate(spec, workspace, result);
    Alternative alternative;
    alternative.shape = shape;
    alternative.makespan = result.makespan;
    alternative.bubble = result.bubble_of_total();
    for (const double peak : result.peak_inflight) alternative.peak_stages.push_back(peak / v);
    alternative.parameter_copies = placement(kind) == Placement::bidirectional ? 2 : 1;
    all.push_back(alternative);
  }
  return all;
}

}  // namespace shardplan::schedule
