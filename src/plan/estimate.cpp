#include "shardplan/plan/estimate.hpp"

#include <cmath>

#include "shardplan/physics/layer_inputs.hpp"
#include "shardplan/physics/parameters.hpp"
#include "shardplan/plan/workspace.hpp"

namespace shardplan {
namespace {

/// Adapters of the whole, uncut model.
std::int64_t adapter_parameters(const Run& run) noexcept {
  if (!run.training.peft.active()) return 0;
  const Model& model = run.model;
  double total = 0;
  LayerOptions o = whole_model_options(model);
  o.base_trains = false;
  o.adapted = run.training.peft.targets;
  o.dora = run.training.peft.method == PeftMethod::dora;
  const auto with_rank = [&](const LayerKind& kind) {
    Symbols<double> v = whole_model_symbols(model, kind, 1);
    v.r = run.training.peft.rank;
    return v;
  };
  for (std::size_t i = 0; i < model.kinds.size(); ++i) {
    double layers = 0;
    for (const std::uint8_t kind : model.layer_kinds) layers += kind == i ? 1 : 0;
    OperatorList<double> list;
    layer_operators(with_rank(model.kinds[i]), o, model.kinds[i], 1, 1, list);
    for (const Operator<double>& op : list.operators) total += layers * op.adapter_parameters;
  }
  OperatorList<double> ends;
  embedding_operators(with_rank(model.kinds.front()), o, model, false, ends);
  head_operators(with_rank(model.kinds.front()), o, model, LossBytes{}, false, false, ends);
  for (const Operator<double>& op : ends.operators) total += op.adapter_parameters;
  return std::llround(total);
}

}  // namespace

void estimate(const Run& run, EstimateWorkspace& workspace, Estimate& out) noexcept {
  out.model = count_parameters(run.model);
  out.model.padded_vocab_size = run.padded_vocab();
  if (run.training.peft.active()) {
    out.model.by_part.adapters = adapter_parameters(run);
    out.model.trainable_parameters = out.model.by_part.adapters;
  }
  build_units(run, workspace);
  build_stages(run, workspace);
  run_pipeline(run, workspace, out);
  estimate_communication(run, workspace, out);
  estimate_memory(run, workspace, out);
  estimate_time(run, workspace, out);
  estimate_throughput(run, workspace, out);
}

void estimate(const Run& run, Estimate& out) noexcept {
  EstimateWorkspace workspace;
  estimate(run, workspace, out);
}

}  // namespace shardplan
