// The simulated step of every rank over time (`--detail`).
#include <algorithm>
#include <cmath>

#include "shardplan/plan/workspace.hpp"
#include "shardplan/schedule/step.hpp"

namespace shardplan {
namespace {

// Longer steps have no curve: their simulation is a shorter one, extended.
constexpr double most_ops = 1 << 20;
// A curve of more points is cut into this many equal spans, each with its largest value.
constexpr std::size_t most_points = 2000;

std::vector<HeldActivations> thinned(const std::vector<schedule::HeldPoint>& points, double makespan) {
  std::vector<HeldActivations> held;
  const auto bytes_of_point = [](double bytes) { return static_cast<std::int64_t>(std::llround(bytes)); };
  if (points.size() <= most_points) {
    for (const schedule::HeldPoint& point : points) held.push_back({point.time, bytes_of_point(point.bytes)});
    return held;
  }
  const double span = makespan / static_cast<double>(most_points);
  std::size_t next = 0;
  double now = 0;
  for (std::size_t i = 0; i < most_points; ++i) {
    const double begin = static_cast<double>(i) * span;
    double most = now;
    for (; next < points.size() && (points[next].time < begin + span || i + 1 == most_points); ++next) {
      now = points[next].bytes;
      most = std::max(most, now);
    }
    held.push_back({begin, bytes_of_point(most)});
  }
  held.push_back({makespan, bytes_of_point(now)});
  return held;
}

}  // namespace

StepTimeline step_timeline(const Run& run, EstimateWorkspace& w) {
  StepTimeline all;
  all.makespan_s = w.simulated.makespan;
  all.max_span_s = w.simulated.max_span;
  const schedule::Shape& shape = w.spec.shape;
  const int chunks = schedule::chunks_per_rank(shape);
  const bool drawn = static_cast<double>(run.microbatches()) * shape.virtual_stages() <= most_ops;
  schedule::Timeline timeline;
  schedule::PipelineResult result;
  if (drawn) schedule::simulate(w.spec, w.pipeline, result, timeline);
  const schedule::StepView step{w.spec, result, w.pipeline.program, timeline};
  const bool overlaps = run.training.overlap.grad_reduce;
  for (int rank = 0; rank < shape.p; ++rank) {
    const std::size_t at = static_cast<std::size_t>(rank);
    StageTimeline stage;
    stage.stage = rank;
    stage.first_start_s = w.simulated.first_start[at];
    stage.last_end_s = w.simulated.last_end[at];
    stage.busy_s = w.simulated.busy[at];
    stage.exposed_p2p_s = w.simulated.exposed_p2p[at];
    for (int c = 0; c < chunks; ++c) {
      const std::size_t index = at * static_cast<std::size_t>(chunks) + static_cast<std::size_t>(c);
      stage.gradients_ready_s.push_back(w.simulated.grad_ready[index]);
    }
    if (overlaps && drawn && aligns_reduction(run)) {
      stage.reduce_start_s = schedule::aligned_grad_sync(step, rank);
    } else {
      for (int c = 0; c < chunks; ++c) {
        stage.reduce_start_s.push_back(overlaps ? gradient_reduce_start(run, w.spec.shape, w.simulated, at, c)
                                                : stage.last_end_s);
      }
    }
    if (drawn) {
      stage.held = thinned(schedule::held_over_time(step, rank), w.simulated.makespan);
    }
    all.stages.push_back(std::move(stage));
  }
  return all;
}

}  // namespace shardplan
