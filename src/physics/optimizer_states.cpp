#include "shardplan/physics/optimizer_states.hpp"

#include <algorithm>
#include <cmath>

namespace shardplan {
namespace {

constexpr double fp32 = 4;

/// Elements and whole blocks with their scales; small tensors as they come.
double quantized_state_bytes(const StateCounting& counting, TensorRole role, double elements) noexcept {
  const Optimizer& optimizer = *counting.optimizer;
  const bool bitsandbytes = optimizer.kernel == StepKernel::bitsandbytes;
  if (elements < smallest_quantized || (counting.embedding_in_fp32 && role == TensorRole::embedding)) {
    return optimizer.quantized_tensors * (bitsandbytes ? fp32 : counting.width) * elements;
  }
  const double blocks = std::ceil(elements / optimizer.block);
  return optimizer.quantized_tensors * (optimizer.quantized_bytes * elements + fp32 * blocks);
}

/// Sum of squares of the blocks that a side of `length` is cut into, per side: cut into whole blocks and a rest.
double blocked_squares(const Optimizer& optimizer, double rows, double cols) noexcept {
  const double block = optimizer.block_side;
  if (block <= 0) {
    const auto square = [&optimizer](double side) {
      return optimizer.longest_side > 0 && side > optimizer.longest_side ? 0.0 : side * side;
    };
    return square(rows) + square(cols);
  }
  // Every block of the grid has a square of its height and one of its width.
  const auto squares = [block](double side) {
    const double whole = std::floor(side / block), rest = side - whole * block;
    return whole * block * block + rest * rest;
  };
  return squares(rows) * std::ceil(cols / block) + squares(cols) * std::ceil(rows / block);
}

double low_rank_bytes(const StateCounting& counting, double smaller, double larger) noexcept {
  const Optimizer& optimizer = *counting.optimizer;
  const double rank = std::min(counting.rank, smaller);
  const double moments = optimizer.low_rank_tensors * counting.width + optimizer.low_rank_fixed_bytes;
  return optimizer.projector_bytes * smaller * rank + moments * rank * larger;
}

}  // namespace

double elementwise_bytes(const Optimizer& optimizer, double width) noexcept {
  if (optimizer.block > 0) return optimizer.quantized_tensors * (optimizer.quantized_bytes + fp32 / optimizer.block);
  return optimizer.state_tensors * width + optimizer.fixed_bytes;
}

bool treats(MatrixScope scope, TensorRole role) noexcept {
  switch (scope) {
    case MatrixScope::none: return false;
    case MatrixScope::all: return role != TensorRole::vector;
    case MatrixScope::hidden: return role == TensorRole::hidden || role == TensorRole::linear;
    case MatrixScope::linear: return role == TensorRole::linear;
  }
  return false;
}

double tensor_state_bytes(const StateCounting& counting, TensorRole role, double rows, double cols) noexcept {
  const Optimizer& optimizer = *counting.optimizer;
  const double elements = rows * cols;
  if (treats(optimizer.scope, role)) {
    // Adam-mini has one number for each output, the others one for each row and each column.
    const double sides = optimizer.form == StateForm::row_blocks ? rows : rows + cols;
    double bytes = optimizer.matrix_tensors * counting.width * elements + fp32 * optimizer.side_numbers * sides;
    if (optimizer.side_squares > 0) bytes += fp32 * optimizer.side_squares * blocked_squares(optimizer, rows, cols);
    if (optimizer.rank != ProjectionRank::none) {
      bytes += low_rank_bytes(counting, std::min(rows, cols), std::max(rows, cols));
    }
    return bytes;
  }
  if (optimizer.block > 0) return quantized_state_bytes(counting, role, elements);
  const double bytes = elementwise_bytes(optimizer, counting.width) * elements;
  if (optimizer.form == StateForm::factored) return bytes + fp32 * elements;
  return optimizer.form == StateForm::row_blocks ? bytes + fp32 : bytes;
}

double matrix_step_bytes(const Optimizer& optimizer, double rows, double cols) noexcept {
  const double smaller = std::min(rows, cols);
  switch (optimizer.work) {
    case MatrixWork::none: return 0;
    case MatrixWork::newton_schulz: return 2 * (rows * cols + 2 * smaller * smaller);
    case MatrixWork::project_and_back: return fp32 * rows * cols;
    case MatrixWork::project: return 0;
  }
  return 0;
}

}  // namespace shardplan
