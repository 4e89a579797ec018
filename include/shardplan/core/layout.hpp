// The layout of a run: the fields that a search varies, as one value. Its parts are what is decided together and read
// together, so that a search can hold them apart without a second definition of any field.
#pragma once

#include <compare>
#include <cstdint>

#include "shardplan/core/run.hpp"

namespace shardplan {

/// How many ranks there are, and how they share out the model and the sequences.
struct Degrees {
  int num_gpus = 1;
  int tensor = 1;
  int pipeline = 1;
  int context = 1;
  int expert = 1;
  int expert_tensor = 1;
};

/// What one layer does with a microbatch.
struct MicrobatchOptions {
  std::int64_t micro_batch_size = 1;
  Recompute recompute;
  AttentionKernel attention = AttentionKernel::flash;
  bool sequence_parallel = false;
  bool overlap_tp = false;
};

/// The order of a pipeline's passes.
struct PassOrder {
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  int virtual_pipeline = 1;
  bool overlap_p2p = true;
};

/// Where the states of the weights and the activations are, and what hides behind compute of their traffic.
struct StatePlacement {
  int zero_stage = 0;
  Fsdp fsdp = Fsdp::none;
  int shard_group = 0;  ///< of hybrid_shard; 0: none
  OffloadDevice offload_optimizer = OffloadDevice::none;
  OffloadDevice offload_parameters = OffloadDevice::none;
  OffloadDevice offload_activations = OffloadDevice::none;
  bool overlap_grad_reduce = true;
  bool overlap_param_gather = true;
};

struct Layout : Degrees, MicrobatchOptions, PassOrder, StatePlacement {};

/// The layout of a resolved run.
Layout layout_of(const Run& run) noexcept;

/// Data-parallel ranks: what the other degrees leave of the GPUs.
inline int data_parallel(const Degrees& degrees) noexcept {
  return degrees.num_gpus / (degrees.tensor * degrees.pipeline * degrees.context);
}

// A part's fields written into a run. What follows from them (data, layers_per_chunk, types of the states) is not.
void put(const Degrees& part, Run& run) noexcept;
void put(const MicrobatchOptions& part, Run& run) noexcept;
void put(const PassOrder& part, Run& run) noexcept;
void put(const StatePlacement& part, Run& run) noexcept;  ///< shard_group where it is not 0
void put(const Layout& layout, Run& run) noexcept;

/// The order in which equal layouts are listed: fewer GPUs, then smaller values of tensor, pipeline, virtual_pipeline,
/// context, expert, expert_tensor, micro_batch_size, schedule, zero_stage, fsdp and shard_group, then less
/// recomputation, attention kernels in their order, sequence parallel first, no offload first, overlapped first.
std::strong_ordering order_of(const Layout& left, const Layout& right) noexcept;

}  // namespace shardplan
