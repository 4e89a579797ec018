// Bytes that parameters, gradients and optimizer states take on one rank, per framework.
#pragma once

#include "shardplan/core/run.hpp"
#include "shardplan/physics/fold.hpp"
#include "shardplan/physics/optimizers.hpp"

namespace shardplan {

/// How wide each state is and how many ranks share it: the row of the framework's table with the run's overrides in it.
struct StateRule {
  double parameter_bytes = 2;
  double gradient_bytes = 2;
  double master_bytes = 4;            ///< 0: no master copy
  double moment_bytes = 8;            ///< optimizer state per element that is not counted tensor by tensor
  double replica_share_bytes = 0;     ///< of it, what is cut over the data-parallel ranks whatever else is
  double narrow_parameter_bytes = 0;  ///< of matrices that are stored narrow (fp8.param_gather); 0: none are
  double frozen_bytes = 2;
  double quantized_bytes = 0;           ///< per element, block constants apart
  double quantized_constant_bytes = 0;  ///< per element: block maxima
  double quantized_row_bytes = 0;
  double adapter_parameter_bytes = 4;
  double adapter_gradient_bytes = 4;
  double adapter_master_bytes = 0;
  double adapter_moment_bytes = 8;
  double parameter_shards = 1, gradient_shards = 1, optimizer_shards = 1;  ///< dense
  double expert_parameter_shards = 1, expert_gradient_shards = 1, expert_optimizer_shards = 1;
  double dense_replicas = 1, expert_replicas = 1;  ///< data-parallel ranks, whatever they share
  bool keeps_gradients = true;                     ///< false: each is used as soon as it is made
  bool constants_sharded = true;                   ///< FSDP does not shard a quantised weight's constants
  bool adapters_sharded = true;
  bool padded_buffers = false;  ///< Megatron's contiguous buffers, padded to lcm(shards, 128) elements
  bool whole_matrices = false;  ///< a matrix' states and step stay on one rank (Megatron's layer-wise optimizer)
  bool rounds_bytes = false;    ///< textbook: P x bytes / N, rounded up once; else whole elements per shard
};

StateRule state_rule(const Run& run) noexcept;

/// What the states of a run's tensors depend on.
StateCounting state_counting(const Run& run) noexcept;

/// Bytes per weight of the narrow copies that Transformer Engine caches from a step's first microbatch on: a row-wise
/// and a transposed one where the GPU's narrow products need both, block scales included (Transformer Engine
/// float8_tensor.py). 0 where the run multiplies in 16 bit or its framework casts on the fly (torchao).
double narrow_copy_bytes(const Run& run) noexcept;

/// Bytes per element of a product's input as it is kept for the weight's gradient, 0 where it stays as wide as it is.
double narrow_input_bytes(const Run& run) noexcept;

/// Bytes on one rank.
template <class N>
struct StateBytesOf {
  N parameters{};
  N gradients{};
  N optimizer{};
  N moments{};  ///< of it, without a master copy
  N paged{};    ///< of that, in pages that can move to the host
  StateBytesOf& operator+=(const StateBytesOf& other) {
    parameters += other.parameters;
    gradients += other.gradients;
    optimizer += other.optimizer;
    moments += other.moments;
    paged += other.paged;
    return *this;
  }
};
using StateBytes = StateBytesOf<double>;

/// Of one unit (a layer or an end), each shard rounded up; for textbook and Megatron, whose buffers span the stage,
/// call it with the stage's sum.
StateBytes state_bytes(const StateRule& rule, const UnitWeights& weights, const Optimizer& optimizer) noexcept;

/// What a block-coordinate optimizer keeps of the layer that it trains: gradients, fp32 master copy, moments.
StateBytes active_layer_bytes(const StateRule& rule, double elements) noexcept;

/// Whether states are rounded per unit or over the whole stage.
bool rounds_per_unit(Framework framework) noexcept;

}  // namespace shardplan
