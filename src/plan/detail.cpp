// The operators behind an estimate (`--detail`).
#include <cmath>

#include "shardplan/physics/layer_inputs.hpp"
#include "shardplan/plan/workspace.hpp"

namespace shardplan {
namespace {

std::int64_t whole(double bytes) noexcept { return std::llround(bytes); }

LayerDetail layer_detail(const Run& run, const LayerKind& kind, bool frozen_input) {
  LayerDetail detail;
  detail.moe = kind.mlp.kind == MlpKind::moe;
  const Symbols<double> v = symbols_for(run, kind);
  OperatorList<double> list;
  layer_operators(v, options_for(run, kind, frozen_input), kind, run.parallel.context, run.parallel.expert_tensor,
                  list);
  const double causal = v.keys > 0 ? v.keys_causal / v.keys : 0.5;
  for (const Operator<double>& op : list.operators) {
    OperatorDetail row;
    row.name = op.name;
    row.kind = name(op.kind);
    row.parameters = whole(op.parameters + op.adapter_parameters);
    row.saved_bytes = whole(op.saved);
    row.forward_flop = op.forward_flop;
    row.backward_flop = op.input_gradient_flop + op.weight_gradient_flop;
    const double width = v.w;
    row.forward_hbm_bytes = op.forward_bytes + width * op.batch * (op.m * op.k + op.k * op.n + op.m * op.n);
    if (op.kind == OperatorKind::attention) row.forward_hbm_bytes = op.forward_bytes + op.saved;
    const OperatorTime time = operator_seconds(run, op, causal);
    row.forward_s = time.forward_s;
    row.backward_s = time.input_gradient_s + time.weight_gradient_s;
    detail.operators.push_back(row);
  }
  const Topology topology = topology_of(run);
  for (const LayerCollective<double>& call : list.collectives) {
    OperatorDetail row;
    row.name = name(call.name);
    row.kind = name(call.op);
    const double seconds = collective_seconds(run.cluster, call.op, topology.group(call.group), call.sent);
    row.forward_s = call.forward_calls * seconds;
    row.backward_s = call.backward_calls * seconds;
    row.sent_bytes = whole((call.forward_calls + call.backward_calls) * call.sent);
    detail.operators.push_back(row);
  }
  return detail;
}

}  // namespace

EstimateDetail estimate_detail(const Run& run) {
  EstimateDetail detail;
  EstimateWorkspace w;
  build_units(run, w);
  build_stages(run, w);
  const Recompute& recompute = run.training.recompute;
  int layer = 0;
  std::size_t last_kind = 0;
  bool last_frozen = false;
  for (const int count : run.parallel.layers_per_chunk) {
    for (int offset = 0; offset < count; ++offset, ++layer) {
      const std::size_t kind = run.model.layer_kinds[static_cast<std::size_t>(layer)];
      const bool frozen = layer == 0 && !w.frozen_input.empty();
      const bool alone = recompute.mode == RecomputeMode::first_n && offset >= recompute.n;
      const Unit& unit = frozen ? w.frozen_input[kind] : alone ? w.not_recomputed[kind] : w.kinds[kind];
      double kept = unit.bytes.kept;
      if (recompute.mode == RecomputeMode::every_k) {
        kept = offset % std::max(1, recompute.n) == 0 ? unit.bytes.checkpoint : 0.0;
      }
      const bool same = !detail.layers.empty() &&
                        detail.layers.back().moe == (run.model.kinds[kind].mlp.kind == MlpKind::moe) &&
                        detail.layers.back().saved_bytes == whole(unit.bytes.saved) &&
                        detail.layers.back().kept_bytes == whole(kept) && last_kind == kind && last_frozen == frozen;
      if (same) {
        ++detail.layers.back().count;
        continue;
      }
      LayerDetail entry = layer_detail(run, run.model.kinds[kind], frozen);
      entry.first = layer;
      entry.count = 1;
      entry.saved_bytes = whole(unit.bytes.saved);
      entry.kept_bytes = whole(kept);
      detail.layers.push_back(entry);
      last_kind = kind;
      last_frozen = frozen;
    }
  }
  detail.embedding_saved_bytes = whole(w.ends.embedding.bytes.saved);
  detail.final_norm_saved_bytes = whole(w.ends.final_norm.bytes.saved);
  detail.head_saved_bytes = whole(w.ends.head.bytes.saved);
  detail.head_peak_bytes = whole(w.ends.loss_peak);
  const Stage& stage = w.stages.back();
  double recomputed = 0;
  if (recompute.mode == RecomputeMode::full || recompute.mode == RecomputeMode::first_n ||
      recompute.mode == RecomputeMode::ops) {
    recomputed = stage.layer_saved - stage.layer_checkpoint;
  } else if (recompute.mode == RecomputeMode::every_k) {
    recomputed = std::min(recompute.n, std::max(1, stage.layers)) * stage.layer_saved - stage.layer_checkpoint;
  }
  detail.backward_transient_bytes = whole(std::max(0.0, recomputed) + 2 * stage.transient.gradient +
                                          stage.transient.inner + stage.transient.weight_gradient);
  return detail;
}

}  // namespace shardplan
