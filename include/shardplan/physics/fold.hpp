// Sums over operator lists: weights, saved bytes, FLOP. What `estimate` and `search` work with instead of lists.
#pragma once

#include <cstdint>

#include "shardplan/core/run.hpp"
#include "shardplan/physics/operator.hpp"

namespace shardplan {

/// Weights of one unit (a layer, or an end of the model) on one rank, before data sharding. Elements.
struct Weights {
  double trained = 0;           ///< base weights that receive gradients
  double trained_vectors = 0;   ///< of them, norms, biases and the like
  double trained_factored = 0;  ///< sum of rows + columns of the trained matrices
  double trained_hidden = 0;    ///< of `trained`, elements of hidden matrices (not embedding, head, vectors)
  double narrow = 0;            ///< of `trained`, elements of the matrices that fp8 and nvfp4 runs multiply narrow
  double frozen = 0;            ///< kept in 16 bit
  double frozen_norms = 0;      ///< of them, norm weights (k-bit preparation makes these fp32)
  double quantized = 0;         ///< stored as peft.quant says
  double quantized_rows = 0;    ///< rows of these matrices (int8 scales)
  double adapters = 0;
  double adapter_vectors = 0;

  double held() const noexcept { return trained + frozen + quantized + adapters; }
  Weights& operator+=(const Weights& other) noexcept;
};

struct UnitWeights {
  Weights dense;   ///< shared by data x context ranks
  Weights expert;  ///< shared by the expert-data ranks
  UnitWeights& operator+=(const UnitWeights& other) noexcept;
};

UnitWeights fold_weights(const OperatorList<double>& list) noexcept;

/// Bytes of one layer that one microbatch keeps.
struct SavedBytes {
  double saved = 0;       ///< without recomputation
  double kept = 0;        ///< under the run's, where this layer is subject to it
  double checkpoint = 0;  ///< the layer's input alone
};

SavedBytes fold_saved(const OperatorList<double>& list, const Recompute& recompute, double checkpoint_bytes,
                      double op_level_kept) noexcept;

/// Whether a covered operator is run again in the backward pass.
bool is_recomputed(const Operator<double>& op, const Recompute& recompute) noexcept;

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
