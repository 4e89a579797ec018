// The step: the simulated pipeline, then data-parallel traffic, optimizer and offload that nothing hides.
#include <algorithm>
#include <cmath>

#include "shardplan/physics/layer_inputs.hpp"
#include "shardplan/plan/workspace.hpp"

namespace shardplan {
namespace {

constexpr double host_memory_bandwidth = 200e9;  // bytes/s of a node, where the cluster does not say
constexpr double cpu_adam_bytes = 28;  // read and written per parameter: gradient, master, moments, new weight

double trained_here(const Stage& stage) noexcept {
  return stage.weights.dense.trained + stage.weights.dense.adapters + stage.weights.expert.trained +
         stage.weights.expert.adapters;
}

/// Elements that this rank's optimizer steps over.
double stepped(const EstimateWorkspace& w, const Stage& stage) noexcept {
  if (w.optimizer->form == StateForm::block_coordinate && stage.weights.dense.adapters <= 0) {
    return stage.largest_layer / w.rule.optimizer_shards;
  }
  const double dense = stage.weights.dense.trained + stage.weights.dense.adapters;
  const double expert = stage.weights.expert.trained + stage.weights.expert.adapters;
  return dense / w.rule.optimizer_shards + expert / w.rule.expert_optimizer_shards;
}

/// Bytes that stepping one parameter moves through HBM, its moments apart: the gradient, the master copy, the weight.
double moved_bytes(double weight, double gradient, double master) noexcept {
  // An fp32 master copy is the weight; what holds the rest of its bits, or is no copy, is read beside the weight.
  return gradient + 2 * master + (master >= 4 ? weight : 2 * weight);
}

/// Bytes that this optimizer moves over those of AdamW with fp32 moments on the same weights and gradients, which is
/// what a stack's constant was measured with.
double moved_of_adamw(const Run& run, const EstimateWorkspace& w, const Stage& stage) noexcept {
  constexpr double fp32_moments = 8;
  const Training& training = run.training;
  const bool adapters = training.peft.active();
  const double weight = adapters ? w.rule.adapter_parameter_bytes : w.rule.parameter_bytes;
  const double gradient = bytes_of(training.grad_dtype);
  const double master = adapters ? w.rule.adapter_master_bytes : w.rule.master_bytes;
  const DType type = adapters ? training.peft.adapter_dtype : training.param_dtype;
  const double elements = stepped(w, stage);
  double moments = adapters ? w.rule.adapter_moment_bytes : w.rule.moment_bytes;
  if (w.optimizer->per_tensor() && elements > 0) moments = stage.states.moments / elements;
  const bool copies = w.optimizer->master == MasterCopy::framework ? master > 0 : type != DType::fp32;
  const double adamw = moved_bytes(weight, gradient, copies ? 4 : 0) + 2 * fp32_moments;
  return (moved_bytes(weight, gradient, master) + 2 * moments) / adamw;
}

/// Products of the update, dealt out among the ranks that share the states; a matrix is on one of them.
double shared_step_seconds(const EstimateWorkspace& w, const MatrixStepTime& time) noexcept {
  const double shared = time.dense_s / w.rule.optimizer_shards + time.expert_s / w.rule.expert_optimizer_shards;
  return std::max(shared, time.largest_s);
}

double optimizer_seconds(const Run& run, const EstimateWorkspace& w, const Stage& stage) noexcept {
  if (trained_here(stage) <= 0) return 0;
  const StackTiming& timing = run.training.stack.timing;
  const double fraction = std::max(
      0.0, run.training.offload.optimizer == OffloadDevice::none ? 1.0 : 1.0 - run.training.offload.optimizer_fraction);
  const double bytes =
      timing.optimizer_bytes_per_parameter * moved_of_adamw(run, w, stage) * stepped(w, stage) * fraction;
  return memory_seconds(run.cluster.gpu, bytes) + fraction * shared_step_seconds(w, stage.total.matrix_step) +
         timing.optimizer_fixed_s;
}

double pcie_bandwidth(const Cluster& cluster) noexcept {
  if (cluster.host.pcie_bandwidth > 0) return cluster.host.pcie_bandwidth;
  return cluster.gpu.pcie_bandwidth > 0 ? cluster.gpu.pcie_bandwidth : 25e9;
}

/// Pages that the card has no room for at the peak leave it and come back each step.
double paging_seconds(const Run& run, const Stage& stage, const StageEstimate& memory, double capacity) noexcept {
  const double room = capacity - static_cast<double>(memory.reserved_bytes + memory.peak().framework);
  const double moved = stage.states.paged - std::max(0.0, room);
  if (moved <= 0 || run.training.offload.optimizer != OffloadDevice::none) return 0;
  return 2 * moved / pcie_bandwidth(run.cluster);
}

/// Transfers over PCIe and NVMe, and the CPU's optimizer step, less what the backward pass hides.
double offload_seconds(const Run& run, const EstimateWorkspace& w, const Stage& stage, double compute_s) noexcept {
  const Offload& offload = run.training.offload;
  const Host& host = run.cluster.host;
  const double pcie = pcie_bandwidth(run.cluster);
  const double gpus = std::min(run.cluster.gpus_per_node, run.num_gpus);
  const double width = bytes_of(activation_dtype(run.training.precision));
  double seconds = 0;
  if (offload.optimizer != OffloadDevice::none) {
    const double elements = stepped(w, stage) * std::clamp(offload.optimizer_fraction, 0.0, 1.0);
    const double down = w.rule.gradient_bytes * elements / pcie;  // hidden behind the backward pass
    const double up = width * elements / pcie;
    const double memory = host.memory_bandwidth > 0 ? host.memory_bandwidth : host_memory_bandwidth;
    const double adam = cpu_adam_bytes * elements * gpus / memory;
    seconds += std::max(0.0, down - compute_s / 2) + adam + up;
    if (offload.optimizer == OffloadDevice::nvme) {
      const double nvme = host.nvme_bandwidth > 0 ? host.nvme_bandwidth : 25e9;
      const double state = (w.rule.master_bytes + w.rule.moment_bytes) * elements;
      seconds += 2 * state * gpus / nvme;
    }
  }
  if (offload.parameters != OffloadDevice::none) {
    const double m = static_cast<double>(run.microbatches());
    const double bytes =
        2 * m * width * (stage.weights.dense.held() + stage.weights.expert.held()) / w.rule.parameter_shards;
    double transfer = bytes / pcie;
    if (offload.parameters == OffloadDevice::nvme) {
      const double nvme = host.nvme_bandwidth > 0 ? host.nvme_bandwidth : 25e9;
      transfer = std::max(transfer, bytes * gpus / nvme);
    }
    seconds += std::max(0.0, transfer - 0.8 * compute_s);
  }
  if (offload.activations != OffloadDevice::none && stage.layers > 0) {
    const int chosen = offload.activation_layers < 0 ? stage.layers : std::min(offload.activation_layers, stage.layers);
    double kept = 0;
    for (const Chunk& chunk : w.chunks) kept = std::max(kept, chunk.kept);
    const double m = static_cast<double>(run.microbatches());
    const double transfer = 2 * m * kept * chosen / stage.layers / pcie;
    seconds += std::max(0.0, transfer - 0.8 * compute_s);
  }
  return seconds;
}

/// How far off the step may be: known GPU and stack, a mixture of experts, or no measured curve.
double band(const Run& run) noexcept {
  if (!run.cluster.gpu.gemm.measured) return 0.25;
  if (run.model.has_experts()) return 0.20;
  return run.num_gpus > run.cluster.scale_up_domain ? 0.10 : 0.08;
}

}  // namespace

void estimate_time(const Run& run, const EstimateWorkspace& w, Estimate& out) noexcept {
  TimeEstimate& time = out.time;
  time = TimeEstimate{};
  const double ranks = static_cast<double>(w.stages.size());
  const double m = static_cast<double>(run.microbatches());
  const schedule::Shape& shape = w.spec.shape;
  const double through = shape.kind == ScheduleKind::dualpipe ? m / 2 : m;
  const double per_microbatch_host = run.training.stack.timing.host_per_microbatch_s;
  double data_exposed = 0, optimizer = 0, offload = 0;
  for (std::size_t i = 0; i < w.stages.size(); ++i) {
    const Stage& stage = w.stages[i];
    const UnitTime& unit = stage.total.time;
    const double chunks = schedule::chunks_per_rank(shape);
    const double compute = through * (unit.forward_s + unit.backward_s + chunks * per_microbatch_host);
    const double recompute = through * unit.recompute_s;
    const double exposed = through * (stage.total.forward_exposed_s + stage.total.backward_exposed_s);
    time.compute_s += compute / ranks;
    time.recompute_s += recompute / ranks;
    time.communication_exposed_s += (exposed + w.simulated.exposed_p2p[i]) / ranks;
    time.gemm_s += through * unit.gemm_s / ranks;
    time.attention_s += through * unit.attention_s / ranks;
    for (std::size_t g = 0; g < stage.exposed_by_group_s.size(); ++g) {
      time.exposed_by_group_s[g] += stage.exposed_by_group_s[g] / ranks;
    }
    time.exposed_by_group_s[static_cast<std::size_t>(GroupKind::pipeline)] += w.simulated.exposed_p2p[i] / ranks;
    time.bubble_s += std::max(0.0, w.simulated.idle[i] - w.simulated.exposed_p2p[i]) / ranks;
    // Every stage waits for the slowest one's tail.
    data_exposed = std::max(data_exposed, stage.data_exposed_s);
    optimizer = std::max(optimizer, optimizer_seconds(run, w, stage));
    const double paging = paging_seconds(run, stage, out.stages[i], static_cast<double>(out.capacity_bytes));
    offload = std::max(offload, offload_seconds(run, w, stage, compute + recompute) + paging);
  }
  double mean_data = 0;
  for (const Stage& stage : w.stages) mean_data += stage.data_exposed_s / ranks;
  time.communication_exposed_s += data_exposed;
  // The wait for the slowest stage's traffic counts as that traffic.
  time.exposed_by_group_s[static_cast<std::size_t>(GroupKind::data)] += data_exposed - mean_data;
  time.optimizer_s = optimizer;
  time.offload_s = offload;
  const double makespan = w.simulated.makespan;
  out.pipeline.bubble_fraction = makespan > 0 ? time.bubble_s / makespan : 0.0;
  time.step_s = time.compute_s + time.recompute_s + time.communication_exposed_s + time.bubble_s + time.optimizer_s +
                time.offload_s;
  time.other_compute_s = std::max(0.0, time.compute_s + time.recompute_s - time.gemm_s - time.attention_s);
  const double spread = band(run);
  time.band_low_s = time.step_s * (1 - spread);
  time.band_high_s = time.step_s * (1 + spread);
}

}  // namespace shardplan
