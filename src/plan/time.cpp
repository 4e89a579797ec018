// The step's time, over numbers: step_time_formulas.hpp has the formulas.
#include "shardplan/plan/step_time_formulas.hpp"

namespace shardplan {

SteppedWidths stepped_widths(const Run& run, const StateRule& rule, const Optimizer& optimizer) noexcept {
  const Training& training = run.training;
  const bool adapters = training.peft.active();
  const double weight = adapters ? rule.adapter_parameter_bytes : rule.parameter_bytes;
  const DType type = adapters ? training.peft.adapter_dtype : training.param_dtype;
  SteppedWidths bytes;
  bytes.gradient = bytes_of(training.grad_dtype);
  bytes.master = adapters ? rule.adapter_master_bytes : rule.master_bytes;
  bytes.moments = adapters ? rule.adapter_moment_bytes : rule.moment_bytes;
  // An fp32 master copy is the weight; what holds the rest of its bits, or is no copy, is read beside the weight.
  const auto written = [weight](double master) { return master >= 4 ? weight : 2 * weight; };
  const bool copies = optimizer.master == MasterCopy::framework ? bytes.master > 0 : type != DType::fp32;
  bytes.adamw_master = copies ? 4 : 0;
  bytes.weight = written(bytes.master);
  bytes.adamw_weight = written(bytes.adamw_master);
  return bytes;
}

double pcie_bandwidth(const Cluster& cluster) noexcept {
  if (cluster.host.pcie_bandwidth > 0) return cluster.host.pcie_bandwidth;
  return cluster.gpu.pcie_bandwidth > 0 ? cluster.gpu.pcie_bandwidth : 25e9;
}

double nvme_bandwidth(const Host& host) noexcept { return host.nvme_bandwidth > 0 ? host.nvme_bandwidth : 25e9; }

double host_memory_rate(const Host& host) noexcept {
  return host.memory_bandwidth > 0 ? host.memory_bandwidth : step_constants::host_memory_bandwidth;
}

namespace {

/// The share around the estimate that four of five measured steps lie in, by BandClass: known and mixtures from the
/// steps that the constants were fitted to, the others from sources that a fit had left out (docs/validation.md).
constexpr std::array<double, names_of<BandClass>.size()> shares = {0.08, 0.18, 0.12, 0.15, 0.25};

}  // namespace

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

double band_share(BandClass of) noexcept { return shares[static_cast<std::size_t>(of)]; }

double stepped(const EstimateWorkspace& w, const Stage& stage) noexcept {
  return stepped_elements(NoTrace{}, w, stage);
}

double optimizer_seconds(const Run& run, const EstimateWorkspace& w, const Stage& stage) noexcept {
  return optimizer_time(NoTrace{}, run, w, stage);
}

double paged_out(const Run& run, const Stage& stage, const StageEstimate& memory, double capacity) noexcept {
  return paged_bytes(NoTrace{}, run, stage, memory, capacity);
}

void estimate_time(const Run& run, const EstimateWorkspace& w, Estimate& out) noexcept {
  fold_time(NoTrace{}, run, w, out);
}

}  // namespace shardplan
