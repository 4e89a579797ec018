#include "shardplan/plan/overheads.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "shardplan/core/bytes.hpp"
#include "shardplan/physics/frameworks/facts.hpp"

namespace shardplan {
namespace {

constexpr double gib = 1024.0 * mib;
// With lazy module loading (Stas Bekman, ml-engineering, "GPU memory": 0.47 GiB on A100; CUDA 11.7 and later).
constexpr double cuda_context_bytes = 0.5 * gib;
// NCCL's channels and connections (ml-engineering: 1.45 GiB after the first barrier, "1-2 GiB, grows with ranks").
constexpr double nccl_inside_bytes = 0.4 * gib;
constexpr double nccl_across_bytes = 0.6 * gib;
constexpr double nccl_most_bytes = 2.0 * gib;

constexpr std::array communicators = {GroupKind::tensor, GroupKind::pipeline, GroupKind::data, GroupKind::context,
                                      GroupKind::expert};

double communicator_bytes(const RankGroup& group) noexcept {
  if (group.size <= 1) return 0;
  return group.scope == Scope::inter_node ? nccl_across_bytes : nccl_inside_bytes;
}

double all_communicators_bytes(const Topology& topology) noexcept {
  double sum = 0;
  for (const GroupKind kind : communicators) sum += communicator_bytes(topology.group(kind));
  return sum;
}

double stream_workspace_bytes(const Gpu& gpu) noexcept { return (gpu.major >= 9 ? 32.0 : 8.125) * mib; }

}  // namespace

double framework_bytes(const Run& run, const Topology& topology) noexcept {
  if (!facts_of(run.training.framework).measures_overheads) return 0;
  return cuda_context_bytes + std::min(all_communicators_bytes(topology), nccl_most_bytes);
}

double workspace_bytes(const Run& run) noexcept {
  const Gpu& gpu = run.cluster.gpu;
  if (!facts_of(run.training.framework).measures_overheads || gpu.major == 0) return 0;
  return 2 * stream_workspace_bytes(gpu);
}

std::vector<OverheadDetail> overhead_details(const Run& run, const Topology& topology) {
  std::vector<OverheadDetail> lines;
  if (!facts_of(run.training.framework).measures_overheads) return lines;
  const auto add = [&lines](std::string_view name, double bytes, bool allocated, std::string_view source) {
    lines.push_back({name, static_cast<std::int64_t>(std::llround(bytes)), allocated, source});
  };
  add("cuda_context", cuda_context_bytes, false, "ml-engineering: 0.47 GiB, modules loaded lazily");
  // What is left of each one's share where their sum is over its ceiling.
  const double nccl = all_communicators_bytes(topology);
  const double share = nccl > nccl_most_bytes ? nccl_most_bytes / nccl : 1.0;
  constexpr std::array<std::string_view, communicators.size()> names = {"nccl_tensor", "nccl_pipeline", "nccl_data",
                                                                        "nccl_context", "nccl_expert"};
  for (std::size_t i = 0; i < communicators.size(); ++i) {
    const RankGroup& group = topology.group(communicators[i]);
    if (group.size <= 1) continue;
    add(names[i], share * communicator_bytes(group), false,
        group.scope == Scope::inter_node ? "ml-engineering: 1 to 2 GiB in all; 0.6 each across nodes"
                                         : "ml-engineering: 1 to 2 GiB in all; 0.4 each inside a node");
  }
  add("cublas_workspaces", workspace_bytes(run), true, "PyTorch CUDABlas.cpp: 32 MiB a stream, 8.1 before Hopper");
  add("cuda_graphs", 0, true, "none captured; Megatron-Bridge: some GiB, 10 in pipelines");
  return lines;
}

}  // namespace shardplan
