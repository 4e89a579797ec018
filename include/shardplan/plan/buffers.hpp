// What frameworks keep for gathers, reductions and messages, as formulas over numbers or text (physics/trace.hpp).
#pragma once

#include <algorithm>
#include <cmath>

#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/physics/layer_inputs.hpp"
#include "shardplan/plan/data_volumes.hpp"
#include "shardplan/plan/memory_names.hpp"
#include "shardplan/plan/workspace.hpp"

namespace shardplan {

/// What is alive besides states and activations, by cause. Bytes.
template <class N>
struct BuffersOf {
  N gathered{};          ///< unsharded copies of sharded weights
  N collectives{};       ///< buckets, reduce-scatter inputs, receive buffers
  N gathered_at_loss{};  ///< of `gathered`, what is there when the loss is computed
  N at_loss{};           ///< of `collectives`
  N lasting{};           ///< of `collectives`, what lives as long as the model
  N gradients_apart{};   ///< of a whole microbatch, in the weights' type, once its backward pass has ended
  N cached{};            ///< narrow copies of weights, from the first microbatch on
  N root_gradient{};     ///< unsharded gradient of the head, alive from the loss on
};
using Buffers = BuffersOf<double>;

/// A rank's weights as buffers are counted in: elements, before data sharding.
template <class N>
struct RankWeights {
  N held{}, layer{}, root{};
};
template <class Trace, class N = NumberOf<Trace>>
RankWeights<N> rank_weights(const Trace& trace, const StageOf<N>& stage) {
  return {trace.step(memory_names::stage_held, stage.weights.held()),
          trace.step(memory_names::stage_largest_layer, stage.largest_layer),
          trace.step(memory_names::stage_root, stage.root)};
}

namespace buffer_parts {

/// The smaller of what there is and what a pool holds.
template <class Trace, class N = NumberOf<Trace>>
N at_most(const Trace& trace, N elements, const InputName& pool, std::int64_t size) {
  using std::min;
  return min(elements, trace.stack(pool, static_cast<double>(size)));
}

/// Bytes of an unsharded weight element as it is computed with: 16 bit, or as the quantised base is stored.
template <class Trace, class N = NumberOf<Trace>>
N gathered_width(const Trace& trace, const Run& run, const StateRule& rule, const StageOf<N>& stage) {
  const double width = bytes_of(activation_dtype(run.training.precision));
  const WeightsOf<N>& dense = stage.weights.dense;
  if (value_of(dense.quantized) <= 0 || value_of(dense.held()) <= 0) return width;
  const N quantized = dense.quantized / dense.held();
  return trace.step(memory_names::gathered_width,
                    quantized * N(rule.quantized_bytes) + (N(1.0) - quantized) * N(width));
}

/// FSDP: units of layers are gathered whole, one after another.
template <class Trace, class N = NumberOf<Trace>>
void add_fsdp(const Trace& trace, const Run& run, const StateRule& rule, const StageOf<N>& stage,
              const RankWeights<N>& weights, N head_gradient, BuffersOf<N>& buffers) {
  const Training& training = run.training;
  const Parallel& parallel = run.parallel;
  const StackMemory& memory = training.stack.memory;
  const N width = bytes_of(activation_dtype(training.precision));
  const bool trains = !training.peft.active();
  const N stored = gathered_width(trace, run, rule, stage);
  // Under a pipeline nothing is resharded between microbatches (data_calls.cpp counts one gathering a step).
  if (parallel.fsdp == Fsdp::shard_grad_op || parallel.pipeline > 1) {
    buffers.gathered = buffers.gathered_at_loss = stored * weights.held;
  } else {
    const N layer = trace.step(memory_names::gathered_layer, stored * weights.layer);
    const N root = trace.step(memory_names::gathered_root, width * weights.root);
    const int layers = std::max(1, stage.layers);
    const N alive = memory.gathered_layers <= layers
                        ? trace.stack(memory_names::gathered_layers, memory.gathered_layers)
                        : N(static_cast<double>(layers));
    buffers.gathered = alive * layer;
    if (memory.root_unit_gathered) buffers.gathered += root;
    // FSDP1 has freed the last layer by then; FSDP2 users keep it for the backward pass that follows (torchtitan
    // parallelize_llama.py, reshard_after_forward false for the last block).
    buffers.gathered_at_loss = root + (parallel.fsdp_version == 1 ? N(0.0) : layer);
  }
  if (stage.has_head) buffers.root_gradient = head_gradient;
  if (memory.fp32_reduce_scatter_input && trains) {
    buffers.collectives =
        trace.step(memory_names::reduce_scatter_input, N(bytes_of(training.grad_dtype)) * weights.layer);
  }
  if (parallel.grad_sync == GradSync::last && run.microbatches() > 1) {
    // Unsharded gradients while accumulating: of every unit that holds a parameter that trains, FSDP1's flat
    // parameters with their frozen ones inside.
    const N layers = weights.held - weights.root;
    const N adapters = stage.weights.dense.adapters + stage.weights.expert.adapters;
    const N held = trace.step(memory_names::unsharded_gradients, width * (trains                       ? weights.held
                                                                          : parallel.fsdp_version == 1 ? layers
                                                                                                       : adapters));
    buffers.collectives += held;
    buffers.at_loss += held;
  }
}

/// DeepSpeed: pools of so many elements (runtime/zero/config.py).
template <class Trace, class N = NumberOf<Trace>>
void add_zero_pools(const Trace& trace, const Run& run, const StageOf<N>& stage, const RankWeights<N>& weights,
                    N head_gradient, BuffersOf<N>& buffers) {
  using std::ceil;
  const Parallel& parallel = run.parallel;
  const StackMemory& memory = run.training.stack.memory;
  const N width = bytes_of(activation_dtype(run.training.precision));
  if (parallel.zero_stage == 3) {
    buffers.gathered =
        trace.step(memory_names::live_pool,
                   width * at_most(trace, weights.held, memory_names::live_parameters, memory.live_parameters));
    buffers.gathered += trace.step(memory_names::gathered_root, width * weights.root);
    buffers.collectives = trace.step(memory_names::prefetched,
                                     width * at_most(trace, weights.held, memory_names::prefetch, memory.prefetch));
    if (stage.has_head) buffers.root_gradient = head_gradient;
  } else if (parallel.zero_stage >= 1) {
    buffers.collectives =
        trace.step(memory_names::gather_buckets,
                   width * at_most(trace, weights.held, memory_names::gather_bucket, memory.gather_bucket));
  }
  if (parallel.zero_stage >= 2) {
    const N bucket = at_most(trace, weights.held, memory_names::reduce_bucket, memory.reduce_bucket);
    buffers.collectives +=
        trace.step(memory_names::gradient_buckets,
                   trace.stack(memory_names::reduce_buckets, memory.reduce_buckets) * width * bucket);
  }
  if (parallel.hpz) {
    // The secondary partition: 2 bytes a parameter inside its group.
    const N group = trace.ranks(GroupKind::data, std::max(1, parallel.shard_group));
    buffers.gathered += trace.step(memory_names::secondary, width * ceil(weights.held / group));
  }
  buffers.gathered_at_loss = buffers.gathered;
  buffers.at_loss = buffers.collectives;
}

/// Bytes of the messages that a pipeline rank receives at a time.
template <class Trace, class N = NumberOf<Trace>>
N message_bytes(const Trace& trace, const Run& run, const Symbols<N>& v, const StageOf<N>& stage) {
  const double neighbours = (stage.has_embedding ? 0 : 1) + (stage.has_head ? 0 : 1);
  return trace.step(memory_names::messages, boundary_of(run, v) * N(neighbours));
}

}  // namespace buffer_parts

/// Buffers of one rank: FSDP's gathered units, DeepSpeed's pools and buckets, DDP's buckets, p2p messages. `v`: the
/// symbols of any layer. `trace`: of the rank.
template <class Trace, class N = NumberOf<Trace>>
BuffersOf<N> buffers_of(const Trace& trace, const Run& run, const Symbols<N>& v, const EstimateWorkspaceOf<N>& w,
                        const StageOf<N>& stage) {
  using namespace buffer_parts;
  const Training& training = run.training;
  const Parallel& parallel = run.parallel;
  const FrameworkFacts& framework = facts_of(training.framework);
  BuffersOf<N> buffers;
  if (shards_states(parallel.fsdp) && w.rule.parameter_shards > 1) {
    add_fsdp(trace, run, w.rule, stage, rank_weights(trace, stage), w.ends.head_gradient, buffers);
  } else if (framework.zero_pools && parallel.dense_replicas() > 1) {
    add_zero_pools(trace, run, stage, rank_weights(trace, stage), w.ends.head_gradient, buffers);
  }
  if (w.rule.narrow_parameter_bytes == 0) {
    buffers.cached = N(narrow_copy_bytes(run)) * (stage.weights.dense.narrow + stage.weights.expert.narrow);
  }
  // Gradients that a backward pass makes beside their fp32 sums are in the weights' type.
  const bool apart = framework.gradients_apart;
  if (apart) buffers.gradients_apart = N(w.rule.parameter_bytes) * stage.weights.trained();
  const bool buckets = framework.copies_gradient_buckets && parallel.dense_replicas() > 1 && parallel.zero_stage == 0 &&
                       w.rule.keeps_gradients;
  if (buckets && !training.stack.memory.gradient_bucket_views) {
    // DistributedDataParallel reduces copies of the gradients, in buckets that live as long as the model.
    const WeightsOf<N>& weights = stage.weights.dense;
    const bool one_layer = w.optimizer->form == StateForm::block_coordinate && !training.peft.active();
    const N all = apart ? stage.weights.trained() : weights.trained;
    const N trained = one_layer ? stage.largest_layer : all;
    const N width = apart ? w.rule.parameter_bytes : w.rule.gradient_bytes;
    buffers.lasting =
        trace.step(memory_names::lasting, width * trained + N(w.rule.adapter_gradient_bytes) * weights.adapters);
    buffers.collectives += buffers.lasting;
    buffers.at_loss += buffers.lasting;
  }
  if (parallel.pipeline > 1 && framework.measures_overheads) {
    const N messages = message_bytes(trace, run, v, stage);
    buffers.collectives += messages;
    buffers.at_loss += messages;
  }
  return buffers;
}

}  // namespace shardplan
