// Bytes that an optimizer keeps of one tensor, as formulas over numbers or text (optimizer_states.hpp has them over
// double).
#pragma once

#include <cmath>

#include "shardplan/physics/optimizer_states.hpp"
#include "shardplan/physics/trace.hpp"

namespace shardplan {

namespace optimizer_state_parts {

inline constexpr double fp32 = 4;

/// Elements and whole blocks with their scales; small tensors as they come.
template <class N>
N quantized_bytes(const StateCounting& counting, TensorRole role, N elements) {
  using std::ceil;
  const Optimizer& optimizer = *counting.optimizer;
  const bool bitsandbytes = optimizer.kernel == StepKernel::bitsandbytes;
  if (value_of(elements) < smallest_quantized || (counting.embedding_in_fp32 && role == TensorRole::embedding)) {
    return N(optimizer.quantized_tensors * (bitsandbytes ? fp32 : counting.width)) * elements;
  }
  const N blocks = ceil(elements / optimizer.block);
  return N(optimizer.quantized_tensors) * (N(optimizer.quantized_bytes) * elements + N(fp32) * blocks);
}

/// Sum of squares of the blocks that a side of `length` is cut into, per side: cut into whole blocks and a rest.
template <class N>
N blocked_squares(const Optimizer& optimizer, N rows, N cols) {
  using std::ceil;
  const double block = optimizer.block_side;
  if (block <= 0) {
    const auto square = [&optimizer](N side) {
      return optimizer.longest_side > 0 && value_of(side) > optimizer.longest_side ? N(0.0) : side * side;
    };
    return square(rows) + square(cols);
  }
  // Every block of the grid has a square of its height and one of its width.
  const auto squares = [block](N side) {
    using std::floor;
    const N whole = floor(side / block), rest = side - whole * block;
    return whole * block * block + rest * rest;
  };
  return squares(rows) * ceil(cols / block) + squares(cols) * ceil(rows / block);
}

template <class N>
N low_rank_bytes(const StateCounting& counting, N smaller, N larger_side) {
  const Optimizer& optimizer = *counting.optimizer;
  const N rank = value_of(smaller) < counting.rank ? smaller : N(counting.rank);
  const double moments = optimizer.low_rank_tensors * counting.width + optimizer.low_rank_fixed_bytes;
  return N(optimizer.projector_bytes) * smaller * rank + N(moments) * rank * larger_side;
}

}  // namespace optimizer_state_parts

/// tensor_state_bytes of optimizer_states.hpp.
template <class N>
N state_bytes_of_tensor(const StateCounting& counting, TensorRole role, N rows, N cols) {
  using namespace optimizer_state_parts;
  const Optimizer& optimizer = *counting.optimizer;
  const N elements = rows * cols;
  if (treats(optimizer.scope, role)) {
    // Adam-mini has one number for each output, the others one for each row and each column.
    const N sides = optimizer.form == StateForm::row_blocks ? rows : rows + cols;
    N bytes = N(optimizer.matrix_tensors * counting.width) * elements + N(fp32 * optimizer.side_numbers) * sides;
    if (optimizer.side_squares > 0) {
      bytes += N(fp32 * optimizer.side_squares) * blocked_squares(optimizer, rows, cols);
    }
    if (optimizer.rank != ProjectionRank::none) {
      const bool tall = value_of(cols) < value_of(rows);
      bytes += low_rank_bytes(counting, tall ? cols : rows, tall ? rows : cols);
    }
    return bytes;
  }
  if (optimizer.block > 0) return quantized_bytes(counting, role, elements);
  const N bytes = N(elementwise_bytes(optimizer, counting.width)) * elements;
  if (optimizer.form == StateForm::factored) return bytes + N(fp32) * elements;
  return optimizer.form == StateForm::row_blocks ? bytes + N(fp32) : bytes;
}

/// matrix_step_bytes of optimizer_states.hpp.
template <class N>
N step_bytes_of_matrix(const Optimizer& optimizer, N rows, N cols) {
  const N smaller = value_of(cols) < value_of(rows) ? cols : rows;
  switch (optimizer.work) {
    case MatrixWork::none: return 0.0;
    case MatrixWork::newton_schulz: return 2.0 * (rows * cols + 2.0 * smaller * smaller);
    case MatrixWork::project_and_back: return N(optimizer_state_parts::fp32) * rows * cols;
    case MatrixWork::project: return 0.0;
  }
  return 0.0;
}

}  // namespace shardplan
