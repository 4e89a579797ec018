// GPU memory that no tensor of the run explains: CUDA, NCCL, cuBLAS.
#pragma once

#include "shardplan/plan/workspace.hpp"

namespace shardplan {

/// Outside the framework's allocator: the CUDA context, and NCCL's buffers of every communicator. 0 for textbook.
double framework_bytes(const Run& run, const Topology& topology) noexcept;

/// Inside it: cuBLAS workspaces of two streams.
double workspace_bytes(const Run& run) noexcept;

/// The same line by line, with what the allocator reserves beyond what a stage holds.
std::vector<OverheadDetail> overhead_details(const Run& run, const Topology& topology);

}  // namespace shardplan
