// What the backward pass holds for a moment, beyond states, gradients and kept activations.
#pragma once

#include <cstdint>

#include "shardplan/physics/layer_options.hpp"
#include "shardplan/physics/operator.hpp"
#include "shardplan/physics/symbols.hpp"

namespace shardplan {

/// The parts of a layer's transient, bytes.
template <class N>
struct LayerTransientOf {
  N gradient{};         ///< dY, the incoming gradient
  N inner{};            ///< the most that gradients inside the layer hold, less what has been freed by then
  N weight_gradient{};  ///< a weight gradient that stays; one that is added and freed is part of `inner`

  N total() const { return gradient + inner + weight_gradient; }
};
using LayerTransient = LayerTransientOf<double>;

/// What becomes of a weight gradient that its product has made.
///   added: into a buffer that exists already, then freed (accumulation, bucket views, DeepSpeed's buckets).
///   stays: it is the gradient (a loop that set gradients to None), or waits unsharded for its unit (FSDP).
enum class MadeGradient : std::uint8_t { added, stays };

/// The largest of six points of one layer's backward, as parts (transient_formulas.hpp).
LayerTransient layer_transient(const Symbols<double>& v, const LayerOptions& o, const LayerKind& kind,
                               const OperatorList<double>& list, const Recompute& recompute,
                               MadeGradient made) noexcept;

/// Bytes that torchtitan's op-level checkpointing keeps of a layer (transient_formulas.hpp).
double op_level_kept_bytes(const Symbols<double>& v, const LayerKind& kind) noexcept;

}  // namespace shardplan
