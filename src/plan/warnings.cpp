// What the user of a legal run should know, with numbers and the way out.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "shardplan/core/bytes.hpp"
#include "shardplan/core/diagnostic.hpp"
#include "shardplan/core/runtime.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/physics/topology.hpp"
#include "shardplan/plan/estimate.hpp"
#include "shardplan/plan/fields.hpp"
#include "shardplan/plan/workspace.hpp"

namespace shardplan {
namespace {

double in_gib(std::int64_t bytes) noexcept { return static_cast<double>(bytes) / gib; }

void layout_warnings(const Run& run, const Estimate& estimate, Warnings& warnings) {
  const Parallel& parallel = run.parallel;
  const Topology topology = topology_of(run);
  if (topology.group(GroupKind::tensor).scope == Scope::inter_node) {
    warnings.push_back(
        {"tp_crosses_node", "/parallel/tensor",
         fmt::format("the {} tensor ranks span more than the {} GPUs of one scale-up domain: every layer "
                     "waits for the network; keep tensor at {} or less",
                     parallel.tensor, run.cluster.scale_up_domain, run.cluster.scale_up_domain)});
  }
  const std::int64_t m = run.microbatches();
  if (parallel.pipeline > 1 && m < parallel.pipeline) {
    const std::int64_t batch = parallel.pipeline * run.training.micro_batch_size * parallel.data;
    warnings.push_back(
        {"microbatches_below_stages", "/training/global_batch_size",
         fmt::format("global_batch_size {} / (micro_batch_size {} x data {}) = {} microbatches for {} "
                     "pipeline stages: {:.1f}% of the step is bubble at best; global_batch_size {} fills the pipeline",
                     run.training.global_batch_size, run.training.micro_batch_size, parallel.data, m, parallel.pipeline,
                     100 * estimate.pipeline.ideal_bubble_fraction, batch)});
  }
}

/// The flags that would split or shard what every data-parallel rank holds whole, in this run's framework.
std::string way_to_shard(const Run& run) {
  const FrameworkFacts& facts = facts_of(run.training.framework);
  if (facts.highest_zero_stage(run.parallel.pipeline > 1) == 3) return "--zero 3 shards them";
  if (facts.data_only || facts.shards_by_fsdp()) return "--fsdp full_shard --framework fsdp shards them";
  std::string way = "a larger --tp or --pp splits them";
  if (facts.fsdp == FsdpKind::none) return way;
  way += fmt::format("{} --fsdp full_shard --framework {} shards them", run.parallel.zero_stage > 0 ? ";" : ",",
                     name(run.training.framework));
  if (run.parallel.zero_stage > 0) way += " (zero_stage 1 keeps them whole, Megatron-FSDP takes its place)";
  return way;
}

/// More data parallelism shrinks what it shards. What it does not is said only where that is what stands in the way.
void replicated_weights(const Run& run, const Estimate& estimate, Warnings& warnings) {
  const Parallel& parallel = run.parallel;
  const bool fsdp = shards_states(parallel.fsdp);
  if (estimate.fits_gpu || parallel.dense_replicas() <= 1 || parallel.zero_stage >= 3 || fsdp) return;
  const auto binding = std::find_if(estimate.stages.begin(), estimate.stages.end(),
                                    [&](const StageEstimate& stage) { return stage.stage == estimate.binding_stage; });
  if (binding == estimate.stages.end()) return;
  const MemoryParts& parts = binding->peak();
  const bool gradients = parallel.zero_stage < 2;
  const bool optimizer = parallel.zero_stage < 1;
  const std::int64_t bytes = parts.parameters + (gradients ? parts.gradients : 0) + (optimizer ? parts.optimizer : 0);
  if (2 * bytes <= estimate.capacity_bytes) return;
  const FrameworkFacts& framework = facts_of(run.training.framework);
  const bool by_fsdp = framework.fsdp != FsdpKind::none || framework.data_only;
  const bool alone = bytes + parts.framework > estimate.capacity_bytes;
  warnings.push_back(
      {"weights_replicated", std::string(name(by_fsdp ? plan::Field::fsdp : plan::Field::zero_stage)),
       fmt::format("{} of stage {} take {:.2f} GiB, {}, and each of {} data-parallel ranks holds them whole: more "
                   "ranks do not shrink them; {}",
                   optimizer   ? "parameters, gradients and optimizer states"
                   : gradients ? "parameters and gradients"
                               : "parameters",
                   binding->stage, in_gib(bytes),
                   alone ? "more than the card has"
                         : fmt::format("{:.0f}% of the card", 100.0 * static_cast<double>(bytes) /
                                                                  static_cast<double>(estimate.capacity_bytes)),
                   parallel.dense_replicas(), way_to_shard(run))});
}

void memory_warnings(const Run& run, const Estimate& estimate, Warnings& warnings) {
  replicated_weights(run, estimate, warnings);
  const std::int64_t capacity = estimate.capacity_bytes;
  const std::int64_t framework_bytes = estimate.stages.empty() ? 0 : estimate.stages.front().peak().framework;
  const std::int64_t low = estimate.reserved_low_bytes + framework_bytes;
  const std::int64_t high = estimate.reserved_high_bytes + framework_bytes;
  if (low <= capacity && high > capacity) {
    warnings.push_back(
        {"tight_memory", "/cluster/gpu",
         fmt::format("the allocator may reserve {:.2f} to {:.2f} GiB with the framework's share, and the "
                     "card has {:.2f}: whether it fits depends on fragmentation",
                     in_gib(low), in_gib(high), in_gib(capacity))});
  }
  if (run.cluster.gpu.memory_is_estimated) {
    warnings.push_back({"capacity_estimated", "/cluster/gpu",
                        fmt::format("the memory that {} reports on {} is not known; 0.99 of its reported size is taken",
                                    runtime_of(run.cluster.gpu.vendor).name, run.cluster.gpu.name)});
  }
  const double host = run.cluster.host.memory_bytes;
  if (host > 0 && static_cast<double>(estimate.host_bytes_per_node) > host) {
    warnings.push_back({"host_memory_exceeded", "/training/offload",
                        fmt::format("the node's processes need {:.1f} GiB of host memory and the node has {:.1f}",
                                    in_gib(estimate.host_bytes_per_node), host / gib)});
  }
  const double nvme = run.cluster.host.nvme_bytes;
  if (nvme > 0 && static_cast<double>(estimate.nvme_bytes_per_node) > nvme) {
    warnings.push_back({"nvme_exceeded", "/training/offload",
                        fmt::format("the node's processes need {:.1f} GiB of NVMe and the node has {:.1f}",
                                    in_gib(estimate.nvme_bytes_per_node), nvme / gib)});
  }
}

void optimizer_warnings(const Run& run, Warnings& warnings) {
  const Optimizer* optimizer = find_optimizer(run.training.optimizer);
  if (optimizer == nullptr || optimizer->timed) return;
  warnings.push_back(
      {"optimizer_time_unknown", "/training/optimizer",
       fmt::format("the memory of {} is modelled, its step time is not: optimizer_s is what AdamW would take for the "
                   "bytes that {} keeps",
                   optimizer->name, optimizer->name)});
}

}  // namespace

/// A stack of one FSDP under the other: its constants are those of its own. A single rank shards nothing.
void stack_warnings(const Run& run, Warnings& warnings) {
  const int version = run.training.stack.fsdp_version;
  if (run.parallel.dense_replicas() <= 1) return;
  if (run.parallel.fsdp == Fsdp::none || version == 0 || version == run.parallel.fsdp_version) return;
  warnings.push_back(
      {"stack_fsdp_version", std::string(name(plan::Field::fsdp_version)),
       fmt::format("stack {} is of FSDP{}, and fsdp_version is {}: set parallel.fsdp_version to {} (--set "
                   "parallel.fsdp_version={})",
                   run.training.stack.name, version, run.parallel.fsdp_version, version, version)});
}

/// What the framework's source says against a legal choice.
void framework_warnings(const Run& run, Warnings& warnings) {
  const std::string_view caveat = facts_of(run.training.framework).zero.caveat;
  if (caveat.empty() || run.parallel.zero_stage == 0 || run.parallel.dense_replicas() <= 1) return;
  warnings.push_back({"framework_release", std::string(name(plan::Field::zero_stage)), std::string(caveat)});
}

Warnings warnings_of(const Run& run, const Estimate& estimate) {
  Warnings warnings;
  framework_warnings(run, warnings);
  stack_warnings(run, warnings);
  layout_warnings(run, estimate, warnings);
  memory_warnings(run, estimate, warnings);
  optimizer_warnings(run, warnings);
  if (!run.cluster.gpu.gemm.measured) {
    warnings.push_back(
        {"no_efficiency_table", "/cluster/gpu",
         fmt::format("no measured matrix-product table for {}: times follow a generic curve, about +-25%",
                     run.cluster.gpu.name)});
  }
  return warnings;
}

}  // namespace shardplan
