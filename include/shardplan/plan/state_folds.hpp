// States of units and of pipeline ranks, as formulas over numbers or text (physics/trace.hpp): what sharding decides of
// a unit and a stage. units.cpp and stages.cpp have them over double.
#pragma once

#include "shardplan/physics/state_formula.hpp"
#include "shardplan/plan/build_units.hpp"
#include "shardplan/plan/memory_names.hpp"

namespace shardplan {

/// States of a unit whose shards are rounded for themselves. `trace`: of the unit.
template <class Trace, class N = NumberOf<Trace>>
void fold_unit_states(const Trace& trace, const StateRule& rule, const Optimizer& optimizer, UnitOf<N>& unit) {
  unit.states = unit_state_bytes(trace, rule, unit.weights, optimizer);
  unit.states.parameters = trace.step(memory_names::unit_parameters, unit.states.parameters);
  unit.states.gradients = trace.step(memory_names::unit_gradients, unit.states.gradients);
  unit.states.optimizer = trace.step(memory_names::unit_optimizer, unit.states.optimizer);
}

/// build_unit_states of workspace.hpp, but for the rule.
template <class Trace, class N = NumberOf<Trace>>
void fold_states_of_units(const Trace& trace, const Run& run, EstimateWorkspaceOf<N>& w) {
  if (!rounds_per_unit(run.training.framework)) return;
  const auto fold = [&](const Trace& here, UnitOf<N>& unit) { fold_unit_states(here, w.rule, *w.optimizer, unit); };
  for (std::size_t i = 0; i < w.kinds.size(); ++i) fold(layer_trace(trace, run.model, i), w.kinds[i]);
  for (UnitOf<N>& unit : w.frozen_input) fold(trace.in("layers.first", "the first layer"), unit);
  for (std::size_t i = 0; i < w.not_recomputed.size(); ++i) {
    fold(layer_trace(trace, run.model, i, "_left_alone"), w.not_recomputed[i]);
  }
  fold(trace.in("embedding", "the embedding"), w.ends.embedding);
  fold(trace.in("final_norm", "the final norm"), w.ends.final_norm);
  fold(trace.in("head", "head and loss"), w.ends.head);
  fold(trace.in("mtp", "multi-token prediction"), w.ends.mtp);
}

/// The states of a chunk's units, each rounded for itself.
template <class N>
void add_states(const EstimateWorkspaceOf<N>& w, const ChunkOf<N>& chunk, StateBytesOf<N>& states) {
  for (std::size_t i = chunk.first_unit_run; i < chunk.first_unit_run + chunk.unit_runs; ++i) {
    const N times = static_cast<double>(w.unit_runs[i].count);
    const StateBytesOf<N>& unit = w.unit_runs[i].unit->states;
    states.parameters += times * unit.parameters;
    states.gradients += times * unit.gradients;
    states.optimizer += times * unit.optimizer;
    states.moments += times * unit.moments;
    states.paged += times * unit.paged;
  }
}

/// build_stage_states of workspace.hpp, of one rank. `trace`: of the rank.
template <class Trace, class N = NumberOf<Trace>>
void fold_stage_states(const Trace& trace, const Run& run, EstimateWorkspaceOf<N>& w, std::size_t rank) {
  StageOf<N>& stage = w.stages[rank];
  stage.states = StateBytesOf<N>{};
  if (rounds_per_unit(run.training.framework)) {
    const std::size_t per_rank = static_cast<std::size_t>(schedule::chunks_per_rank(w.spec.shape));
    for (std::size_t c = rank * per_rank; c < (rank + 1) * per_rank; ++c) add_states(w, w.chunks[c], stage.states);
  } else {
    UnitWeightsOf<N> weights = stage.weights;
    weights.dense.trained = trace.step(memory_names::stage_trained, weights.dense.trained);
    weights.expert.trained = trace.step(memory_names::stage_trained_experts, weights.expert.trained);
    stage.states = unit_state_bytes(trace, w.rule, weights, *w.optimizer);
  }
  const bool one_layer = w.optimizer->form == StateForm::block_coordinate && !run.training.peft.active();
  if (one_layer) {
    stage.states +=
        active_layer_states(trace, w.rule, trace.step(memory_names::stage_largest_layer, stage.largest_layer));
  }
}

}  // namespace shardplan
