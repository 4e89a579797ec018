// What the backward pass holds for a moment, beyond states, gradients and kept activations.
#pragma once

#include "shardplan/physics/layer_options.hpp"
#include "shardplan/physics/operator.hpp"
#include "shardplan/physics/symbols.hpp"

namespace shardplan {

/// The parts of a layer's transient.
struct LayerTransient {
  double gradient = 0;         ///< dY, the incoming gradient
  double inner = 0;            ///< the most that gradients inside the layer hold, less what has been freed by then
  double weight_gradient = 0;  ///< one weight gradient before it is added (0 with fused accumulation or frozen weights)
};

/// The largest of three points of one layer's backward (activations.md section 5, memory.md section 3):
///   the last linear: d(product) and its weight's gradient;
///   the gated activation: d(product), d(gate), d(up), less the product if it was saved and is freed by then;
///   unfused attention: the gradient of the probabilities, and under selective recomputation the scores again.
LayerTransient layer_transient(const Symbols<double>& v, const LayerOptions& o, const LayerKind& kind,
                               const OperatorList<double>& list, const Recompute& recompute) noexcept;

/// Bytes that torchtitan's op-level checkpointing keeps of a layer: its input, the attention core's output with its
/// log-sum-exp, and every second matrix product's output (torchtitan parallelize_llama.py, _save_list).
double op_level_kept_bytes(const Symbols<double>& v, const LayerKind& kind) noexcept;

}  // namespace shardplan
