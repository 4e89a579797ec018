// Sums over operator lists: weights, saved bytes, FLOP. What `estimate` and `search` work with instead of lists.
#pragma once

#include <array>
#include <cstdint>

#include "shardplan/core/run.hpp"
#include "shardplan/physics/operator.hpp"
#include "shardplan/physics/optimizer_states.hpp"
#include "shardplan/physics/trace.hpp"

namespace shardplan {

/// Weights of one unit (a layer, or an end of the model) on one rank, before data sharding. Elements.
template <class N>
struct WeightsOf {
  N trained{};         ///< base weights that receive gradients
  N narrow{};          ///< of `trained`, elements of the matrices that fp8 and nvfp4 runs multiply narrow
  N frozen{};          ///< kept in 16 bit
  N frozen_norms{};    ///< of them, norm weights (k-bit preparation makes these fp32)
  N quantized{};       ///< stored as peft.quant says
  N quantized_rows{};  ///< rows of these matrices (int8 scales)
  N adapters{};

  // Where the optimizer's states are counted tensor by tensor (Optimizer::per_tensor). Bytes before data sharding.
  N counted{};        ///< of `trained`, elements so counted
  N counted_bytes{};  ///< their states
  N treated{};        ///< of `counted`, elements of matrices that the optimizer's form is about
  N adapter_counted{};
  N adapter_counted_bytes{};
  N unpaged_bytes{};   ///< of both, states of tensors too small to page
  N largest_bytes{};   ///< states of the largest treated matrix
  N step_bytes{};      ///< the most that stepping one matrix holds on the side
  N largest_tensor{};  ///< elements of the largest tensor that trains, adapters apart

  N held() const { return trained + frozen + quantized + adapters; }
  WeightsOf& operator+=(const WeightsOf& other) {
    for (const auto sum : sums) this->*sum += other.*sum;
    for (const auto most : largest) this->*most = larger(this->*most, other.*most);
    return *this;
  }
  /// That many such units: sums grow, the largest stays.
  WeightsOf times(N count) const {
    WeightsOf all = *this;
    for (const auto sum : sums) all.*sum *= count;
    return all;
  }

 private:
  static constexpr std::array sums = {
      &WeightsOf::trained,      &WeightsOf::narrow,          &WeightsOf::frozen,
      &WeightsOf::frozen_norms, &WeightsOf::quantized,       &WeightsOf::quantized_rows,
      &WeightsOf::adapters,     &WeightsOf::counted,         &WeightsOf::counted_bytes,
      &WeightsOf::treated,      &WeightsOf::adapter_counted, &WeightsOf::adapter_counted_bytes,
      &WeightsOf::unpaged_bytes};
  static constexpr std::array largest = {&WeightsOf::largest_bytes, &WeightsOf::step_bytes, &WeightsOf::largest_tensor};
};
using Weights = WeightsOf<double>;

template <class N>
struct UnitWeightsOf {
  WeightsOf<N> dense;   ///< shared by data x context ranks
  WeightsOf<N> expert;  ///< shared by the expert-data ranks

  N held() const { return dense.held() + expert.held(); }
  /// Elements that the optimizer steps over, before data sharding.
  N trained() const { return dense.trained + dense.adapters + expert.trained + expert.adapters; }
  UnitWeightsOf& operator+=(const UnitWeightsOf& other) {
    dense += other.dense;
    expert += other.expert;
    return *this;
  }
};
using UnitWeights = UnitWeightsOf<double>;

UnitWeights fold_weights(const OperatorList<double>& list, const StateCounting& counting = {}) noexcept;

/// What an operator's matrices are to an optimizer.
template <class N>
TensorRole role_of(const Operator<N>& op) noexcept {
  switch (op.part) {
    case Part::embedding: return TensorRole::embedding;
    case Part::head: return TensorRole::head;
    case Part::attention:
    case Part::mlp:
    case Part::experts: return TensorRole::linear;
    default: return TensorRole::hidden;
  }
}

/// Adds trained tensors, `count` of rows x cols each (a vector: cols 1).
void add_tensors(const StateCounting& counting, TensorRole role, double rows, double cols, double count,
                 Weights& weights) noexcept;

/// Bytes of one layer that one microbatch keeps.
template <class N>
struct SavedBytesOf {
  N saved{};       ///< without recomputation
  N kept{};        ///< under the run's, where this layer is subject to it
  N checkpoint{};  ///< the layer's input alone
};
using SavedBytes = SavedBytesOf<double>;

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
template <class N>
struct UnitFlopOf {
  N forward{};  ///< scores in full
  N score{};
  N input_gradient{};
  N weight_gradient{};
  N recompute{};
};
using UnitFlop = UnitFlopOf<double>;

UnitFlop fold_flop(const OperatorList<double>& list, const Recompute& recompute, bool layer_recomputed) noexcept;

}  // namespace shardplan
