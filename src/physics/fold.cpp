#include "shardplan/physics/fold.hpp"

#include "shardplan/physics/fold_formulas.hpp"

namespace shardplan {

void add_tensors(const StateCounting& counting, TensorRole role, double rows, double cols, double count,
                 Weights& weights) noexcept {
  count_tensors(counting, role, rows, cols, count, weights);
}

UnitWeights fold_weights(const OperatorList<double>& list, const StateCounting& counting) noexcept {
  return unit_weights(NoTrace{}, list, counting);
}

SavedBytes fold_saved(const OperatorList<double>& list, const Recompute& recompute, double checkpoint_bytes,
                      double op_level_kept) noexcept {
  return saved_bytes(NoTrace{}, list, recompute, checkpoint_bytes, op_level_kept);
}

UnitFlop fold_flop(const OperatorList<double>& list, const Recompute& recompute, bool layer_recomputed) noexcept {
  return unit_flop(list, recompute, layer_recomputed);
}

}  // namespace shardplan
