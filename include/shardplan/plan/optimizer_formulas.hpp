// The optimizer's step and what offloading takes, on one rank. Formulas over numbers or text (physics/trace.hpp).
//
// ZeRO-Offload (arXiv:2101.06840): gradients go down, the CPU steps, new weights come up. ZeRO-Infinity
// (arXiv:2104.07857): states cross NVMe both ways each step, weights are read for both passes of each microbatch.
#pragma once

#include <algorithm>

#include "shardplan/physics/timing_formulas.hpp"
#include "shardplan/plan/optimizer_names.hpp"
#include "shardplan/plan/step_rules.hpp"

namespace shardplan {

/// Elements that this rank's optimizer steps over.
template <class Trace, class N = NumberOf<Trace>>
N stepped_elements(const Trace& trace, const EstimateWorkspaceOf<N>& w, const StageOf<N>& stage) {
  const N shards = trace.ranks(GroupKind::data, w.rule.optimizer_shards);
  if (w.optimizer->form == StateForm::block_coordinate && value_of(stage.weights.dense.adapters) <= 0) {
    return trace.step(step_names::stepped, stage.largest_layer / shards);
  }
  const N expert_shards = trace.ranks(GroupKind::expert_data, w.rule.expert_optimizer_shards);
  const N dense = stage.weights.dense.trained + stage.weights.dense.adapters;
  const N expert = stage.weights.expert.trained + stage.weights.expert.adapters;
  return trace.step(step_names::stepped, dense / shards + expert / expert_shards);
}

/// Bytes that a step moves for a parameter over those of AdamW with fp32 moments on the same weights and gradients,
/// which is what a stack's constant was measured with.
template <class Trace, class N = NumberOf<Trace>>
N moved_share(const Trace& trace, const Run& run, const EstimateWorkspaceOf<N>& w, const StageOf<N>& stage,
              N elements) {
  const SteppedWidths each = stepped_widths(run, w.rule, *w.optimizer);
  const auto width = [&trace](const InputName& name, double value) {
    return value == 0 ? N(0.0) : trace.config(name, value);
  };
  N moments = width(step_names::moment_width, each.moments);
  if (w.optimizer->per_tensor() && value_of(elements) > 0) moments = stage.states.moments / elements;
  const N gradient = width(step_names::gradient_width, each.gradient);
  const N moved = gradient + 2.0 * width(step_names::master_width, each.master) +
                  width(step_names::weight_width, each.weight) + 2.0 * moments;
  const N adamw = gradient + N(2 * each.adamw_master) + width(step_names::adamw_width, each.adamw_weight) +
                  N(2 * step_constants::fp32_moments);
  if (value_of(moved) == value_of(adamw)) return 1.0;
  return trace.step(step_names::moved, moved / adamw);
}

/// Products of the update, dealt out among the ranks that share the states; a matrix is on one of them.
template <class Trace, class N = NumberOf<Trace>>
N shared_products(const Trace& trace, const StateRule& rule, const MatrixStepTimeOf<N>& time) {
  using std::max;
  const N shared = time.dense_s / trace.ranks(GroupKind::data, rule.optimizer_shards) +
                   time.expert_s / trace.ranks(GroupKind::expert_data, rule.expert_optimizer_shards);
  return max(shared, time.largest_s);
}

/// optimizer_seconds of step_rules.hpp. `stage` is the stage's trace.
template <class Trace, class N = NumberOf<Trace>>
N optimizer_time(const Trace& trace, const Run& run, const EstimateWorkspaceOf<N>& w, const StageOf<N>& stage) {
  using std::max;
  if (value_of(stage.weights.trained()) <= 0) return 0.0;
  const StackTiming& timing = run.training.stack.timing;
  const Offload& offload = run.training.offload;
  N fraction = 1.0;
  if (offload.optimizer != OffloadDevice::none) {
    fraction = max(N(0.0), 1.0 - trace.run(step_names::offloaded_fraction, offload.optimizer_fraction));
  }
  const N elements = stepped_elements(trace, w, stage);
  const N bytes = trace.stack(step_names::step_bytes, timing.optimizer_bytes_per_parameter) *
                  moved_share(trace, run, w, stage, elements) * elements * fraction;
  return memory_time(trace, run.cluster.gpu, bytes) +
         fraction * shared_products(trace, w.rule, stage.total.matrix_step) +
         trace.stack(step_names::step_fixed, timing.optimizer_fixed_s);
}

/// What offloading moves on one rank in a step, bytes, and how long that takes.
template <class N>
struct OffloadWorkOf {
  N to_host{}, from_host{};  ///< over PCIe
  N nvme_read{}, nvme_written{};
  N step{};       ///< seconds once a step, whatever the batch: the optimizer on the host and its states
  N passes{};     ///< of all passes: weights and activations, which hide behind compute
  N gradients{};  ///< gradients to the host, beside the backward pass
};

template <class Trace, class N = NumberOf<Trace>>
N pcie_rate(const Trace& trace, const Cluster& cluster) {
  return trace.cluster(step_names::pcie, pcie_bandwidth(cluster));
}
template <class Trace, class N = NumberOf<Trace>>
N nvme_rate(const Trace& trace, const Cluster& cluster) {
  return trace.cluster(step_names::nvme, nvme_bandwidth(cluster.host));
}

/// The optimizer on the host: gradients down, the CPU's step, new weights up, states across NVMe.
template <class Trace, class N = NumberOf<Trace>>
void offload_optimizer(const Trace& trace, const Run& run, const EstimateWorkspaceOf<N>& w, const StageOf<N>& stage,
                       OffloadWorkOf<N>& work) {
  const Offload& offload = run.training.offload;
  const Host& host = run.cluster.host;
  const N pcie = pcie_rate(trace, run.cluster);
  const N gpus = trace.degree(step_names::node_gpus, std::min(run.cluster.gpus_per_node, run.num_gpus));
  const N share = trace.degree(step_names::offloaded_fraction, std::clamp(offload.optimizer_fraction, 0.0, 1.0));
  const N elements = stepped_elements(trace, w, stage) * share;
  const N down = N(w.rule.gradient_bytes) * elements;
  const N up = N(bytes_of(activation_dtype(run.training.precision))) * elements;
  const N memory = trace.cluster(step_names::host_memory, host_memory_rate(host));
  work.to_host += down;
  work.from_host += up;
  work.gradients = trace.step(step_names::offloaded_gradients, down / pcie);
  work.step =
      trace.input(step_names::adam_bytes, step_constants::cpu_adam_bytes) * elements * gpus / memory + up / pcie;
  if (offload.optimizer == OffloadDevice::nvme) {
    const N state = N(w.rule.master_bytes + w.rule.moment_bytes) * elements;
    work.nvme_read += state;
    work.nvme_written += state;
    work.step += 2.0 * state * gpus / nvme_rate(trace, run.cluster);
  }
}

/// Weights that live elsewhere, read for both passes of every microbatch.
template <class Trace, class N = NumberOf<Trace>>
void offload_parameters(const Trace& trace, const Run& run, const StageOf<N>& stage, OffloadWorkOf<N>& work) {
  using std::max;
  const N m = trace.run(step_names::microbatches, static_cast<double>(run.microbatches()));
  const N bytes = 2.0 * m * trace.step(step_names::offloaded_weights, stage.states.parameters);
  work.from_host += bytes;
  N transfer = bytes / pcie_rate(trace, run.cluster);
  if (run.training.offload.parameters == OffloadDevice::nvme) {
    const N gpus = trace.degree(step_names::node_gpus, std::min(run.cluster.gpus_per_node, run.num_gpus));
    work.nvme_read += bytes;
    transfer = max(transfer, bytes * gpus / nvme_rate(trace, run.cluster));
  }
  work.passes += transfer;
}

/// Activations of the chosen layers, out and back.
template <class Trace, class N = NumberOf<Trace>>
void offload_activations(const Trace& trace, const Run& run, const EstimateWorkspaceOf<N>& w, std::size_t rank,
                         OffloadWorkOf<N>& work) {
  const StageOf<N>& stage = w.stages[rank];
  if (stage.layers <= 0) return;
  const int wanted = run.training.offload.activation_layers;
  const int chosen = wanted < 0 ? stage.layers : std::min(wanted, stage.layers);
  const std::size_t chunks = w.chunks.size() / w.stages.size();
  N kept = 0.0;
  for (std::size_t c = 0; c < chunks; ++c) kept += w.chunks[rank * chunks + c].kept;
  const N through = trace.run(step_names::microbatches, schedule::microbatches_per_chunk(w.spec.shape));
  N bytes = through * kept * N(static_cast<double>(chosen)) / N(static_cast<double>(stage.layers));
  work.to_host += bytes;
  work.from_host += bytes;
  work.passes += 2.0 * bytes / pcie_rate(trace, run.cluster);
}

/// Pages that the card has no room for at the peak leave it and come back each step.
template <class Trace, class N = NumberOf<Trace>>
N paged_bytes(const Trace& trace, const Run& run, const StageOf<N>& stage, const StageEstimate& memory,
              double capacity) {
  using std::max;
  if (run.training.offload.optimizer != OffloadDevice::none || value_of(stage.states.paged) <= 0) return 0.0;
  const N taken =
      trace.known(step_names::taken, N(static_cast<double>(memory.reserved_bytes + memory.peak().framework)));
  const N room = trace.gpu(step_names::capacity, capacity) - taken;
  return trace.step(step_names::paged, max(N(0.0), stage.states.paged - max(N(0.0), room)));
}

/// Everything that offloading and paging move on one rank.
template <class Trace, class N = NumberOf<Trace>>
OffloadWorkOf<N> offload_work(const Trace& trace, const Run& run, const EstimateWorkspaceOf<N>& w, std::size_t rank,
                              N paged) {
  const StageOf<N>& stage = w.stages[rank];
  const Offload& offload = run.training.offload;
  OffloadWorkOf<N> work;
  if (offload.optimizer != OffloadDevice::none) offload_optimizer(trace, run, w, stage, work);
  if (offload.parameters != OffloadDevice::none) offload_parameters(trace, run, stage, work);
  if (offload.activations != OffloadDevice::none) offload_activations(trace, run, w, rank, work);
  work.to_host += paged;
  work.from_host += paged;
  work.step += 2.0 * paged / pcie_rate(trace, run.cluster);
  work.step = trace.step(step_names::offload_step, work.step);
  work.passes = trace.step(step_names::offload_passes, work.passes);
  return work;
}

/// What of it the step waits for: gradients hide behind half of the compute, weights and activations behind most of it.
template <class Trace, class N = NumberOf<Trace>>
N offload_time(const Trace& trace, const OffloadWorkOf<N>& work, N compute) {
  using std::max;
  const N hidden = trace.input(step_names::offload_hidden, step_constants::offload_hidden);
  return max(N(0.0), work.gradients - compute / 2.0) + work.step + max(N(0.0), work.passes - hidden * compute);
}

}  // namespace shardplan
