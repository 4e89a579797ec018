// The operators behind an estimate (`--detail`).
#include <algorithm>
#include <cmath>

#include "shardplan/physics/layer_inputs.hpp"
#include "shardplan/plan/overheads.hpp"
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
    const double seconds = layer_call_seconds(run, topology, call, static_cast<double>(kind.mlp.top_k));
    row.forward_s = call.forward_calls * seconds;
    row.backward_s = call.backward_calls * seconds;
    row.sent_bytes = whole((call.forward_calls + call.backward_calls) * call.sent);
    detail.operators.push_back(row);
  }
  return detail;
}

/// What the backward pass through the last chunk's layers holds beyond what they keep (measured:
/// tests/evidence/autograd_peaks.jsonl): the stack's output, the incoming gradient, recomputed activations, one weight
/// gradient.
double backward_transient(const Run& run, const EstimateWorkspace& w) noexcept {
  const Recompute& recompute = run.training.recompute;
  const std::size_t index = run.model.layer_kinds.back();
  const LayerKind& kind = run.model.kinds[index];
  const Symbols<double> v = symbols_for(run, kind);
  const LayerOptions o = options_for(run, kind, false);
  OperatorList<double> list;
  layer_operators(v, o, kind, run.parallel.context, run.parallel.expert_tensor, list);
  const double hidden = v.w_r * v.s * v.b / (v.c * v.t_sp) * v.h;
  const double moment = hidden + layer_transient(v, o, kind, list, recompute, MadeGradient::added).total();
  const SavedBytes& bytes = w.kinds[index].bytes;
  const int layers = run.parallel.layers_per_chunk.back();
  // A reentrant checkpoint computes the segment's output again and holds it.
  const double again = (run.training.kernels.reentrant_checkpoint ? hidden : 0.0) - bytes.checkpoint;
  switch (recompute.mode) {
    case RecomputeMode::full: return bytes.saved + again + moment;
    case RecomputeMode::ops: return std::max(0.0, bytes.saved - bytes.kept) + again + bytes.checkpoint + moment;
    case RecomputeMode::every_k: {
      const int k = std::max(1, recompute.n);
      const int last = layers % k == 0 ? std::min(k, layers) : layers % k;
      const double at_last = last * bytes.saved + again;
      return std::max(at_last, layers > k ? k * bytes.saved + again - bytes.checkpoint : 0.0) + moment;
    }
    case RecomputeMode::first_n: {
      const int left_alone = layers - recompute.n;
      if (left_alone <= 0) return bytes.saved + again + moment;
      return moment + std::max(0.0, hidden + bytes.saved - left_alone * bytes.saved);
    }
    default: return moment;
  }
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
  const HeadPeaks<double>& peaks = w.ends.head_peaks;
  detail.head_peak_bytes = whole(std::max(peaks.loss, peaks.product + peaks.weight_gradient));
  detail.overheads = overhead_details(run, w.topology);
  Estimate ignored;
  run_pipeline(run, w, ignored);
  detail.timeline = step_timeline(run, w);
  detail.backward_transient_bytes = whole(backward_transient(run, w));
  return detail;
}

}  // namespace shardplan
