// Sums units into model chunks and chunks into pipeline ranks.
#include <algorithm>

#include "shardplan/plan/legality.hpp"
#include "shardplan/plan/stage_formulas.hpp"
#include "shardplan/plan/state_folds.hpp"

namespace shardplan {

schedule::Shape shape_of(const Run& run) noexcept {
  schedule::Shape shape;
  shape.kind = run.parallel.schedule;
  shape.p = run.parallel.pipeline;
  shape.v = run.parallel.virtual_pipeline;
  shape.m = static_cast<int>(run.microbatches());
  if (shape.kind == ScheduleKind::interleaved) {
    shape.group = plan::interleaved_group(run.training.framework, shape.p, run.microbatches());
  }
  return shape;
}

stage_parts::LayerRun stage_parts::layers_alike(const Run& run, int chunk_first, int layer, int end,
                                                bool has_frozen_input) noexcept {
  const std::vector<std::uint8_t>& kinds = run.model.layer_kinds;
  const Recompute& recompute = run.training.recompute;
  const auto kind_of = [&kinds](int i) { return kinds[static_cast<std::size_t>(i)]; };
  const auto alone = [&](int i) { return recompute.mode == RecomputeMode::first_n && i - chunk_first >= recompute.n; };
  LayerRun alike{layer, 1, kind_of(layer), layer == 0 && has_frozen_input, alone(layer)};
  if (alike.frozen_input) return alike;
  for (int next = layer + 1; next < end; ++next, ++alike.count) {
    if (kind_of(next) != alike.kind || alone(next) != alike.left_alone) break;
  }
  return alike;
}

void build_stages(const Run& run, EstimateWorkspace& w) noexcept {
  build_chunks(run, w);
  build_stage_states(run, w);
}

void build_chunks(const Run& run, EstimateWorkspace& w) noexcept { fold_chunks(NoTrace{}, run, w); }

void build_stage_states(const Run& run, EstimateWorkspace& w) noexcept {
  for (std::size_t rank = 0; rank < w.stages.size(); ++rank) build_stage_states(run, w, rank);
}

void build_stage_states(const Run& run, EstimateWorkspace& w, std::size_t rank) noexcept {
  fold_stage_states(NoTrace{}, run, w, rank);
}

}  // namespace shardplan
