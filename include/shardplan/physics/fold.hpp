// Sums over operator lists: weights, saved bytes, FLOP. What `estimate` and `search` work with instead of lists.
#pragma once

#include <cstdint>

#include "shardplan/core/run.hpp"
#include "shardplan/physics/operator.hpp"
#include "shardplan/physics/optimizer_states.hpp"

namespace shardplan {

/// Weights of one unit (a layer, or an end of the model) on one rank, before data sharding. Elements.
struct Weights {
  double trained = 0;         ///< base weights that receive gradients
  double narrow = 0;          ///< of `trained`, elements of the matrices that fp8 and nvfp4 runs multiply narrow
  double frozen = 0;          ///< kept in 16 bit
  double frozen_norms = 0;    ///< of them, norm weights (k-bit preparation makes these fp32)
  double quantized = 0;       ///< stored as peft.quant says
  double quantized_rows = 0;  ///< rows of these matrices (int8 scales)
  double adapters = 0;

  // Where the optimizer's states are counted tensor by tensor (Optimizer::per_tensor). Bytes before data sharding.
  double counted = 0;        ///< of `trained`, elements so counted
  double counted_bytes = 0;  ///< their states
  double treated = 0;        ///< of `counted`, elements of matrices that the optimizer's form is about
  double adapter_counted = 0;
  double adapter_counted_bytes = 0;
  double unpaged_bytes = 0;   ///< of both, states of tensors too small to page
  double largest_bytes = 0;   ///< states of the largest treated matrix
  double step_bytes = 0;      ///< the most that stepping one matrix holds on the side
  double largest_tensor = 0;  ///< elements of the largest tensor that trains, adapters apart

  double held() const noexcept { return trained + frozen + quantized + adapters; }
  Weights& operator+=(const Weights& other) noexcept;
  /// That many such units: sums grow, the largest stays.
  Weights times(double count) const noexcept;
};

struct UnitWeights {
  Weights dense;   ///< shared by data x context ranks
  Weights expert;  ///< shared by the expert-data ranks

  double held() const noexcept { return dense.held() + expert.held(); }
  /// Elements that the optimizer steps over, before data sharding.
  double trained() const noexcept { return dense.trained + dense.adapters + expert.trained + expert.adapters; }
  UnitWeights& operator+=(const UnitWeights& other) noexcept;
};

UnitWeights fold_weights(const OperatorList<double>& list, const StateCounting& counting = {}) noexcept;

/// What an operator's matrices are to an optimizer.
TensorRole role_of(const Operator<double>& op) noexcept;

/// Adds trained tensors, `count` of rows x cols each (a vector: cols 1).
void add_tensors(const StateCounting& counting, TensorRole role, double rows, double cols, double count,
                 Weights& weights) noexcept;

/// Bytes of one layer that one microbatch keeps.
struct SavedBytes {
  double saved = 0;       ///< without recomputation
  double kept = 0;        ///< under the run's, where this layer is subject to it
  double checkpoint = 0;  ///< the layer's input alone
};

/// The modules that a run recomputes, as a bit set; none where whole layers run again.
constexpr std::uint8_t recomputed_modules(const Recompute& recompute) noexcept {
  if (recompute.mode == RecomputeMode::selective) return recompute_core_attn;
  return recompute.mode == RecomputeMode::modules ? recompute.modules : std::uint8_t{0};
}

constexpr bool covers(std::uint8_t modules, Covered covered) noexcept {
  switch (covered) {
    case Covered::none: return false;
    case Covered::core_attn: return (modules & recompute_core_attn) != 0;
    case Covered::layernorm: return (modules & recompute_layernorm) != 0;
    case Covered::mlp: return (modules & recompute_mlp) != 0;
    case Covered::moe_act: return (modules & recompute_moe_act) != 0;
    case Covered::moe: return (modules & recompute_moe) != 0;
    case Covered::mla_up_proj: return (modules & recompute_mla_up_proj) != 0;
  }
  return false;
}

/// What stays of an operator's saved bytes where these modules are recomputed.
template <class N>
N kept_bytes(const Operator<N>& op, std::uint8_t modules) {
  N kept = op.saved;
  if (covers(modules, op.covered) && op.saved_recomputed < kept) kept = op.saved_recomputed;
  if (covers(modules, op.also_covered)) {
    const N dropped = op.saved - op.saved_also_recomputed;
    kept = kept > dropped ? kept - dropped : N(0.0);
  }
  return kept;
}

SavedBytes fold_saved(const OperatorList<double>& list, const Recompute& recompute, double checkpoint_bytes,
                      double op_level_kept) noexcept;

/// Whether a covered operator is run again in the backward pass.
template <class N>
bool is_recomputed(const Operator<N>& op, const Recompute& recompute) noexcept {
  const std::uint8_t modules = recomputed_modules(recompute);
  return covers(modules, op.rerun_by) || covers(modules, op.also_rerun_by);
}

/// FLOP of one unit and one microbatch on one rank.
struct UnitFlop {
  double forward = 0;  ///< scores in full
  double score = 0;
  double input_gradient = 0;
  double weight_gradient = 0;
  double recompute = 0;
};

UnitFlop fold_flop(const OperatorList<double>& list, const Recompute& recompute, bool layer_recomputed) noexcept;

}  // namespace shardplan
