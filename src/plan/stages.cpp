// Sums units into model chunks and chunks into pipeline ranks.
#include <algorithm>

#include "shardplan/physics/layer_inputs.hpp"
#include "shardplan/plan/legality.hpp"
#include "shardplan/plan/workspace.hpp"

namespace shardplan {
namespace {

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

template <std::size_t From, std::size_t To>
void merge_shapes(const FixedList<MatrixShape, From>& from, FixedList<MatrixShape, To>& to) noexcept {
  for (const MatrixShape& shape : from) {
    if (std::find(to.begin(), to.end(), shape) == to.end()) to.add(shape);
  }
}

void add_unit(const Unit& unit, double times, Stage& stage) noexcept {
  Unit& total = stage.total;
  stage.weights.dense += unit.weights.dense.times(times);
  stage.weights.expert += unit.weights.expert.times(times);
  total.matrix_step.add(unit.matrix_step, times);
  total.flop.forward += times * unit.flop.forward;
  total.flop.recompute += times * unit.flop.recompute;
  total.time.forward_s += times * unit.time.forward_s;
  total.time.backward_s += times * unit.time.backward_s;
  total.time.recompute_s += times * unit.time.recompute_s;
  total.time.weight_gradient_s += times * unit.time.weight_gradient_s;
  total.time.gemm_s += times * unit.time.gemm_s;
  total.time.attention_s += times * unit.time.attention_s;
  total.forward_exposed_s += times * unit.forward_exposed_s;
  total.backward_exposed_s += times * unit.backward_exposed_s;
  for (std::size_t i = 0; i < collective_count; ++i) {
    const CollectiveSum& from = unit.collectives[i];
    CollectiveSum& to = total.collectives[i];
    to.calls += times * from.calls;
    to.message = std::max(to.message, from.message);
    to.sent += times * from.sent;
    to.time_s += times * from.time_s;
    to.exposed_s += times * from.exposed_s;
  }
  merge_shapes(unit.shapes, stage.shapes);
}

void add_time(const Unit& unit, double times, double per_microbatch_s, Chunk& chunk) noexcept {
  chunk.forward_s += times * (unit.time.forward_s + unit.forward_exposed_s) + per_microbatch_s;
  chunk.backward_s += times * (unit.time.backward_s + unit.time.recompute_s + unit.backward_exposed_s);
  chunk.weight_gradient_s += times * unit.time.weight_gradient_s;
}

/// Units of a chunk in a row that are alike; their states are summed once the sharding is known.
void note_units(const Unit& unit, int count, EstimateWorkspace& w, Chunk& chunk) {
  w.unit_runs.push_back({&unit, count});
  ++chunk.unit_runs;
}

/// A kind's layers of one chunk.
void add_layers(const Unit& unit, int count, EstimateWorkspace& w, Chunk& chunk, Stage& stage) noexcept {
  add_unit(unit, count, stage);
  note_units(unit, count, w, chunk);
  add_time(unit, count, 0, chunk);
  const double elements = unit.weights.held();
  stage.largest_layer = std::max(stage.largest_layer, elements);
  const double holds = unit.transient.total() + unit.bytes.saved;
  const double before = stage.transient.total() + stage.layer_saved;
  if (holds > before) {
    stage.transient = unit.transient;
    stage.layer_saved = unit.bytes.saved;
    stage.layer_kept = unit.bytes.kept;
    stage.layer_checkpoint = unit.bytes.checkpoint;
  }
}

/// One of the model's ends.
void add_end(const Unit& unit, EstimateWorkspace& w, Chunk& chunk, Stage& stage) noexcept {
  add_unit(unit, 1, stage);
  note_units(unit, 1, w, chunk);
  add_time(unit, 1, 0, chunk);
}

void fill_chunk(const Run& run, EstimateWorkspace& w, Chunk& chunk, Stage& stage) noexcept {
  const Model& model = run.model;
  const Recompute& recompute = run.training.recompute;
  const bool every_k = recompute.mode == RecomputeMode::every_k;
  const bool first_n = recompute.mode == RecomputeMode::first_n;
  const double elements_before = stage.weights.held();
  chunk.first_unit_run = w.unit_runs.size();
  int layer = chunk.first_layer;
  const int end = chunk.first_layer + chunk.layers;
  while (layer < end) {
    // Layers in a row that share everything.
    const std::size_t kind = model.layer_kinds[static_cast<std::size_t>(layer)];
    const bool frozen_input = layer == 0 && !w.frozen_input.empty();
    const bool left_alone = first_n && layer - chunk.first_layer >= recompute.n;
    int next = layer + 1;
    while (next < end && !frozen_input && model.layer_kinds[static_cast<std::size_t>(next)] == kind &&
           (first_n && next - chunk.first_layer >= recompute.n) == left_alone) {
      ++next;
    }
    const Unit& unit = frozen_input ? w.frozen_input[kind] : left_alone ? w.not_recomputed[kind] : w.kinds[kind];
    const int count = next - layer;
    add_layers(unit, count, w, chunk, stage);
    double kept = count * unit.bytes.kept;
    if (every_k) {
      // One checkpoint per segment: at offsets 0, k, 2k, ... of the chunk.
      const int from = layer - chunk.first_layer, to = next - chunk.first_layer;
      const int k = std::max(1, recompute.n);
      const int segments = (to + k - 1) / k - (from + k - 1) / k;
      kept = segments * unit.bytes.checkpoint;
    }
    chunk.kept += kept;
    if (layer == chunk.first_layer) chunk.first_kept = unit.bytes.kept;
    layer = next;
  }
  stage.layers += chunk.layers;
  const Ends& ends = w.ends;
  if (chunk.has_embedding) {
    add_end(ends.embedding, w, chunk, stage);
    chunk.kept += ends.embedding.bytes.kept;
    stage.root += ends.embedding.weights.dense.held();
    stage.has_embedding = true;
  }
  if (chunk.has_head) {
    if (ends.mtp.time.forward_s > 0) {
      add_end(ends.mtp, w, chunk, stage);
      chunk.kept += ends.mtp.bytes.kept;
    }
    add_end(ends.final_norm, w, chunk, stage);
    add_end(ends.head, w, chunk, stage);
    stage.root += ends.final_norm.weights.dense.held() + ends.head.weights.dense.held();
    stage.has_head = true;
  }
  chunk.elements = stage.weights.held() - elements_before;
  const double per_microbatch = run.training.stack.timing.host_per_microbatch_s;
  chunk.forward_s += per_microbatch / 2;
  chunk.backward_s += per_microbatch / 2;
}

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

void build_chunks(const Run& run, EstimateWorkspace& w) noexcept {
  const schedule::Shape shape = shape_of(run);
  const int ranks = shape.p, per_rank = schedule::chunks_per_rank(shape), virtual_stages = shape.virtual_stages();
  w.spec.shape = shape;
  w.first_layers.resize(static_cast<std::size_t>(virtual_stages));
  int first = 0;
  for (int i = 0; i < virtual_stages; ++i) {
    w.first_layers[static_cast<std::size_t>(i)] = first;
    first += run.parallel.layers_per_chunk[static_cast<std::size_t>(i)];
  }
  w.chunks.assign(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(per_rank), Chunk{});
  w.stages.resize(static_cast<std::size_t>(ranks));
  w.unit_runs.clear();
  w.forward.resize(static_cast<std::size_t>(virtual_stages));
  w.backward.resize(static_cast<std::size_t>(virtual_stages));
  w.weight.resize(static_cast<std::size_t>(virtual_stages));
  w.activation.resize(static_cast<std::size_t>(virtual_stages));
  for (int rank = 0; rank < ranks; ++rank) {
    Stage& stage = w.stages[static_cast<std::size_t>(rank)];
    stage = Stage{};
    const std::size_t first_chunk = static_cast<std::size_t>(rank) * static_cast<std::size_t>(per_rank);
    for (int c = 0; c < per_rank; ++c) {
      Chunk& chunk = w.chunks[first_chunk + static_cast<std::size_t>(c)];
      chunk.stage = schedule::stage_of(shape, rank, c);
      const std::size_t vs = static_cast<std::size_t>(chunk.stage);
      chunk.first_layer = w.first_layers[vs];
      chunk.layers = run.parallel.layers_per_chunk[vs];
      chunk.has_embedding = chunk.stage == 0;
      chunk.has_head = chunk.stage == virtual_stages - 1;
      fill_chunk(run, w, chunk, stage);
      w.forward[vs] = chunk.forward_s;
      w.weight[vs] = chunk.weight_gradient_s;
      w.backward[vs] = chunk.backward_s - chunk.weight_gradient_s;
      w.activation[vs] = chunk.kept;
      stage.forward_s += chunk.forward_s;
      stage.backward_s += chunk.backward_s;
    }
  }
}

}  // namespace shardplan
