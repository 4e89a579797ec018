// Units summed into model chunks, and chunks into pipeline ranks. Formulas over numbers or text (physics/trace.hpp);
// stages.cpp has them over double.
#pragma once

#include <algorithm>

#include "shardplan/plan/step_names.hpp"
#include "shardplan/plan/workspace.hpp"

namespace shardplan {

/// The pipeline of a run.
schedule::Shape shape_of(const Run& run) noexcept;

namespace stage_parts {

template <class N, std::size_t From, std::size_t To>
void merge_shapes(const FixedList<MatrixShapeOf<N>, From>& from, FixedList<MatrixShapeOf<N>, To>& to) {
  for (const MatrixShapeOf<N>& shape : from) {
    if (std::find(to.begin(), to.end(), shape) == to.end()) to.add(shape);
  }
}

template <class N>
void add_times(const UnitTimeOf<N>& unit, N times, UnitTimeOf<N>& total) {
  total.forward_s += times * unit.forward_s;
  total.backward_s += times * unit.backward_s;
  total.recompute_s += times * unit.recompute_s;
  total.weight_gradient_s += times * unit.weight_gradient_s;
  total.gemm_s += times * unit.gemm_s;
  total.attention_s += times * unit.attention_s;
}

/// What so many units add to their stage and chunk.
template <class N>
void add_unit(const UnitOf<N>& unit, int count, EstimateWorkspaceOf<N>& w, ChunkOf<N>& chunk, StageOf<N>& stage) {
  const N times = static_cast<double>(count);
  UnitOf<N>& total = stage.total;
  stage.weights.dense += unit.weights.dense.times(times);
  stage.weights.expert += unit.weights.expert.times(times);
  total.matrix_step.add(unit.matrix_step, times);
  total.flop.forward += times * unit.flop.forward;
  total.flop.recompute += times * unit.flop.recompute;
  add_times(unit.time, times, total.time);
  total.forward_exposed_s += times * unit.forward_exposed_s;
  total.backward_exposed_s += times * unit.backward_exposed_s;
  for (std::size_t i = 0; i < collective_count; ++i) {
    const CollectiveSumOf<N>& from = unit.collectives[i];
    CollectiveSumOf<N>& to = total.collectives[i];
    to.calls += times * from.calls;
    to.message = larger(to.message, from.message);
    to.sent += times * from.sent;
    to.time_s += times * from.time_s;
    to.exposed_s += times * from.exposed_s;
  }
  merge_shapes(unit.shapes, stage.shapes);
  // Their states are summed once the sharding is known.
  w.unit_runs.push_back({&unit, count});
  ++chunk.unit_runs;
  chunk.forward_s += times * (unit.time.forward_s + unit.forward_exposed_s);
  chunk.backward_s += times * (unit.time.backward_s + unit.time.recompute_s + unit.backward_exposed_s);
  chunk.weight_gradient_s += times * unit.time.weight_gradient_s;
}

/// Notes a layer where it is the one that holds most in its backward pass.
template <class N>
void note_layer(const UnitOf<N>& unit, StageOf<N>& stage) {
  stage.largest_layer = larger(stage.largest_layer, unit.weights.held());
  const N holds = unit.transient.total() + unit.bytes.saved;
  const N before = stage.transient.total() + stage.layer_saved;
  if (!(holds > before)) return;
  stage.transient = unit.transient;
  stage.layer_saved = unit.bytes.saved;
  stage.layer_kept = unit.bytes.kept;
  stage.layer_checkpoint = unit.bytes.checkpoint;
}

/// Layers in a row of a chunk that share everything.
struct LayerRun {
  int first = 0;
  int count = 0;
  std::size_t kind = 0;
  bool frozen_input = false;
  bool left_alone = false;  ///< full:N does not recompute them
};

/// The layers from `layer` on that are alike, none at or beyond `end`.
LayerRun layers_alike(const Run& run, int chunk_first, int layer, int end, bool has_frozen_input) noexcept;

/// What a microbatch keeps of so many layers. every:K keeps one checkpoint per segment, at offsets 0, k, 2k .. of the
/// chunk.
template <class N>
N kept_of(const Recompute& recompute, const LayerRun& layers, int chunk_first, const UnitOf<N>& unit) {
  if (recompute.mode != RecomputeMode::every_k) return N(static_cast<double>(layers.count)) * unit.bytes.kept;
  const int from = layers.first - chunk_first, to = from + layers.count;
  const int k = std::max(1, recompute.n);
  const int segments = (to + k - 1) / k - (from + k - 1) / k;
  return N(static_cast<double>(segments)) * unit.bytes.checkpoint;
}

template <class N>
void add_layers(const Run& run, EstimateWorkspaceOf<N>& w, ChunkOf<N>& chunk, StageOf<N>& stage) {
  const int end = chunk.first_layer + chunk.layers;
  for (int layer = chunk.first_layer; layer < end;) {
    const LayerRun alike = layers_alike(run, chunk.first_layer, layer, end, !w.frozen_input.empty());
    const UnitOf<N>& unit = alike.frozen_input ? w.frozen_input[alike.kind]
                            : alike.left_alone ? w.not_recomputed[alike.kind]
                                               : w.kinds[alike.kind];
    add_unit(unit, alike.count, w, chunk, stage);
    note_layer(unit, stage);
    chunk.kept += kept_of(run.training.recompute, alike, chunk.first_layer, unit);
    if (layer == chunk.first_layer) chunk.first_kept = unit.bytes.kept;
    layer += alike.count;
  }
  stage.layers += chunk.layers;
}

/// The model's ends that a chunk has.
template <class N>
void add_ends(EstimateWorkspaceOf<N>& w, ChunkOf<N>& chunk, StageOf<N>& stage) {
  const EndsOf<N>& ends = w.ends;
  if (chunk.has_embedding) {
    add_unit(ends.embedding, 1, w, chunk, stage);
    chunk.kept += ends.embedding.bytes.kept;
    stage.root += ends.embedding.weights.dense.held();
    stage.has_embedding = true;
  }
  if (!chunk.has_head) return;
  if (value_of(ends.mtp.time.forward_s) > 0) {
    add_unit(ends.mtp, 1, w, chunk, stage);
    chunk.kept += ends.mtp.bytes.kept;
  }
  add_unit(ends.final_norm, 1, w, chunk, stage);
  add_unit(ends.head, 1, w, chunk, stage);
  stage.root += ends.final_norm.weights.dense.held() + ends.head.weights.dense.held();
  stage.has_head = true;
}

}  // namespace stage_parts

/// The host's work of a microbatch, seconds.
template <class Trace, class N = NumberOf<Trace>>
N host_work(const Trace& trace, const Run& run) {
  return trace.stack(step_names::host_microbatch, run.training.stack.timing.host_per_microbatch_s);
}

template <class Trace, class N = NumberOf<Trace>>
void fill_chunk(const Trace& here, const Run& run, EstimateWorkspaceOf<N>& w, ChunkOf<N>& chunk, StageOf<N>& stage) {
  const N before = stage.weights.held();
  chunk.first_unit_run = w.unit_runs.size();
  stage_parts::add_layers(run, w, chunk, stage);
  stage_parts::add_ends(w, chunk, stage);
  chunk.elements = stage.weights.held() - before;
  const N host = host_work(here, run);
  const Trace pass = here.in("time.pass");
  chunk.forward_s = pass.step(step_names::pass_forward, chunk.forward_s + host / 2.0);
  chunk.backward_s = pass.step(step_names::pass_backward, chunk.backward_s + host / 2.0);
  chunk.kept = here.in("memory.activations").same_or_sum(step_names::chunk_kept, chunk.kept);
}

/// One rank's chunks.
template <class Trace, class N = NumberOf<Trace>>
void build_stage(const Trace& here, const Run& run, EstimateWorkspaceOf<N>& w, std::size_t rank) {
  const schedule::Shape& shape = w.spec.shape;
  const int per_rank = schedule::chunks_per_rank(shape), last = shape.virtual_stages() - 1;
  StageOf<N>& stage = w.stages[rank];
  stage = StageOf<N>{};
  for (int c = 0; c < per_rank; ++c) {
    ChunkOf<N>& chunk = w.chunks[rank * static_cast<std::size_t>(per_rank) + static_cast<std::size_t>(c)];
    chunk.stage = schedule::stage_of(shape, static_cast<int>(rank), c);
    const std::size_t vs = static_cast<std::size_t>(chunk.stage);
    chunk.first_layer = w.first_layers[vs];
    chunk.layers = run.parallel.layers_per_chunk[vs];
    chunk.has_embedding = chunk.stage == 0;
    chunk.has_head = chunk.stage == last;
    fill_chunk(per_rank > 1 ? here.at_chunk(c) : here, run, w, chunk, stage);
    w.forward[vs] = value_of(chunk.forward_s);
    w.weight[vs] = value_of(chunk.weight_gradient_s);
    w.backward[vs] = value_of(chunk.backward_s) - value_of(chunk.weight_gradient_s);
    w.activation[vs] = value_of(chunk.kept);
    stage.forward_s += chunk.forward_s;
    stage.backward_s += chunk.backward_s;
  }
  const Trace pass = here.in("time.pass");
  stage.forward_s = pass.step(step_names::stage_forward, stage.forward_s);
  stage.backward_s = pass.step(step_names::stage_backward, stage.backward_s);
}

/// build_chunks of workspace.hpp.
template <class Trace, class N = NumberOf<Trace>>
void fold_chunks(const Trace& trace, const Run& run, EstimateWorkspaceOf<N>& w) {
  const schedule::Shape shape = shape_of(run);
  const std::size_t ranks = static_cast<std::size_t>(shape.p);
  const std::size_t stages = static_cast<std::size_t>(shape.virtual_stages());
  w.spec.shape = shape;
  w.first_layers.resize(stages);
  int first = 0;
  for (std::size_t i = 0; i < stages; ++i) {
    w.first_layers[i] = first;
    first += run.parallel.layers_per_chunk[i];
  }
  w.chunks.assign(ranks * static_cast<std::size_t>(schedule::chunks_per_rank(shape)), ChunkOf<N>{});
  w.stages.resize(ranks);
  w.unit_runs.clear();
  for (std::vector<double>* const times : {&w.forward, &w.backward, &w.weight, &w.activation}) times->resize(stages);
  for (std::size_t rank = 0; rank < ranks; ++rank) build_stage(trace.at_stage(rank), run, w, rank);
}

}  // namespace shardplan
