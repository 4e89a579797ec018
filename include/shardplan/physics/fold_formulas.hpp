// Sums over operator lists, as formulas over numbers or text (trace.hpp). fold.hpp has them over double.
#pragma once

#include <algorithm>

#include "shardplan/physics/fold.hpp"
#include "shardplan/physics/memory_names.hpp"
#include "shardplan/physics/optimizer_state_formulas.hpp"

namespace shardplan {

/// add_tensors of fold.hpp.
template <class N>
void count_tensors(const StateCounting& counting, TensorRole role, N rows, N cols, N count, WeightsOf<N>& weights) {
  const N elements = rows * cols;
  if (value_of(elements) <= 0) return;
  weights.largest_tensor = larger(weights.largest_tensor, elements);
  if (!counting.per_tensor()) return;
  const N bytes = state_bytes_of_tensor(counting, role, rows, cols);
  weights.counted += count * elements;
  weights.counted_bytes += count * bytes;
  if (value_of(elements) < smallest_paged) weights.unpaged_bytes += count * bytes;
  if (!treats(counting.optimizer->scope, role)) return;
  weights.treated += count * elements;
  weights.largest_bytes = larger(weights.largest_bytes, bytes);
  weights.step_bytes = larger(weights.step_bytes, step_bytes_of_matrix(*counting.optimizer, rows, cols));
}

namespace fold_parts {

template <class N>
void add_trained(const StateCounting& counting, const Operator<N>& op, WeightsOf<N>& weights) {
  const N count = larger(N(1.0), op.matrices);
  if (op.parameters > op.biases) {
    const TensorRole role = role_of(op);
    if (op.named == 0) count_tensors(counting, role, op.rows, op.cols, count, weights);
    for (std::size_t i = 0; i < op.named; ++i) count_tensors(counting, role, op.named_rows[i], op.cols, count, weights);
  }
  if (value_of(op.biases) > 0) {
    const N vectors = count * N(op.vectors);
    count_tensors(counting, TensorRole::vector, op.biases / vectors, N(1.0), vectors, weights);
  }
}

/// The two matrices of each low-rank adapter, r x columns and rows x r; what else adapters have stays elementwise.
template <class N>
void add_adapters(const StateCounting& counting, const Operator<N>& op, WeightsOf<N>& weights) {
  WeightsOf<N> adapters;
  const N count = larger(N(1.0), op.matrices);
  const auto add = [&](N rows) {
    count_tensors(counting, TensorRole::hidden, op.adapter_rank, op.cols, count, adapters);
    count_tensors(counting, TensorRole::hidden, rows, op.adapter_rank, count, adapters);
  };
  if ((op.adapted & adapts_whole_product) != 0) add(op.rows);
  for (std::size_t i = 0; i < op.named; ++i) {
    if ((op.adapted >> i & 1U) != 0) add(op.named_rows[i]);
  }
  weights.adapter_counted += adapters.counted;
  weights.adapter_counted_bytes += adapters.counted_bytes;
  weights.unpaged_bytes += adapters.unpaged_bytes;
  weights.step_bytes = larger(weights.step_bytes, adapters.step_bytes);
}

/// A unit's sums as steps: what later formulas are written in.
template <class Trace, class N = NumberOf<Trace>>
void name_weights(const Trace& trace, const memory_names::WeightNames& names, WeightsOf<N>& w) {
  w.trained = trace.step(names.trained, w.trained);
  w.narrow = trace.step(names.narrow, w.narrow);
  w.frozen = trace.step(names.frozen, w.frozen);
  w.quantized = trace.step(names.quantized, w.quantized);
  w.quantized_rows = trace.step(names.quantized_rows, w.quantized_rows);
  w.adapters = trace.step(names.adapters, w.adapters);
  w.counted = trace.step(names.counted, w.counted);
  w.counted_bytes = trace.step(names.counted_bytes, w.counted_bytes);
  w.treated = trace.step(names.treated, w.treated);
  w.adapter_counted = trace.step(names.adapter_counted, w.adapter_counted);
  w.adapter_counted_bytes = trace.step(names.adapter_counted_bytes, w.adapter_counted_bytes);
  w.unpaged_bytes = trace.step(names.unpaged_bytes, w.unpaged_bytes);
  w.largest_bytes = trace.step(names.largest_bytes, w.largest_bytes);
  w.step_bytes = trace.step(names.step_bytes, w.step_bytes);
  w.largest_tensor = trace.step(names.largest_tensor, w.largest_tensor);
}

}  // namespace fold_parts

/// fold_weights of fold.hpp.
template <class Trace, class N = NumberOf<Trace>>
UnitWeightsOf<N> unit_weights(const Trace& trace, const OperatorList<N>& list, const StateCounting& counting) {
  UnitWeightsOf<N> unit;
  for (const Operator<N>& op : list.operators) {
    WeightsOf<N>& weights = op.shard == Shard::expert ? unit.expert : unit.dense;
    weights.adapters += op.adapter_parameters;
    if (op.adapted != 0 && counting.per_tensor()) fold_parts::add_adapters(counting, op, weights);
    if (value_of(op.parameters) <= 0) continue;
    const N matrix = op.parameters - op.biases;
    if (op.trains) {
      weights.trained += op.parameters;
      fold_parts::add_trained(counting, op, weights);
      const bool narrow = op.part == Part::attention || op.part == Part::mlp || op.part == Part::experts;
      if (narrow && value_of(op.matrices) > 0) weights.narrow += matrix;
    } else if (op.quantized && value_of(matrix) > 0) {
      weights.quantized += matrix;
      weights.quantized_rows += op.rows * op.matrices;
      weights.frozen += op.biases;
    } else {
      weights.frozen += op.parameters;
      if (op.part == Part::norm) weights.frozen_norms += op.parameters;
    }
  }
  fold_parts::name_weights(trace, memory_names::dense_weights, unit.dense);
  fold_parts::name_weights(trace, memory_names::expert_weights, unit.expert);
  return unit;
}

/// What stays in the place of what a unit saves where whole layers or single operators run again.
template <class N>
N kept_under(const Recompute& recompute, N kept, N checkpoint, N op_level_kept) {
  switch (recompute.mode) {
    case RecomputeMode::full:
    case RecomputeMode::first_n:
    case RecomputeMode::every_k: return checkpoint;
    case RecomputeMode::ops: return op_level_kept;
    default: return kept;
  }
}

/// fold_saved of fold.hpp.
template <class Trace, class N = NumberOf<Trace>>
SavedBytesOf<N> saved_bytes(const Trace& trace, const OperatorList<N>& list, const Recompute& recompute,
                            N checkpoint_bytes, N op_level_kept) {
  SavedBytesOf<N> bytes;
  const std::uint8_t modules = recomputed_modules(recompute);
  N saved = 0.0, kept = 0.0;  // the same, operator by operator under their names
  for (const Operator<N>& op : list.operators) {
    const Trace here = trace.in(op.name);
    const N all = here.step(memory_names::saved_by(op.name), op.saved, op.name, " keeps for backward");
    const N rest = kept_bytes(op, modules);
    saved += all;
    bytes.saved += op.saved;
    bytes.kept += rest;
    kept += value_of(rest) == value_of(all)
                ? all
                : here.step(memory_names::kept_by(op.name), rest, op.name, " keeps under recomputation");
  }
  bytes.saved = trace.total(memory_names::unit_saved, bytes.saved, saved);
  bytes.checkpoint = trace.step(memory_names::unit_checkpoint, checkpoint_bytes);
  bytes.kept = trace.total(
      recompute.mode == RecomputeMode::ops ? memory_names::unit_kept_by_operator : memory_names::unit_kept,
      kept_under(recompute, bytes.kept, bytes.checkpoint, op_level_kept), kept_under(recompute, kept, N(0.0), N(0.0)));
  return bytes;
}

/// fold_flop of fold.hpp.
template <class N>
UnitFlopOf<N> unit_flop(const OperatorList<N>& list, const Recompute& recompute, bool layer_recomputed) {
  UnitFlopOf<N> flop;
  int product = 0;
  for (const Operator<N>& op : list.operators) {
    flop.forward += op.forward_flop;
    flop.score += op.score_flop;
    flop.input_gradient += op.input_gradient_flop;
    flop.weight_gradient += op.weight_gradient_flop;
    if (layer_recomputed) {
      if (recompute.mode == RecomputeMode::ops) {
        // Op-level: the attention core and every second matrix product are kept.
        if (op.kind == OperatorKind::gemm) flop.recompute += (product++ % 2 == 1 ? op.forward_flop : N(0.0));
      } else {
        flop.recompute += op.forward_flop;
      }
    } else if (is_recomputed(op, recompute)) {
      flop.recompute += op.forward_flop;
    }
  }
  return flop;
}

/// What people open of an operator beside bytes and times: its weights and FLOP.
template <class Trace, class N = NumberOf<Trace>>
void operator_facts(const Trace& trace, const OperatorList<N>& list) {
  if constexpr (Trace::records) {
    for (const Operator<N>& op : list.operators) {
      const Trace here = trace.in(op.name);
      here.step(memory_names::parameters_of(op.name), op.parameters + op.adapter_parameters, op.name,
                " parameters on this rank");
      here.step(memory_names::forward_flop_of(op.name), op.forward_flop, op.name, " forward");
      here.step(memory_names::backward_flop_of(op.name), op.input_gradient_flop + op.weight_gradient_flop, op.name,
                " backward, both gradients");
    }
  }
}

}  // namespace shardplan
