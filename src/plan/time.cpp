// The step: the simulated pipeline, then data-parallel traffic, optimizer and offload that nothing hides.
#include <algorithm>
#include <array>
#include <cmath>

#include "shardplan/physics/layer_inputs.hpp"
#include "shardplan/plan/step_rules.hpp"

namespace shardplan {

using namespace step_constants;

double stepped(const EstimateWorkspace& w, const Stage& stage) noexcept {
  if (w.optimizer->form == StateForm::block_coordinate && stage.weights.dense.adapters <= 0) {
    return stage.largest_layer / w.rule.optimizer_shards;
  }
  const double dense = stage.weights.dense.trained + stage.weights.dense.adapters;
  const double expert = stage.weights.expert.trained + stage.weights.expert.adapters;
  return dense / w.rule.optimizer_shards + expert / w.rule.expert_optimizer_shards;
}

SteppedBytes stepped_bytes(const Run& run, const EstimateWorkspace& w, const Stage& stage) noexcept {
  const Training& training = run.training;
  const bool adapters = training.peft.active();
  const double weight = adapters ? w.rule.adapter_parameter_bytes : w.rule.parameter_bytes;
  const DType type = adapters ? training.peft.adapter_dtype : training.param_dtype;
  const double elements = stepped(w, stage);
  SteppedBytes bytes;
  bytes.gradient = bytes_of(training.grad_dtype);
  bytes.master = adapters ? w.rule.adapter_master_bytes : w.rule.master_bytes;
  bytes.moments = adapters ? w.rule.adapter_moment_bytes : w.rule.moment_bytes;
  if (w.optimizer->per_tensor() && elements > 0) bytes.moments = stage.states.moments / elements;
  // An fp32 master copy is the weight; what holds the rest of its bits, or is no copy, is read beside the weight.
  const auto written = [weight](double master) { return master >= 4 ? weight : 2 * weight; };
  const bool copies = w.optimizer->master == MasterCopy::framework ? bytes.master > 0 : type != DType::fp32;
  bytes.adamw_master = copies ? 4 : 0;
  bytes.weight = written(bytes.master);
  bytes.adamw_weight = written(bytes.adamw_master);
  return bytes;
}

namespace {

/// Products of the update, dealt out among the ranks that share the states; a matrix is on one of them.
double shared_step_seconds(const EstimateWorkspace& w, const MatrixStepTime& time) noexcept {
  const double shared = time.dense_s / w.rule.optimizer_shards + time.expert_s / w.rule.expert_optimizer_shards;
  return std::max(shared, time.largest_s);
}

}  // namespace

double optimizer_seconds(const Run& run, const EstimateWorkspace& w, const Stage& stage) noexcept {
  if (stage.weights.trained() <= 0) return 0;
  const StackTiming& timing = run.training.stack.timing;
  const double fraction = std::max(
      0.0, run.training.offload.optimizer == OffloadDevice::none ? 1.0 : 1.0 - run.training.offload.optimizer_fraction);
  const SteppedBytes each = stepped_bytes(run, w, stage);
  const double bytes =
      timing.optimizer_bytes_per_parameter * (each.moved() / each.adamw()) * stepped(w, stage) * fraction;
  return memory_seconds(run.cluster.gpu, bytes) + fraction * shared_step_seconds(w, stage.total.matrix_step) +
         timing.optimizer_fixed_s;
}

double pcie_bandwidth(const Cluster& cluster) noexcept {
  if (cluster.host.pcie_bandwidth > 0) return cluster.host.pcie_bandwidth;
  return cluster.gpu.pcie_bandwidth > 0 ? cluster.gpu.pcie_bandwidth : 25e9;
}

double paged_out(const Run& run, const Stage& stage, const StageEstimate& memory, double capacity) noexcept {
  if (run.training.offload.optimizer != OffloadDevice::none) return 0;
  const double room = capacity - static_cast<double>(memory.reserved_bytes + memory.peak().framework);
  return std::max(0.0, stage.states.paged - std::max(0.0, room));
}

double nvme_bandwidth(const Host& host) noexcept { return host.nvme_bandwidth > 0 ? host.nvme_bandwidth : 25e9; }

OffloadWork offload_work(const Run& run, const EstimateWorkspace& w, std::size_t rank) noexcept {
  const Stage& stage = w.stages[rank];
  const Offload& offload = run.training.offload;
  const Host& host = run.cluster.host;
  const double pcie = pcie_bandwidth(run.cluster);
  const double gpus = std::min(run.cluster.gpus_per_node, run.num_gpus);
  const double m = static_cast<double>(run.microbatches());
  OffloadWork work;
  OffloadEstimate& moved = work.moved;
  if (offload.optimizer != OffloadDevice::none) {
    const double elements = stepped(w, stage) * std::clamp(offload.optimizer_fraction, 0.0, 1.0);
    const double down = w.rule.gradient_bytes * elements;
    const double up = bytes_of(activation_dtype(run.training.precision)) * elements;
    const double memory = host.memory_bandwidth > 0 ? host.memory_bandwidth : host_memory_bandwidth;
    moved.to_host_bytes += down;
    moved.from_host_bytes += up;
    work.gradients_s = down / pcie;
    moved.step_s = cpu_adam_bytes * elements * gpus / memory + up / pcie;
    if (offload.optimizer == OffloadDevice::nvme) {
      const double state = (w.rule.master_bytes + w.rule.moment_bytes) * elements;
      moved.nvme_read_bytes += state;
      moved.nvme_written_bytes += state;
      moved.step_s += 2 * state * gpus / nvme_bandwidth(host);
    }
  }
  if (offload.parameters != OffloadDevice::none) {
    const double bytes = 2 * m * stage.states.parameters;
    moved.from_host_bytes += bytes;
    double transfer = bytes / pcie;
    if (offload.parameters == OffloadDevice::nvme) {
      moved.nvme_read_bytes += bytes;
      transfer = std::max(transfer, bytes * gpus / nvme_bandwidth(host));
    }
    moved.passes_s += transfer;
  }
  if (offload.activations != OffloadDevice::none && stage.layers > 0) {
    const int chosen = offload.activation_layers < 0 ? stage.layers : std::min(offload.activation_layers, stage.layers);
    double kept = 0;
    const std::size_t chunks = w.chunks.size() / w.stages.size();
    for (std::size_t c = 0; c < chunks; ++c) kept += w.chunks[rank * chunks + c].kept;
    const double bytes = schedule::microbatches_per_chunk(w.spec.shape) * kept * chosen / stage.layers;
    moved.to_host_bytes += bytes;
    moved.from_host_bytes += bytes;
    moved.passes_s += 2 * bytes / pcie;
  }
  return work;
}

double offload_seconds(const OffloadWork& work, double compute_s) noexcept {
  return std::max(0.0, work.gradients_s - compute_s / 2) + work.moved.step_s +
         std::max(0.0, work.moved.passes_s - offload_hidden * compute_s);
}

namespace {

/// The share around the estimate that four of five measured steps lie in, by BandClass: known and mixtures from the
/// steps that the constants were fitted to, the others from sources that a fit had left out (docs/validation.md).
constexpr std::array<double, names_of<BandClass>.size()> band_share = {0.08, 0.18, 0.12, 0.15, 0.25};

BandClass band_class(const Run& run) noexcept {
  const Gpu& gpu = run.cluster.gpu;
  if (!gpu.gemm.measured) return BandClass::no_table;
  if (run.model.has_experts()) return BandClass::mixture_of_experts;
  // No steps of adapters and offloading were measured.
  const Training& training = run.training;
  const bool offloads =
      training.offload.optimizer != OffloadDevice::none || training.offload.parameters != OffloadDevice::none;
  const bool measured = !training.stack.name.empty() && training.stack.timing.measured;
  if (!measured || training.peft.active() || offloads) return BandClass::other_stack;
  const bool crosses = run.num_gpus > run.cluster.scale_up_domain;
  if (crosses && !gpu.fabric_measured[static_cast<std::size_t>(run.cluster.fabric)]) return BandClass::other_fabric;
  return BandClass::known;
}

}  // namespace

void estimate_time(const Run& run, const EstimateWorkspace& w, Estimate& out) noexcept {
  TimeEstimate& time = out.time;
  time = TimeEstimate{};
  const double ranks = static_cast<double>(w.stages.size());
  const schedule::Shape& shape = w.spec.shape;
  const double through = schedule::microbatches_per_chunk(shape);
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
    if (stage.data_exposed_s > data_exposed || i == 0) {
      data_exposed = stage.data_exposed_s;
      time.data_exposed_stage = static_cast<int>(i);
      time.data_hidden_s = std::max(0.0, stage.data_s - stage.data_exposed_s);
    }
    optimizer = std::max(optimizer, optimizer_seconds(run, w, stage));
    OffloadWork work = offload_work(run, w, i);
    const double paged = paged_out(run, stage, out.stages[i], static_cast<double>(out.capacity_bytes));
    work.moved.to_host_bytes += paged;
    work.moved.from_host_bytes += paged;
    work.moved.step_s += 2 * paged / pcie_bandwidth(run.cluster);
    const double waits = offload_seconds(work, compute + recompute);
    if (i == 0 || waits > offload) out.offload = work.moved;
    offload = std::max(offload, waits);
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
  time.band_class = band_class(run);
  const double spread = band_share[static_cast<std::size_t>(time.band_class)];
  time.band_low_s = time.step_s * (1 - spread);
  time.band_high_s = time.step_s * (1 + spread);
}

}  // namespace shardplan
