#include "shardplan/physics/optimizer_states.hpp"

#include "shardplan/physics/optimizer_state_formulas.hpp"

namespace shardplan {

using optimizer_state_parts::fp32;

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
  return state_bytes_of_tensor(counting, role, rows, cols);
}

double matrix_step_bytes(const Optimizer& optimizer, double rows, double cols) noexcept {
  return step_bytes_of_matrix(optimizer, rows, cols);
}

}  // namespace shardplan
