// Peak memory as it happens: the parts of each moment of a step, per pipeline rank.
#include <algorithm>
#include <cmath>

#include "shardplan/plan/stage_memory.hpp"

namespace shardplan {
namespace {

std::int64_t whole(double bytes) noexcept { return static_cast<std::int64_t>(NoTrace::whole(bytes)); }

Symbols<double> any_symbols(const Run& run) noexcept { return symbols_for(run, run.model.kinds.front()); }

}  // namespace

MemoryOverheads memory_overheads(const Run& run, const Topology& topology) noexcept {
  return memory_overheads(NoTrace{}, run, topology);
}

void estimate_stage_memory(const Run& run, const EstimateWorkspace& w, std::size_t i, const MemoryOverheads& overheads,
                           StageEstimate& e) noexcept {
  stage_memory(NoTrace{}, run, any_symbols(run), w, i, overheads, e);
}

void estimate_memory(const Run& run, const EstimateWorkspace& w, Estimate& out) noexcept {
  const MemoryOverheads overheads = memory_overheads(run, w.topology);
  const std::size_t ranks = w.stages.size();
  const bool replicas = facts_of(run.training.framework).single_process && run.num_gpus > 1;
  out.stages.resize(replicas ? 2 : ranks);
  if (replicas) {
    replica_memory(NoTrace{}, run, any_symbols(run), w, overheads, out.stages[0], out.stages[1]);
  } else {
    for (std::size_t i = 0; i < ranks; ++i) estimate_stage_memory(run, w, i, overheads, out.stages[i]);
  }
  double host = 0, nvme = 0;
  for (std::size_t i = 0; i < ranks; ++i) {
    host += static_cast<double>(out.stages[i].host_bytes);
    nvme += static_cast<double>(out.stages[i].nvme_bytes);
  }
  for (StageEstimate& e : out.stages) {
    const Stage& stage = w.stages[std::min(static_cast<std::size_t>(e.stage), ranks - 1)];
    e.forward_s = stage.forward_s;
    e.backward_s = stage.backward_s;
  }
  conclude_memory(run, host, nvme, ranks, out);
}

void conclude_memory(const Run& run, double host, double nvme, std::size_t ranks, Estimate& out) noexcept {
  out.capacity_bytes = static_cast<std::int64_t>(run.cluster.gpu.memory_cuda_bytes);
  out.peak_bytes = -1;
  out.headroom_bytes = 0;
  bool first = true;
  for (const StageEstimate& e : out.stages) {
    if (e.peak().total() > out.peak_bytes) {
      out.peak_bytes = e.peak().total();
      out.peak_stage = e.stage;
    }
    const std::int64_t headroom = headroom_of(out.capacity_bytes, e.reserved_bytes, e.peak().framework);
    if (first || headroom < out.headroom_bytes) {
      first = false;
      out.headroom_bytes = headroom;
      out.binding_stage = e.stage;
      out.reserved_bytes = e.reserved_bytes;
      out.reserved_low_bytes = e.reserved_low_bytes;
      out.reserved_high_bytes = e.reserved_high_bytes;
    }
  }
  const double per_node = std::min(run.cluster.gpus_per_node, run.num_gpus);
  out.host_bytes_per_node = whole(node_share(host, static_cast<double>(ranks), per_node));
  out.nvme_bytes_per_node = whole(node_share(nvme, static_cast<double>(ranks), per_node));
  out.fits_gpu = out.headroom_bytes >= 0;
  const Host& host_facts = run.cluster.host;
  const bool host_fits =
      host_facts.memory_bytes <= 0 || static_cast<double>(out.host_bytes_per_node) <= host_facts.memory_bytes;
  const bool nvme_fits =
      host_facts.nvme_bytes <= 0 || static_cast<double>(out.nvme_bytes_per_node) <= host_facts.nvme_bytes;
  out.fits = out.fits_gpu && host_fits && nvme_fits;
}

}  // namespace shardplan
