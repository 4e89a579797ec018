// Peak memory as it happens: the parts of each moment of a step, per pipeline rank.
#include <algorithm>
#include <cmath>

#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/physics/layer_inputs.hpp"
#include "shardplan/plan/buffers.hpp"
#include "shardplan/plan/overheads.hpp"
#include "shardplan/plan/rank_memory.hpp"
#include "shardplan/plan/workspace.hpp"

namespace shardplan {
namespace {

std::int64_t whole(double bytes) noexcept { return static_cast<std::int64_t>(std::ceil(std::max(0.0, bytes) - 1e-6)); }

/// Placeholder gradients that Transformer Engine caches: one per distinct weight shape, 16 bit.
double dummy_gradients(const Run& run, const Stage& stage) noexcept {
  if (!run.training.kernels.te_dummy_wgrad || run.training.peft.active()) return 0;
  double bytes = 0;
  for (const MatrixShape& shape : stage.shapes) bytes += 2.0 * shape.rows * shape.cols;
  return bytes;
}

/// Recomputed activations that the backward pass of one segment holds.
double recomputed_bytes(const Run& run, const Stage& stage) noexcept {
  const Recompute& recompute = run.training.recompute;
  // A norm written in Python keeps an fp32 copy, not the checkpoint itself.
  const bool copies = run.training.kernels.norm == NormKernel::naive && run.model.norm == Norm::rmsnorm;
  const double shared = copies ? 0.0 : stage.layer_checkpoint;
  switch (recompute.mode) {
    case RecomputeMode::full:
    case RecomputeMode::first_n: return std::max(0.0, stage.layer_saved - shared);
    // What was kept is not made again.
    case RecomputeMode::ops: return std::max(0.0, stage.layer_saved - stage.layer_kept);
    case RecomputeMode::every_k:
      return std::max(0.0, std::min(recompute.n, std::max(1, stage.layers)) * stage.layer_saved - shared);
    default: return 0;
  }
}

/// What one update holds for a moment in torch and the libraries beside it, bytes.
double update_temporaries(const Run& run, const EstimateWorkspace& w, const Stage& stage, double trained) noexcept {
  const Training& training = run.training;
  const Optimizer& optimizer = *w.optimizer;
  const bool adapters = training.peft.active();
  const double width = adapters ? w.rule.adapter_parameter_bytes : w.rule.parameter_bytes;
  const double shards = adapters && !w.rule.adapters_sharded ? 1.0 : w.rule.parameter_shards;
  const bool loop = optimizer.kernel == StepKernel::loop ||
                    (optimizer.kernel == StepKernel::torch && training.optimizer_impl == OptimizerImpl::for_loop);
  if (loop) {
    // The denominator and the update of one tensor at a time; adapters are small beside anything.
    return 2 * width *
           std::max(stage.weights.dense.largest_tensor / shards,
                    stage.weights.expert.largest_tensor / w.rule.expert_parameter_shards);
  }
  if (optimizer.kernel == StepKernel::torch && training.optimizer_impl == OptimizerImpl::foreach) {
    // Copies of the parameters that train, in their own type.
    return optimizer.foreach_copies * width * trained / shards;
  }
  return 0;
}

/// Optimizer steps on one rank need this much more for a moment.
double step_transient(const Run& run, const EstimateWorkspace& w, const Stage& stage) noexcept {
  const Training& training = run.training;
  const StepTransient held = facts_of(training.framework).step;
  if (held == StepTransient::none || training.offload.optimizer != OffloadDevice::none) return 0;
  const double trained = stage.weights.trained();
  if (trained <= 0 || w.optimizer->form == StateForm::block_coordinate) return 0;
  const double matrix = std::max(stage.weights.dense.step_bytes, stage.weights.expert.step_bytes);
  if (held == StepTransient::matrices) return matrix;
  if (held == StepTransient::fp32_partition) {
    // The partition's gradient is copied to fp32 unless it is fp32 already.
    const bool copied = w.rule.keeps_gradients && w.rule.gradient_bytes < 4;
    return matrix + (copied ? 4.0 * trained / w.rule.optimizer_shards : 0.0);
  }
  return std::max(matrix, update_temporaries(run, w, stage, trained));
}

/// States that live elsewhere.
struct Elsewhere {
  double host = 0;
  double nvme = 0;
};

void put(OffloadDevice device, double bytes, Elsewhere& elsewhere) noexcept {
  if (device == OffloadDevice::cpu) elsewhere.host += bytes;
  if (device == OffloadDevice::nvme) elsewhere.nvme += bytes;
}

/// Host memory that is pinned to swap with NVMe: buffers of weights, and of a sub-group of the optimizer's fp32 states.
double pinned_buffers(const Run& run, const StateRule& rule, const StateBytes& states) noexcept {
  const OffloadFacts& facts = facts_of(run.training.framework).offload;
  const Offload& offload = run.training.offload;
  double pinned = offload.parameters == OffloadDevice::nvme ? facts.pinned_parameters : 0;
  if (offload.optimizer == OffloadDevice::nvme && rule.parameter_bytes > 0) {
    pinned += facts.pinned_states * std::min(facts.sub_group, states.parameters / rule.parameter_bytes);
  }
  return pinned;
}

Elsewhere move_states(const Run& run, const StateRule& rule, StateBytes& states) noexcept {
  Elsewhere elsewhere;
  const Offload& offload = run.training.offload;
  elsewhere.host = pinned_buffers(run, rule, states);
  if (offload.optimizer != OffloadDevice::none) {
    const double moved = std::floor(states.optimizer * std::clamp(offload.optimizer_fraction, 0.0, 1.0));
    states.optimizer -= moved;
    put(offload.optimizer, moved, elsewhere);
    if (facts_of(run.training.framework).offload.gradients_follow) {
      put(offload.optimizer, states.gradients, elsewhere);
      states.gradients = 0;
    }
  } else if (states.paged > 0) {
    elsewhere.host += states.paged;
    states.optimizer -= states.paged;
  }
  if (offload.parameters != OffloadDevice::none) {
    put(offload.parameters, states.parameters, elsewhere);
    states.parameters = 0;
  }
  return elsewhere;
}

/// Activations that one microbatch keeps on a rank, at most in one chunk, and of all that are in flight.
void fill_activations(const Run& run, const EstimateWorkspace& w, std::size_t rank, RankMemory& out) noexcept {
  const Offload& offload = run.training.offload;
  const Stage& stage = w.stages[rank];
  const std::size_t per_rank = static_cast<std::size_t>(schedule::chunks_per_rank(w.spec.shape));
  RankBytes<double>& bytes = out.bytes;
  out.all_in_flight = w.simulated.peak_bytes[rank];
  for (std::size_t c = 0; c < per_rank; ++c) {
    const std::size_t index = rank * per_rank + c;
    const Chunk& chunk = w.chunks[index];
    if (chunk.kept > bytes.current) {
      bytes.current = chunk.kept;
      bytes.first_layer = chunk.first_kept;
    }
    if (!chunk.has_head) continue;
    // The loss of the microbatch that is just done is counted apart; others in flight keep theirs.
    const double others = std::max(0.0, w.simulated.peak_live[index] - 1);
    out.other_losses += others * (w.ends.final_norm.bytes.saved + w.ends.head.bytes.saved);
  }
  out.all_in_flight += out.other_losses;
  bytes.in_flight = out.all_in_flight;
  if (offload.activations == OffloadDevice::cpu && stage.layers > 0) {
    const int chosen = offload.activation_layers < 0 ? stage.layers : std::min(offload.activation_layers, stage.layers);
    // What is being sent and fetched stays: two layers.
    out.offloaded_activations =
        std::max(0.0, bytes.in_flight * chosen / stage.layers - 2 * bytes.current / std::max(1, stage.layers));
    bytes.in_flight -= out.offloaded_activations;
  }
}

/// FSDP1 hangs its hook on the inputs of frozen units.
bool retains_inputs(const Run& run) noexcept {
  const Training& training = run.training;
  const bool frozen_units = training.peft.active() && facts_of(training.framework).fsdp == FsdpKind::torch &&
                            run.parallel.fsdp_version == 1 && run.parallel.dense_replicas() > 1;
  return frozen_units && training.stack.memory.retains_frozen_inputs;
}

void fill_moments(const RankMemory& memory, StageEstimate& out) noexcept {
  const RankMoments<double> moments = rank_moments(memory.facts, memory.bytes);
  for (std::size_t i = 0; i < moment_count; ++i) {
    const MomentBytes<double>& m = moments[i];
    out.has_moment[i] = m.exists;
    if (!m.exists) continue;
    out.moments[i] = {whole(m.parameters),  whole(m.gradients), whole(m.optimizer),
                      whole(m.activations), whole(m.transient), whole(m.communication_buffers),
                      whole(m.framework)};
  }
}

void fill_reserved(const Run& run, const EstimateWorkspace& w, const Stage& stage, StageEstimate& out) noexcept {
  const double allocated = static_cast<double>(out.peak().allocated());
  if (!facts_of(run.training.framework).measures_overheads) {
    out.reserved_bytes = out.reserved_low_bytes = out.reserved_high_bytes = whole(allocated);
    return;
  }
  const StackMemory& memory = run.training.stack.memory;
  const LossKind loss = run.training.loss;
  const bool unfused = loss == LossKind::hf || loss == LossKind::hf_shift || loss == LossKind::hf_external ||
                       loss == LossKind::hf_native;
  double fragments = 0;
  if (memory.logits_fragmentation && unfused && stage.has_head && out.peak_moment == Moment::loss) {
    fragments = 4.0 * w.ends.logits;
  }
  out.reserved_bytes = whole(memory.reserved_factor * allocated + fragments);
  const double spread = unfused && stage.has_head && memory.logits_fragmentation ? 8.0 * w.ends.logits : 0.0;
  out.reserved_low_bytes = std::min(out.reserved_bytes, whole(allocated));
  out.reserved_high_bytes = std::max(out.reserved_bytes, whole(1.09 * allocated + spread));
  const MemoryParts& start = out.moments[static_cast<std::size_t>(Moment::initialisation)];
  if (out.has_moment[static_cast<std::size_t>(Moment::initialisation)]) {
    out.reserved_bytes = std::max(out.reserved_bytes, start.allocated());
    out.reserved_high_bytes = std::max(out.reserved_high_bytes, out.reserved_bytes);
  }
}

void choose_peak(StageEstimate& out) noexcept {
  std::int64_t most = -1;
  for (std::size_t i = 0; i < moment_count; ++i) {
    if (!out.has_moment[i]) continue;
    const std::int64_t total = out.moments[i].total();
    if (total > most) {
      most = total;
      out.peak_moment = static_cast<Moment>(i);
    }
  }
}

/// GPU 0 of torch.nn.DataParallel gathers every replica's logits; the others hold a replica and no optimizer.
void add_data_parallel_replicas(const Run& run, const EstimateWorkspace& w, Estimate& out) noexcept {
  const double replicas = run.num_gpus;
  StageEstimate other = out.stages[0];
  other.stage = 1;
  const double logits = bytes_of(activation_dtype(run.training.precision)) * w.ends.logits * replicas;
  for (std::size_t i = 0; i < moment_count; ++i) {
    if (!out.stages[0].has_moment[i]) continue;
    if (static_cast<Moment>(i) == Moment::loss) out.stages[0].moments[i].transient += whole(logits);
    MemoryParts& parts = other.moments[i];
    parts.transient += parts.parameters;  // the replica lives for one forward and backward
    parts.parameters = 0;
    parts.optimizer = 0;
    if (static_cast<Moment>(i) == Moment::optimizer_step) parts = MemoryParts{0, 0, 0, 0, 0, 0, parts.framework};
  }
  choose_peak(out.stages[0]);
  choose_peak(other);
  fill_reserved(run, w, w.stages[0], out.stages[0]);
  fill_reserved(run, w, w.stages[0], other);
  out.stages.push_back(other);
}

}  // namespace

MemoryOverheads memory_overheads(const Run& run, const Topology& topology) noexcept {
  return {framework_bytes(run, topology), workspace_bytes(run)};
}

RankMemory rank_memory(const Run& run, const EstimateWorkspace& w, int rank,
                       const MemoryOverheads& overheads) noexcept {
  const Training& training = run.training;
  const Stage& stage = w.stages[static_cast<std::size_t>(rank)];
  RankMemory out;
  RankFacts& facts = out.facts;
  facts.textbook = !facts_of(training.framework).measures_overheads;
  facts.has_head = stage.has_head;
  facts.gradients_from_start = run.microbatches() > 1 || !training.stack.memory.gradients_freed;
  facts.retains_inputs = retains_inputs(run);
  facts.placeholder_gradients = training.kernels.te_dummy_wgrad;
  facts.full_initialisation = training.full_initialisation;

  out.states = stage.states;
  out.buffers = buffers_of(run, w, stage);
  StateBytes states = stage.states;
  const Elsewhere elsewhere = move_states(run, w.rule, states);
  out.host_bytes = elsewhere.host;
  out.nvme_bytes = elsewhere.nvme;

  RankBytes<double>& bytes = out.bytes;
  bytes.parameters = states.parameters;
  bytes.gradients = states.gradients;
  bytes.optimizer = states.optimizer;
  bytes.framework = overheads.framework;
  bytes.workspaces = overheads.workspaces;
  fill_activations(run, w, static_cast<std::size_t>(rank), out);
  if (facts.retains_inputs) bytes.retained = std::max(0, stage.layers - 2) * stage.layer_checkpoint;
  bytes.recomputed = recomputed_bytes(run, stage);
  bytes.layer = stage.transient.total();
  if (training.recompute.of_layers() && training.kernels.reentrant_checkpoint) {
    bytes.layer_output = stage.layer_checkpoint;
  }
  if (stage.has_head) {
    const Ends& ends = w.ends;
    bytes.final_norm = ends.final_norm.bytes.saved;
    bytes.head_input = ends.head_input;
    bytes.head_saved = ends.head.bytes.saved;
    bytes.loss = ends.head_peaks.loss;
    bytes.head_product = ends.head_peaks.product;
    bytes.head_weight = ends.head_peaks.weight_gradient;
    bytes.head_gradient = ends.head_gradient;
  }
  bytes.root_gradient = out.buffers.root_gradient;
  bytes.gradients_apart = out.buffers.gradients_apart;
  bytes.placeholders = dummy_gradients(run, stage);
  if (training.keep_logits) bytes.kept_logits = 4.0 * w.ends.logits;
  bytes.step = step_transient(run, w, stage);
  bytes.whole_model = bytes_of(activation_dtype(training.precision)) * stage.weights.held();
  bytes.gathered = out.buffers.gathered;
  bytes.gathered_at_loss = out.buffers.gathered_at_loss;
  bytes.cached = out.buffers.cached;
  bytes.collectives = out.buffers.collectives;
  bytes.collectives_at_loss = out.buffers.at_loss;
  bytes.lasting = out.buffers.lasting;
  return out;
}

void estimate_stage_memory(const Run& run, const EstimateWorkspace& w, std::size_t i, const MemoryOverheads& overheads,
                           StageEstimate& e) noexcept {
  const int per_rank = schedule::chunks_per_rank(w.spec.shape);
  const Stage& stage = w.stages[i];
  e = StageEstimate{};
  e.stage = static_cast<int>(i);
  e.layers = stage.layers;
  e.parameters = whole(stage.weights.held());
  e.in_flight_chunks = whole(w.simulated.peak_inflight[i]);
  e.in_flight_microbatches = (e.in_flight_chunks + per_rank - 1) / per_rank;
  if (w.spec.shape.kind == ScheduleKind::dualpipe) e.in_flight_microbatches = e.in_flight_chunks;
  const RankMemory rank = rank_memory(run, w, static_cast<int>(i), overheads);
  e.host_bytes = whole(rank.host_bytes) + whole(rank.offloaded_activations);
  e.nvme_bytes = whole(rank.nvme_bytes);
  fill_moments(rank, e);
  choose_peak(e);
  fill_reserved(run, w, stage, e);
}

void estimate_memory(const Run& run, const EstimateWorkspace& w, Estimate& out) noexcept {
  const MemoryOverheads overheads = memory_overheads(run, w.topology);
  const std::size_t ranks = w.stages.size();
  out.stages.resize(ranks);
  double host = 0, nvme = 0;
  for (std::size_t i = 0; i < ranks; ++i) {
    StageEstimate& e = out.stages[i];
    estimate_stage_memory(run, w, i, overheads, e);
    e.forward_s = w.stages[i].forward_s;
    e.backward_s = w.stages[i].backward_s;
    host += static_cast<double>(e.host_bytes);
    nvme += static_cast<double>(e.nvme_bytes);
  }
  if (facts_of(run.training.framework).single_process && run.num_gpus > 1) add_data_parallel_replicas(run, w, out);
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
    const std::int64_t headroom = out.capacity_bytes - e.reserved_bytes - e.peak().framework;
    if (first || headroom < out.headroom_bytes) {
      first = false;
      out.headroom_bytes = headroom;
      out.binding_stage = e.stage;
      out.reserved_bytes = e.reserved_bytes;
      out.reserved_low_bytes = e.reserved_low_bytes;
      out.reserved_high_bytes = e.reserved_high_bytes;
    }
  }
  // A node's share: the mean rank's bytes times the GPUs of a node.
  const double per_node = std::min(run.cluster.gpus_per_node, run.num_gpus);
  out.host_bytes_per_node = whole(host / static_cast<double>(ranks) * per_node);
  out.nvme_bytes_per_node = whole(nvme / static_cast<double>(ranks) * per_node);
  out.fits_gpu = out.headroom_bytes >= 0;
  const Host& host_facts = run.cluster.host;
  const bool host_fits =
      host_facts.memory_bytes <= 0 || static_cast<double>(out.host_bytes_per_node) <= host_facts.memory_bytes;
  const bool nvme_fits =
      host_facts.nvme_bytes <= 0 || static_cast<double>(out.nvme_bytes_per_node) <= host_facts.nvme_bytes;
  out.fits = out.fits_gpu && host_fits && nvme_fits;
}

}  // namespace shardplan
