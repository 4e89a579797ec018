#include "shardplan/physics/fold.hpp"

namespace shardplan {
namespace {

std::uint8_t recomputed_modules(const Recompute& recompute) noexcept {
  if (recompute.mode == RecomputeMode::selective) return recompute_core_attn;
  if (recompute.mode == RecomputeMode::modules) return recompute.modules;
  return 0;
}

bool covers(std::uint8_t modules, Covered covered) noexcept {
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

}  // namespace

Weights& Weights::operator+=(const Weights& other) noexcept {
  trained += other.trained;
  trained_vectors += other.trained_vectors;
  trained_factored += other.trained_factored;
  trained_hidden += other.trained_hidden;
  narrow += other.narrow;
  frozen += other.frozen;
  frozen_norms += other.frozen_norms;
  quantized += other.quantized;
  quantized_rows += other.quantized_rows;
  adapters += other.adapters;
  adapter_vectors += other.adapter_vectors;
  return *this;
}

UnitWeights& UnitWeights::operator+=(const UnitWeights& other) noexcept {
  dense += other.dense;
  expert += other.expert;
  return *this;
}

UnitWeights fold_weights(const OperatorList<double>& list) noexcept {
  UnitWeights unit;
  for (const Operator<double>& op : list.operators) {
    Weights& weights = op.shard == Shard::expert ? unit.expert : unit.dense;
    weights.adapters += op.adapter_parameters;
    if (op.parameters <= 0) continue;
    const double matrix = op.parameters - op.biases;
    if (op.trains) {
      weights.trained += op.parameters;
      weights.trained_vectors += op.biases;
      weights.trained_factored += op.factored;
      if (op.part != Part::embedding && op.part != Part::head) weights.trained_hidden += matrix;
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

bool is_recomputed(const Operator<double>& op, const Recompute& recompute) noexcept {
  const std::uint8_t modules = recomputed_modules(recompute);
  return covers(modules, op.rerun_by) || covers(modules, op.also_rerun_by);
}

SavedBytes fold_saved(const OperatorList<double>& list, const Recompute& recompute, double checkpoint_bytes,
                      double op_level_kept) noexcept {
  SavedBytes bytes;
  bytes.checkpoint = checkpoint_bytes;
  const std::uint8_t modules = recomputed_modules(recompute);
  for (const Operator<double>& op : list.operators) {
    bytes.saved += op.saved;
    double kept = op.saved;
    if (covers(modules, op.covered) && op.saved_recomputed < kept) kept = op.saved_recomputed;
    if (covers(modules, op.also_covered)) {
      const double dropped = op.saved - op.saved_also_recomputed;
      kept = kept > dropped ? kept - dropped : 0;
    }
    bytes.kept += kept;
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
