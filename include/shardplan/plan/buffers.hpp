// What frameworks keep for gathers, reductions and messages.
#pragma once

#include "shardplan/plan/workspace.hpp"

namespace shardplan {

/// What is alive besides states and activations, by cause.
struct Buffers {
  double gathered = 0;          ///< unsharded copies of sharded weights
  double collectives = 0;       ///< buckets, reduce-scatter inputs, receive buffers
  double gathered_at_loss = 0;  ///< of `gathered`, what is there when the loss is computed
  double at_loss = 0;           ///< of `collectives`
  double lasting = 0;           ///< of `collectives`, what lives as long as the model
  double gradients_apart = 0;   ///< of a whole microbatch, in the weights' type, once its backward pass has ended
  double cached = 0;            ///< narrow copies of weights, from the first microbatch on
  double root_gradient = 0;     ///< unsharded gradient of the head, alive from the loss on
};

/// Buffers of one stage: FSDP's gathered units, DeepSpeed's pools and buckets, DDP's buckets, p2p messages.
Buffers buffers_of(const Run& run, const EstimateWorkspace& w, const Stage& stage) noexcept;

}  // namespace shardplan
