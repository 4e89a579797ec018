// Every unit of a run: each kind of layer, and the ends of the model. Formulas over numbers or text.
#pragma once

#include <string>

#include "shardplan/plan/mtp_formulas.hpp"

namespace shardplan {

/// "dense", "moe", "dense_2": what a kind of layer is called in addresses.
std::string layer_label(const Model& model, std::size_t kind);

/// A layer's trace; texts alone need the label. `suffix`: of layers that a run treats apart.
template <class Trace>
Trace layer_trace(const Trace& trace, const Model& model, std::size_t kind, std::string_view suffix = {}) {
  if constexpr (Trace::records) {
    const std::string label = layer_label(model, kind) + std::string(suffix);
    return trace.in("layers." + label, "a " + label + " layer");
  } else {
    return trace;
  }
}

template <class Trace, class N = NumberOf<Trace>>
void build_layers(const Trace& trace, const Run& run, EstimateWorkspaceOf<N>& w) {
  const Model& model = run.model;
  const Recompute& recompute = run.training.recompute;
  const std::size_t count = model.kinds.size();
  w.kinds.resize(count);
  const bool adapted_tables =
      (run.training.peft.targets & set_of(MatrixId::embed_tokens, MatrixId::position_embeddings)) != 0;
  w.frozen_input.resize(run.training.peft.active() && !adapted_tables ? count : 0);
  const bool partly = recompute.mode == RecomputeMode::first_n;
  w.not_recomputed.resize(partly ? count : 0);
  for (std::size_t i = 0; i < count; ++i) {
    const LayerKind& kind = model.kinds[i];
    w.kinds[i] = layer_unit(layer_trace(trace, model, i), run, w, kind, false, recompute);
    if (partly) {
      w.not_recomputed[i] = layer_unit(layer_trace(trace, model, i, "_left_alone"), run, w, kind, false, Recompute{});
    }
    // One layer stands behind the embedding.
    if (!w.frozen_input.empty() && (!Trace::records || i == model.layer_kinds.front())) {
      w.frozen_input[i] = layer_unit(trace.in("layers.first", "the first layer"), run, w, kind, true, recompute);
    }
  }
}

template <class Trace, class N = NumberOf<Trace>>
void build_ends(const Trace& trace, const Run& run, EstimateWorkspaceOf<N>& w) {
  const LayerKind& last = run.model.layer(run.model.layers() - 1);
  const Symbols<N> v = trace.symbols(symbols_for(run, last));
  LayerOptions o = options_for(run, last, false);
  o.autocast_copies = false;
  w.ends = EndsOf<N>{};
  build_embedding(trace.in("embedding", "the embedding"), run, v, o, w);
  build_final_norm(trace.in("final_norm", "the final norm"), run, v, o, w);
  build_head(trace.in("head", "head and loss"), run, v, o, w);
  if (trains_mtp(run)) {
    w.ends.mtp = mtp_unit(trace.in("mtp", "multi-token prediction"), run, v, w.counting,
                          w.kinds[run.model.layer_kinds.back()], w.ends.head);
  }
}

/// build_units of workspace.hpp but for the states.
template <class Trace, class N = NumberOf<Trace>>
void fold_units(const Trace& trace, const Run& run, EstimateWorkspaceOf<N>& w) {
  w.topology = topology_of(run);
  w.rule = state_rule(run);
  w.counting = state_counting(run);
  w.optimizer = w.counting.optimizer;
  build_layers(trace, run, w);
  build_ends(trace, run, w);
}

}  // namespace shardplan
