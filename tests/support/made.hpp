// A GPU, a cluster and a run of round numbers, so that times can be worked out by hand beside what is expected. No
// measured table, no start-up times, no factor but those that a test sets.
#pragma once

#include "shardplan/core/run.hpp"

namespace test {

/// 1e15 FLOP/s in 16 bit and twice that in fp8, of which products reach half; 1e12 B/s of HBM; 100 multiprocessors.
inline shardplan::Gpu made_gpu() {
  shardplan::Gpu gpu;
  gpu.name = "made";
  gpu.memory_bandwidth = 1e12;
  gpu.memory_cuda_bytes = 1e11;
  gpu.pcie_bandwidth = 50e9;
  gpu.peak_flop_per_s = {1e14, 5e14, 1e15, 1e15, 2e15, 4e15};  // fp32 tf32 fp16 bf16 fp8 nvfp4
  gpu.multiprocessors = 100;
  gpu.gemm.peak_fraction = 0.5;
  gpu.gemm.k0 = 0;
  gpu.gemm.memory_fraction = 1;
  gpu.gemm.launch_s = 0;
  gpu.gemm.wave_quantisation = 0;
  gpu.attention = gpu.attention_v1 = gpu.attention_v3 = {0.5, 0.25, 0};
  gpu.inter_node_efficiency = {0.5, 0.5, 0.5, 0.5, 0.5};
  return gpu;
}

/// Nodes of eight such GPUs: 50 GB/s that collectives reach inside a node, 25 GB/s a GPU across, no latencies.
inline shardplan::Cluster made_cluster() {
  shardplan::Cluster cluster;
  cluster.name = "made";
  cluster.gpu = made_gpu();
  cluster.intra_node.bandwidth = 100e9;
  cluster.intra_node_efficiency = 0.5;
  cluster.inter_node.bandwidth = 50e9;
  return cluster;
}

/// A run on it whose stack adds nothing of its own.
inline shardplan::Run made_run() {
  shardplan::Run run;
  run.cluster = made_cluster();
  run.training.seq_length = 1000;
  run.training.global_batch_size = 1;
  run.training.framework = shardplan::Framework::megatron;
  run.training.compile = true;
  shardplan::StackTiming& timing = run.training.stack.timing;
  timing.host_forward_s = timing.host_backward_s = 0;
  timing.optimizer_fixed_s = 0;
  timing.narrow_head_share = timing.grouped_product_share = timing.weight_gradient_share = 1;
  timing.batched_product_share = timing.misaligned_head_slowdown = 1;
  timing.expert_start_s = 0;
  return run;
}

}  // namespace test
