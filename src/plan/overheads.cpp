#include "shardplan/plan/overheads.hpp"

#include <cmath>

namespace shardplan {

std::vector<OverheadDetail> overhead_details(const Run& run, const Topology& topology) {
  using namespace overhead_constants;
  std::vector<OverheadDetail> lines;
  if (!facts_of(run.training.framework).measures_overheads) return lines;
  const auto add = [&lines](std::string_view name, double bytes, bool allocated, std::string_view source) {
    lines.push_back({name, static_cast<std::int64_t>(std::llround(bytes)), allocated, source});
  };
  add("cuda_context", cuda_context, false, "ml-engineering: 0.47 GiB, modules loaded lazily");
  // What is left of each one's share where their sum is over its ceiling.
  const double nccl = all_communicators_bytes(NoTrace{}, topology);
  const double share = nccl > nccl_most ? nccl_most / nccl : 1.0;
  constexpr std::array<std::string_view, communicators.size()> names = {"nccl_tensor", "nccl_pipeline", "nccl_data",
                                                                        "nccl_context", "nccl_expert"};
  for (std::size_t i = 0; i < communicators.size(); ++i) {
    const RankGroup& group = topology.group(communicators[i]);
    if (group.size <= 1) continue;
    add(names[i], share * communicator_bytes(NoTrace{}, group), false,
        group.scope == Scope::inter_node ? "ml-engineering: 1 to 2 GiB in all; 0.6 each across nodes"
                                         : "ml-engineering: 1 to 2 GiB in all; 0.4 each inside a node");
  }
  add("cublas_workspaces", memory_overheads(NoTrace{}, run, topology).workspaces, true,
      "PyTorch CUDABlas.cpp: 32 MiB a stream, 8.1 before Hopper");
  add("cuda_graphs", 0, true, "none captured; Megatron-Bridge: some GiB, 10 in pipelines");
  return lines;
}

}  // namespace shardplan
