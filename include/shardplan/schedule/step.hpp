// A simulated step as something to look at: what ran when, what was held when, and how other schedules would do.
#pragma once

#include <optional>
#include <vector>

#include "shardplan/schedule/simulate.hpp"

namespace shardplan::schedule {

/// Everything about one simulated step. The parts live elsewhere.
struct StepView {
  const PipelineSpec& spec;
  const PipelineResult& result;
  const Program& program;
  const Timeline& timeline;

  int ranks() const noexcept { return spec.shape.p; }
  std::size_t first_op(int rank) const noexcept { return timeline.first_op[static_cast<std::size_t>(rank)]; }
};

/// Activations held by a rank from `time` on.
struct HeldPoint {
  double time = 0;
  double count = 0;  ///< forwards, in chunks
  double bytes = 0;  ///< each chunk by its weight; the count where the spec has no weights
};

/// In order of time; the last point holds nothing.
std::vector<HeldPoint> held_over_time(const StepView& step, int rank);

/// When Megatron-LM starts to reduce each chunk's gradients on a rank with --overlap-grad-reduce and
/// align_grad_reduce: behind the backward slot that lies `rank` slots after the chunk's last one, so that all ranks
/// launch in the same slot; a chunk without such a slot waits for the last backward (schedules.py, grad_sync). Per
/// chunk; interleaved schedules.
std::vector<double> aligned_grad_sync(const StepView& step, int rank);

/// One schedule of a comparison, for a pipeline whose ranks are alike.
struct Alternative {
  Shape shape;
  double makespan = 0;
  double bubble = 0;                ///< of the makespan
  std::vector<double> peak_stages;  ///< most activations held, in full stages, per rank
  double parameter_copies = 1;      ///< of the model over all ranks
};

/// Times of one microbatch on a whole rank.
struct RankTimes {
  double forward = 1;
  double backward = 1;
  double weight = 1;
  double p2p = 0;
  P2pMode p2p_mode = P2pMode::overlap;
};

/// Every schedule that is legal for p ranks and m microbatches, in the order of ScheduleKind. Schedules of several
/// chunks cut a rank's times evenly; interleaved and bfs have `chunks` of them (2 where it is 1), and `current` has
/// them as they are.
std::vector<Alternative> legal_alternatives(int p, int m, int chunks, const RankTimes& times,
                                            std::optional<ScheduleKind> current = std::nullopt);

}  // namespace shardplan::schedule
