// GPU memory that no tensor of the run explains: CUDA, NCCL, cuBLAS. Formulas over numbers or text (physics/trace.hpp).
#pragma once

#include <algorithm>
#include <array>

#include "shardplan/core/bytes.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/plan/memory_names.hpp"
#include "shardplan/plan/workspace.hpp"

namespace shardplan {

namespace overhead_constants {
inline constexpr double gib = 1024.0 * mib;
// With lazy module loading (Stas Bekman, ml-engineering, "GPU memory": 0.47 GiB on A100; CUDA 11.7 and later).
inline constexpr double cuda_context = 0.5 * gib;
// NCCL's channels and connections (ml-engineering: 1.45 GiB after the first barrier, "1-2 GiB, grows with ranks").
inline constexpr double nccl_inside = 0.4 * gib;
inline constexpr double nccl_across = 0.6 * gib;
inline constexpr double nccl_most = 2.0 * gib;

inline constexpr std::array communicators = {GroupKind::tensor, GroupKind::pipeline, GroupKind::data,
                                             GroupKind::context, GroupKind::expert};
}  // namespace overhead_constants

/// NCCL's buffers of one communicator.
template <class Trace, class N = NumberOf<Trace>>
N communicator_bytes(const Trace& trace, const RankGroup& group) {
  using namespace overhead_constants;
  if (group.size <= 1) return 0.0;
  return group.scope == Scope::inter_node ? trace.input(memory_names::nccl_across, nccl_across)
                                          : trace.input(memory_names::nccl_inside, nccl_inside);
}

/// Of all of them, without their ceiling.
template <class Trace, class N = NumberOf<Trace>>
N all_communicators_bytes(const Trace& trace, const Topology& topology) {
  N sum = 0.0;
  for (const GroupKind kind : overhead_constants::communicators) {
    sum += communicator_bytes(trace, topology.group(kind));
  }
  return sum;
}

/// What estimate_memory reads once for all stages; 0 for textbook. The first is outside the framework's allocator: the
/// CUDA context, and NCCL's buffers of every communicator. The second is inside: cuBLAS workspaces of two streams.
template <class Trace, class N = NumberOf<Trace>>
MemoryOverheadsOf<N> memory_overheads(const Trace& trace, const Run& run, const Topology& topology) {
  using namespace overhead_constants;
  using std::min;
  MemoryOverheadsOf<N> bytes;
  if (!facts_of(run.training.framework).measures_overheads) return bytes;
  const N all = all_communicators_bytes(trace, topology);
  const N nccl = value_of(all) > 0
                     ? trace.step(memory_names::nccl, min(all, trace.input(memory_names::nccl_most, nccl_most)))
                     : N(0.0);
  bytes.framework = trace.input(memory_names::cuda_context, cuda_context) + nccl;
  const Gpu& gpu = run.cluster.gpu;
  if (gpu.major == 0) return bytes;
  bytes.workspaces = 2.0 * trace.input(memory_names::stream_workspace, (gpu.major >= 9 ? 32.0 : 8.125) * mib);
  return bytes;
}

/// The same line by line, with what the allocator reserves beyond what a stage holds.
std::vector<OverheadDetail> overhead_details(const Run& run, const Topology& topology);

}  // namespace shardplan
