// Bytes that an optimizer keeps of one tensor, and what stepping it needs.
#pragma once

#include <cstdint>

#include "shardplan/physics/optimizers.hpp"

namespace shardplan {

/// What a trained tensor is to an optimizer.
enum class TensorRole : std::uint8_t {
  vector,     ///< norms, biases, sinks
  embedding,  ///< tables of tokens and positions
  head,
  linear,  ///< attention and MLP, each expert's own
  hidden,  ///< other matrices: routers and the like
};

/// What the states of every tensor of a run depend on.
struct StateCounting {
  const Optimizer* optimizer = nullptr;  ///< nullptr: states are elementwise
  double width = 4;                      ///< bytes of `optimizer_state_dtype`
  double rank = 0;                       ///< that gradients are projected to, at most
  bool embedding_in_fp32 = false;        ///< an 8-bit optimizer keeps the embedding's states in fp32

  bool per_tensor() const noexcept { return optimizer != nullptr && optimizer->per_tensor(); }
};

/// Elementwise states: bytes per parameter.
double elementwise_bytes(const Optimizer& optimizer, double width) noexcept;

/// Whether the optimizer's form treats such a tensor as a matrix.
bool treats(MatrixScope scope, TensorRole role) noexcept;

/// States of one tensor of rows x cols (a vector: cols 1). Bytes, before data sharding.
double tensor_state_bytes(const StateCounting& counting, TensorRole role, double rows, double cols) noexcept;

/// The most that the step over one matrix holds besides its states, where the update needs products: Newton-Schulz
/// iterates X and the two products of its smaller side in 16 bit; GaLore decomposes an fp32 copy of the gradient.
double matrix_step_bytes(const Optimizer& optimizer, double rows, double cols) noexcept;

/// Elements from which a bitsandbytes or torchao optimizer quantises a tensor's states (min_8bit_size).
inline constexpr double smallest_quantized = 4096;
/// Elements from which a paged optimizer pages a tensor's states (bitsandbytes, get_state_buffer).
inline constexpr double smallest_paged = 1e5;

}  // namespace shardplan
