// Sums units into model chunks and chunks into pipeline ranks.
#include <algorithm>

#include "shardplan/plan/legality.hpp"
#include "shardplan/plan/stage_formulas.hpp"

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

namespace {

/// The states of a chunk's units, each rounded for itself.
void add_states(const EstimateWorkspace& w, const Chunk& chunk, StateBytes& states) noexcept {
  for (std::size_t i = chunk.first_unit_run; i < chunk.first_unit_run + chunk.unit_runs; ++i) {
    const double times = w.unit_runs[i].count;
    const StateBytes& unit = w.unit_runs[i].unit->states;
    states.parameters += times * unit.parameters;
    states.gradients += times * unit.gradients;
    states.optimizer += times * unit.optimizer;
    states.moments += times * unit.moments;
    states.paged += times * unit.paged;
  }
}

}  // namespace

void build_stages(const Run& run, EstimateWorkspace& w) noexcept {
  build_chunks(run, w);
  build_stage_states(run, w);
}

void build_chunks(const Run& run, EstimateWorkspace& w) noexcept { fold_chunks(NoTrace{}, run, w); }

void build_stage_states(const Run& run, EstimateWorkspace& w) noexcept {
  for (std::size_t rank = 0; rank < w.stages.size(); ++rank) build_stage_states(run, w, rank);
}

void build_stage_states(const Run& run, EstimateWorkspace& w, std::size_t rank) noexcept {
  Stage& stage = w.stages[rank];
  stage.states = StateBytes{};
  if (rounds_per_unit(run.training.framework)) {
    const std::size_t per_rank = static_cast<std::size_t>(schedule::chunks_per_rank(w.spec.shape));
    for (std::size_t c = rank * per_rank; c < (rank + 1) * per_rank; ++c) add_states(w, w.chunks[c], stage.states);
  } else {
    stage.states = state_bytes(w.rule, stage.weights, *w.optimizer);
  }
  const bool one_layer = w.optimizer->form == StateForm::block_coordinate && !run.training.peft.active();
  if (one_layer) stage.states += active_layer_bytes(w.rule, stage.largest_layer);
}

}  // namespace shardplan
