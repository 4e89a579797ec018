// The bytes that a rank's moments are sums of, as formulas over numbers or text (physics/trace.hpp): states and what
// of them lives elsewhere, activations in flight, what a pass and a step hold for a moment.
#pragma once

#include <algorithm>
#include <cmath>

#include "shardplan/plan/buffers.hpp"
#include "shardplan/plan/rank_memory.hpp"

namespace shardplan {

namespace rank_parts {

/// Placeholder gradients that Transformer Engine caches: one per distinct weight shape, 16 bit.
template <class N>
N placeholder_gradients(const Run& run, const StageOf<N>& stage) {
  N bytes = 0.0;
  if (!run.training.kernels.te_dummy_wgrad || run.training.peft.active()) return bytes;
  for (const MatrixShapeOf<N>& shape : stage.shapes) bytes += 2.0 * shape.rows * shape.cols;
  return bytes;
}

/// Recomputed activations that the backward pass of one segment holds.
template <class N>
N recomputed_bytes(const Run& run, const StageOf<N>& stage) {
  using std::max;
  const Recompute& recompute = run.training.recompute;
  // A norm written in Python keeps an fp32 copy, not the checkpoint itself.
  const bool copies = run.training.kernels.norm == NormKernel::naive && run.model.norm == Norm::rmsnorm;
  const N shared = copies ? N(0.0) : stage.layer_checkpoint;
  switch (recompute.mode) {
    case RecomputeMode::full:
    case RecomputeMode::first_n: return max(N(0.0), stage.layer_saved - shared);
    // What was kept is not made again.
    case RecomputeMode::ops: return max(N(0.0), stage.layer_saved - stage.layer_kept);
    case RecomputeMode::every_k: {
      const double layers = std::min(recompute.n, std::max(1, stage.layers));
      return max(N(0.0), N(layers) * stage.layer_saved - shared);
    }
    default: return 0.0;
  }
}

/// What one update holds for a moment in torch and the libraries beside it.
template <class Trace, class N = NumberOf<Trace>>
N update_temporaries(const Trace& trace, const Run& run, const EstimateWorkspaceOf<N>& w, const StageOf<N>& stage,
                     N trained) {
  using std::max;
  const Training& training = run.training;
  const Optimizer& optimizer = *w.optimizer;
  const bool adapters = training.peft.active();
  const double width = adapters ? w.rule.adapter_parameter_bytes : w.rule.parameter_bytes;
  const N shards = trace.ranks(GroupKind::data, adapters && !w.rule.adapters_sharded ? 1.0 : w.rule.parameter_shards);
  const bool loop = optimizer.kernel == StepKernel::loop ||
                    (optimizer.kernel == StepKernel::torch && training.optimizer_impl == OptimizerImpl::for_loop);
  if (loop) {
    // The denominator and the update of one tensor at a time; adapters are small beside anything.
    const N expert_shards = trace.ranks(GroupKind::expert_data, w.rule.expert_parameter_shards);
    return N(2 * width) *
           max(stage.weights.dense.largest_tensor / shards, stage.weights.expert.largest_tensor / expert_shards);
  }
  if (optimizer.kernel == StepKernel::torch && training.optimizer_impl == OptimizerImpl::foreach) {
    // Copies of the parameters that train, in their own type.
    return N(optimizer.foreach_copies * width) * trained / shards;
  }
  return 0.0;
}

/// Optimizer steps on one rank need this much more for a moment.
template <class Trace, class N = NumberOf<Trace>>
N step_transient(const Trace& trace, const Run& run, const EstimateWorkspaceOf<N>& w, const StageOf<N>& stage) {
  using std::max;
  const StepTransient held = facts_of(run.training.framework).step;
  if (held == StepTransient::none || run.training.offload.optimizer != OffloadDevice::none) return 0.0;
  if (value_of(stage.weights.trained()) <= 0 || w.optimizer->form == StateForm::block_coordinate) return 0.0;
  const N matrix = larger(stage.weights.dense.step_bytes, stage.weights.expert.step_bytes);
  if (held == StepTransient::matrices) return matrix;
  const N trained = trace.step(memory_names::stage_trains, stage.weights.trained());
  if (held == StepTransient::fp32_partition) {
    // The partition's gradient is copied to fp32 unless it is fp32 already.
    const bool copied = w.rule.keeps_gradients && w.rule.gradient_bytes < 4;
    return matrix + (copied ? 4.0 * trained / trace.ranks(GroupKind::data, w.rule.optimizer_shards) : N(0.0));
  }
  return max(matrix, update_temporaries(trace, run, w, stage, trained));
}

/// States that live elsewhere.
template <class N>
struct Elsewhere {
  N host{}, nvme{};

  void put(OffloadDevice device, N bytes) {
    if (device == OffloadDevice::cpu) host += bytes;
    if (device == OffloadDevice::nvme) nvme += bytes;
  }
};

/// Host memory that is pinned to swap with NVMe: buffers of weights, and of a sub-group of the optimizer's fp32 states.
template <class N>
N pinned_buffers(const Run& run, const StateRule& rule, N parameters) {
  using std::min;
  const OffloadFacts& facts = facts_of(run.training.framework).offload;
  const Offload& offload = run.training.offload;
  N pinned = offload.parameters == OffloadDevice::nvme ? facts.pinned_parameters : 0.0;
  if (offload.optimizer == OffloadDevice::nvme && rule.parameter_bytes > 0) {
    pinned += N(facts.pinned_states) * min(N(facts.sub_group), parameters / rule.parameter_bytes);
  }
  return pinned;
}

/// Names a state; what of it moves away is `share_moved` of all of it. Returns what was moved.
template <class Trace, class Moved, class N = NumberOf<Trace>>
N move_state(const Trace& trace, const memory_names::StateNames& names, N& bytes, Moved moved_of) {
  if (value_of(moved_of(bytes)) == 0) {
    bytes = trace.step(names.all, bytes);
    return 0.0;
  }
  const N all = trace.step(names.before, bytes);
  const N moved = trace.step(names.offloaded, moved_of(all));
  bytes = trace.step(names.left, all - moved);
  return moved;
}

template <class Trace, class N = NumberOf<Trace>>
Elsewhere<N> move_states(const Trace& trace, const Run& run, const StateRule& rule, StateBytesOf<N>& states) {
  using std::floor;
  using namespace memory_names;
  const Offload& offload = run.training.offload;
  const auto nothing = [](N) { return N(0.0); };
  const auto everything = [](N bytes) { return bytes; };
  Elsewhere<N> elsewhere;
  elsewhere.host = trace.step(pinned, pinned_buffers(run, rule, states.parameters));
  N optimizer = 0.0, gradients = 0.0, parameters = 0.0;
  if (offload.optimizer != OffloadDevice::none) {
    const double share = std::clamp(offload.optimizer_fraction, 0.0, 1.0);
    const N fraction = share == 1 ? N(1.0) : share == 0 ? N(0.0) : trace.run(optimizer_fraction, share);
    optimizer = move_state(trace, optimizer_names, states.optimizer, [&](N bytes) { return floor(bytes * fraction); });
    elsewhere.put(offload.optimizer, optimizer);
    const bool follow = facts_of(run.training.framework).offload.gradients_follow;
    gradients = follow ? move_state(trace, gradients_names, states.gradients, everything)
                       : move_state(trace, gradients_names, states.gradients, nothing);
    elsewhere.put(offload.optimizer, gradients);
  } else {
    const N paged = states.paged;
    elsewhere.host +=
        move_state(trace, optimizer_names, states.optimizer, [&](N) { return value_of(paged) > 0 ? paged : N(0.0); });
    move_state(trace, gradients_names, states.gradients, nothing);
  }
  if (offload.parameters != OffloadDevice::none) {
    parameters = move_state(trace, parameters_names, states.parameters, everything);
    elsewhere.put(offload.parameters, parameters);
  } else {
    move_state(trace, parameters_names, states.parameters, nothing);
  }
  return elsewhere;
}

/// Microbatches in flight in a chunk when most is held: simulated; under 1F1B min(m, p - rank).
template <class Trace, class N = NumberOf<Trace>>
N live_microbatches(const Trace& trace, const Run& run, const EstimateWorkspaceOf<N>& w, std::size_t rank,
                    std::size_t index) {
  using std::min;
  const double live = w.simulated.peak_live[index];
  if constexpr (Trace::records) {
    const double p = run.parallel.pipeline;
    N formula = N(-1.0);
    if (run.parallel.schedule == ScheduleKind::one_f_one_b && p > 1) {
      formula = min(trace.run(memory_names::microbatches, static_cast<double>(run.microbatches())),
                    trace.run(memory_names::stages, p) - N(static_cast<double>(rank)));
    }
    return trace.step(memory_names::live, trace.simulated(memory_names::live, live, formula));
  }
  return live;
}

/// Activations that one microbatch keeps on a rank, at most in one chunk, and of all that are in flight.
template <class Trace, class N = NumberOf<Trace>>
void fill_activations(const Trace& trace, const Run& run, const EstimateWorkspaceOf<N>& w, std::size_t rank,
                      RankMemoryOf<N>& out) {
  using std::max;
  using namespace memory_names;
  const Offload& offload = run.training.offload;
  const StageOf<N>& stage = w.stages[rank];
  const int per_rank = schedule::chunks_per_rank(w.spec.shape);
  RankBytes<N>& bytes = out.bytes;
  N held = 0.0, other_losses = 0.0;
  for (int c = 0; c < per_rank; ++c) {
    const std::size_t index = rank * static_cast<std::size_t>(per_rank) + static_cast<std::size_t>(c);
    const ChunkOf<N>& chunk = w.chunks[index];
    const N live = live_microbatches(per_rank > 1 ? trace.at_chunk(c) : trace, run, w, rank, index);
    held += live * chunk.kept;
    if (value_of(chunk.kept) > value_of(bytes.current)) {
      bytes.current = chunk.kept;
      bytes.first_layer = chunk.first_kept;
    }
    if (!chunk.has_head) continue;
    // The loss of the microbatch that is just done is counted apart; others in flight keep theirs.
    const N others = value_of(live) > 1 ? live - N(1.0) : N(0.0);
    other_losses += others * (w.ends.final_norm.bytes.saved + w.ends.head.bytes.saved);
  }
  N all = trace.simulated(chunks_in_flight, w.simulated.peak_bytes[rank], held);
  all += trace.step(waiting_losses, other_losses);
  bytes.in_flight = all;
  if (offload.activations == OffloadDevice::cpu && stage.layers > 0) {
    const int chosen = offload.activation_layers < 0 ? stage.layers : std::min(offload.activation_layers, stage.layers);
    // What is being sent and fetched stays: two layers.
    const N layers = static_cast<double>(stage.layers);
    out.offloaded_activations =
        trace.step(offloaded_activations, max(N(0.0), all * N(static_cast<double>(chosen)) / layers -
                                                          2.0 * bytes.current / N(std::max(1.0, value_of(layers)))));
    bytes.in_flight -= out.offloaded_activations;
  }
  bytes.in_flight = trace.step(in_flight, bytes.in_flight);
  bytes.current = trace.same_or_sum(current, bytes.current);
  bytes.first_layer = trace.same_or_sum(first_layer, bytes.first_layer);
}

/// FSDP1 hangs its hook on the inputs of frozen units.
inline bool retains_inputs(const Run& run) noexcept {
  const Training& training = run.training;
  const bool frozen_units = training.peft.active() && facts_of(training.framework).fsdp == FsdpKind::torch &&
                            run.parallel.fsdp_version == 1 && run.parallel.dense_replicas() > 1;
  return frozen_units && training.stack.memory.retains_frozen_inputs;
}

/// What head and loss keep and hold. `trace`: the run's; `here`: of the rank.
template <class Trace, class N = NumberOf<Trace>>
void fill_head(const Trace& trace, const Trace& here, const EndsOf<N>& ends, RankBytes<N>& bytes) {
  using namespace memory_names;
  bytes.final_norm = trace.known(final_norm_saved, ends.final_norm.bytes.saved);
  bytes.head_input = here.step(head_input, ends.head_input);
  bytes.head_saved = trace.known(memory_names::head_saved, ends.head.bytes.saved);
  bytes.loss = here.step(loss, ends.head_peaks.loss);
  bytes.head_product = here.step(head_product, ends.head_peaks.product);
  bytes.head_weight = here.step(head_weight, ends.head_peaks.weight_gradient);
  bytes.head_gradient = here.step(head_gradient, ends.head_gradient);
}

/// What a pass and a step hold for a moment.
template <class Trace, class N = NumberOf<Trace>>
void fill_transients(const Trace& here, const Run& run, const EstimateWorkspaceOf<N>& w, const StageOf<N>& stage,
                     const RankFacts& facts, RankBytes<N>& bytes) {
  using namespace memory_names;
  const Training& training = run.training;
  if (facts.retains_inputs) {
    bytes.retained = here.step(retained, N(std::max(0.0, stage.layers - 2.0)) * stage.layer_checkpoint);
  }
  bytes.recomputed = here.step(recomputed, recomputed_bytes(run, stage));
  bytes.layer = here.step(layer, stage.transient.total());
  if (training.recompute.of_layers() && training.kernels.reentrant_checkpoint) {
    bytes.layer_output = here.step(layer_output, stage.layer_checkpoint);
  }
  bytes.placeholders = here.step(placeholders, placeholder_gradients(run, stage));
  if (training.keep_logits) bytes.kept_logits = here.step(kept_logits, 4.0 * w.ends.logits);
  bytes.step = here.step(memory_names::step, step_transient(here, run, w, stage));
  if (facts.full_initialisation) {
    bytes.whole_model = here.step(
        whole_model, N(bytes_of(activation_dtype(training.precision))) * here.step(stage_held, stage.weights.held()));
  }
}

template <class Trace, class N = NumberOf<Trace>>
void name_buffers(const Trace& here, const BuffersOf<N>& buffers, RankBytes<N>& bytes) {
  using namespace memory_names;
  bytes.root_gradient = here.step(root_gradient, buffers.root_gradient);
  bytes.gradients_apart = here.step(gradients_apart, buffers.gradients_apart);
  bytes.gathered = here.step(gathered, buffers.gathered);
  bytes.gathered_at_loss = value_of(buffers.gathered_at_loss) == value_of(buffers.gathered)
                               ? bytes.gathered
                               : here.step(gathered_at_loss, buffers.gathered_at_loss);
  bytes.cached = here.step(cached, buffers.cached);
  bytes.collectives = here.step(collectives, buffers.collectives);
  bytes.collectives_at_loss = here.step(collectives_at_loss, buffers.at_loss);
  bytes.lasting = buffers.lasting;
}

}  // namespace rank_parts

/// The bytes of one rank, for a workspace whose pipeline has run. `v`: the symbols of any layer.
template <class Trace, class N = NumberOf<Trace>>
RankMemoryOf<N> rank_memory(const Trace& trace, const Run& run, const Symbols<N>& v, const EstimateWorkspaceOf<N>& w,
                            std::size_t rank, const MemoryOverheadsOf<N>& overheads) {
  using namespace rank_parts;
  const Training& training = run.training;
  const StageOf<N>& stage = w.stages[rank];
  const Trace here = trace.at_stage(rank);
  RankMemoryOf<N> out;
  RankFacts& facts = out.facts;
  facts.textbook = !facts_of(training.framework).measures_overheads;
  facts.has_head = stage.has_head;
  facts.gradients_from_start = run.microbatches() > 1 || !training.stack.memory.gradients_freed;
  facts.retains_inputs = retains_inputs(run);
  facts.placeholder_gradients = training.kernels.te_dummy_wgrad;
  facts.full_initialisation = training.full_initialisation;

  StateBytesOf<N> states = stage.states;
  const Elsewhere<N> elsewhere = move_states(here, run, w.rule, states);
  out.host_bytes = elsewhere.host;
  out.nvme_bytes = elsewhere.nvme;

  RankBytes<N>& bytes = out.bytes;
  bytes.parameters = states.parameters;
  bytes.gradients = states.gradients;
  bytes.optimizer = states.optimizer;
  bytes.framework = here.step(memory_names::outside, overheads.framework);
  bytes.workspaces = here.step(memory_names::workspaces, overheads.workspaces);
  fill_activations(here, run, w, rank, out);
  if (stage.has_head) fill_head(trace, here, w.ends, bytes);
  fill_transients(here, run, w, stage, facts, bytes);
  name_buffers(here, buffers_of(here, run, v, w, stage), bytes);
  return out;
}

}  // namespace shardplan
