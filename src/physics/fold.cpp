#include "shardplan/physics/fold.hpp"

#include <algorithm>

namespace shardplan {

Weights& Weights::operator+=(const Weights& other) noexcept {
  trained += other.trained;
  narrow += other.narrow;
  frozen += other.frozen;
  frozen_norms += other.frozen_norms;
  quantized += other.quantized;
  quantized_rows += other.quantized_rows;
  adapters += other.adapters;
  counted += other.counted;
  counted_bytes += other.counted_bytes;
  treated += other.treated;
  adapter_counted += other.adapter_counted;
  adapter_counted_bytes += other.adapter_counted_bytes;
  unpaged_bytes += other.unpaged_bytes;
  largest_bytes = std::max(largest_bytes, other.largest_bytes);
  step_bytes = std::max(step_bytes, other.step_bytes);
  largest_tensor = std::max(largest_tensor, other.largest_tensor);
  return *this;
}

Weights Weights::times(double count) const noexcept {
  Weights sum = *this;
  for (double* each : {&sum.trained, &sum.narrow, &sum.frozen, &sum.frozen_norms, &sum.quantized, &sum.quantized_rows,
                       &sum.adapters, &sum.counted, &sum.counted_bytes, &sum.treated, &sum.adapter_counted,
                       &sum.adapter_counted_bytes, &sum.unpaged_bytes}) {
    *each *= count;
  }
  return sum;
}

UnitWeights& UnitWeights::operator+=(const UnitWeights& other) noexcept {
  dense += other.dense;
  expert += other.expert;
  return *this;
}

void add_tensors(const StateCounting& counting, TensorRole role, double rows, double cols, double count,
                 Weights& weights) noexcept {
  const double elements = rows * cols;
  if (elements <= 0) return;
  weights.largest_tensor = std::max(weights.largest_tensor, elements);
  if (!counting.per_tensor()) return;
  const double bytes = tensor_state_bytes(counting, role, rows, cols);
  weights.counted += count * elements;
  weights.counted_bytes += count * bytes;
  if (elements < smallest_paged) weights.unpaged_bytes += count * bytes;
  if (!treats(counting.optimizer->scope, role)) return;
  weights.treated += count * elements;
  weights.largest_bytes = std::max(weights.largest_bytes, bytes);
  weights.step_bytes = std::max(weights.step_bytes, matrix_step_bytes(*counting.optimizer, rows, cols));
}

TensorRole role_of(const Operator<double>& op) noexcept {
  switch (op.part) {
    case Part::embedding: return TensorRole::embedding;
    case Part::head: return TensorRole::head;
    case Part::attention:
    case Part::mlp:
    case Part::experts: return TensorRole::linear;
    default: return TensorRole::hidden;
  }
}

namespace {

void add_trained(const StateCounting& counting, const Operator<double>& op, Weights& weights) noexcept {
  const double count = std::max(1.0, op.matrices);
  if (op.parameters > op.biases) {
    const TensorRole role = role_of(op);
    if (op.named == 0) add_tensors(counting, role, op.rows, op.cols, count, weights);
    for (std::size_t i = 0; i < op.named; ++i) add_tensors(counting, role, op.named_rows[i], op.cols, count, weights);
  }
  if (op.biases > 0) {
    const double vectors = count * op.vectors;
    add_tensors(counting, TensorRole::vector, op.biases / vectors, 1, vectors, weights);
  }
}

/// The two matrices of each low-rank adapter, r x columns and rows x r; what else adapters have stays elementwise.
void add_adapters(const StateCounting& counting, const Operator<double>& op, Weights& weights) noexcept {
  Weights adapters;
  const double count = std::max(1.0, op.matrices);
  const auto add = [&](double rows) {
    add_tensors(counting, TensorRole::hidden, op.adapter_rank, op.cols, count, adapters);
    add_tensors(counting, TensorRole::hidden, rows, op.adapter_rank, count, adapters);
  };
  if ((op.adapted & adapts_whole_product) != 0) add(op.rows);
  for (std::size_t i = 0; i < op.named; ++i) {
    if ((op.adapted >> i & 1U) != 0) add(op.named_rows[i]);
  }
  weights.adapter_counted += adapters.counted;
  weights.adapter_counted_bytes += adapters.counted_bytes;
  weights.unpaged_bytes += adapters.unpaged_bytes;
  weights.step_bytes = std::max(weights.step_bytes, adapters.step_bytes);
}

}  // namespace

UnitWeights fold_weights(const OperatorList<double>& list, const StateCounting& counting) noexcept {
  UnitWeights unit;
  for (const Operator<double>& op : list.operators) {
    Weights& weights = op.shard == Shard::expert ? unit.expert : unit.dense;
    weights.adapters += op.adapter_parameters;
    if (op.adapted != 0 && counting.per_tensor()) add_adapters(counting, op, weights);
    if (op.parameters <= 0) continue;
    const double matrix = op.parameters - op.biases;
    if (op.trains) {
      weights.trained += op.parameters;
      add_trained(counting, op, weights);
      const bool narrow = op.part == Part::attention || op.part == Part::mlp || op.part == Part::experts;
      if (narrow && op.matrices > 0) weights.narrow += matrix;
    } else if (op.quantized && matrix > 0) {
      weights.quantized += matrix;
      weights.quantized_rows += op.rows * op.matrices;
      weights.frozen += op.biases;
    } else {
      weights.frozen += op.parameters;
      if (op.part == Part::norm) weights.frozen_norms += op.parameters;
    }
  }
  return unit;
}

SavedBytes fold_saved(const OperatorList<double>& list, const Recompute& recompute, double checkpoint_bytes,
                      double op_level_kept) noexcept {
  SavedBytes bytes;
  bytes.checkpoint = checkpoint_bytes;
  const std::uint8_t modules = recomputed_modules(recompute);
  for (const Operator<double>& op : list.operators) {
    bytes.saved += op.saved;
    bytes.kept += kept_bytes(op, modules);
  }
  switch (recompute.mode) {
    case RecomputeMode::full:
    case RecomputeMode::first_n:
    case RecomputeMode::every_k: bytes.kept = checkpoint_bytes; break;
    case RecomputeMode::ops: bytes.kept = op_level_kept; break;
    default: break;
  }
  return bytes;
}

UnitFlop fold_flop(const OperatorList<double>& list, const Recompute& recompute, bool layer_recomputed) noexcept {
  UnitFlop flop;
  int product = 0;
  for (const Operator<double>& op : list.operators) {
    flop.forward += op.forward_flop;
    flop.score += op.score_flop;
    flop.input_gradient += op.input_gradient_flop;
    flop.weight_gradient += op.weight_gradient_flop;
    if (layer_recomputed) {
      if (recompute.mode == RecomputeMode::ops) {
        // Op-level: the attention core and every second matrix product are kept.
        if (op.kind == OperatorKind::gemm) flop.recompute += (product++ % 2 == 1 ? op.forward_flop : 0);
      } else {
        flop.recompute += op.forward_flop;
      }
    } else if (is_recomputed(op, recompute)) {
      flop.recompute += op.forward_flop;
    }
  }
  return flop;
}

}  // namespace shardplan
