// Folds each kind of layer, and the ends of the model, once.
#include "shardplan/plan/state_folds.hpp"

namespace shardplan {

bool covered_by_modules(const Recompute& recompute, Covered covered) noexcept {
  if (recompute.mode != RecomputeMode::modules) return false;
  if (covered == Covered::moe) return (recompute.modules & recompute_moe) != 0;
  if (covered == Covered::mlp) return (recompute.modules & recompute_mlp) != 0;
  return false;
}

bool overlaps_expert_exchange(ScheduleKind schedule) noexcept {
  return schedule::facts_of(schedule).overlaps_expert_exchange;
}

std::string layer_label(const Model& model, std::size_t kind) {
  const auto word = [&model](std::size_t i) { return model.kinds[i].mlp.kind == MlpKind::moe ? "moe" : "dense"; };
  const std::string label = word(kind);
  int number = 1;
  for (std::size_t i = 0; i < kind; ++i) number += word(i) == label ? 1 : 0;
  return number == 1 ? label : label + "_" + std::to_string(number);
}

double layer_call_seconds(const Run& run, const Topology& topology, const LayerCollective<double>& call,
                          double top_k) noexcept {
  return layer_call_time(NoTrace{}, run, topology, call, top_k);
}

void build_units(const Run& run, EstimateWorkspace& w) noexcept {
  fold_units(NoTrace{}, run, w);
  build_unit_states(run, w);
}

void build_unit_states(const Run& run, EstimateWorkspace& w) noexcept {
  w.rule = state_rule(run);
  fold_states_of_units(NoTrace{}, run, w);
}

}  // namespace shardplan
