#include "shardplan/plan/buffers.hpp"

#include <algorithm>
#include <cmath>

#include "shardplan/physics/frameworks/facts.hpp"

namespace shardplan {
namespace {

/// Bytes of an unsharded weight element as it is computed with: 16 bit, or as the quantised base is stored.
double gathered_width(const Run& run, const EstimateWorkspace& w, const Stage& stage) noexcept {
  const double width = bytes_of(activation_dtype(run.training.precision));
  const Weights& dense = stage.weights.dense;
  if (dense.quantized <= 0 || dense.held() <= 0) return width;
  const double quantized = dense.quantized / dense.held();
  return quantized * w.rule.quantized_bytes + (1 - quantized) * width;
}

double adapters_of(const Stage& stage) noexcept { return stage.weights.dense.adapters + stage.weights.expert.adapters; }

}  // namespace

Buffers buffers_of(const Run& run, const EstimateWorkspace& w, const Stage& stage) noexcept {
  const Training& training = run.training;
  const Parallel& parallel = run.parallel;
  const FrameworkFacts& framework = facts_of(training.framework);
  const StackMemory& memory = training.stack.memory;
  Buffers buffers;
  const double width = bytes_of(activation_dtype(training.precision));
  const double elements = stage.weights.held();
  const bool trains = !training.peft.active();
  const bool fully_sharded = shards_states(parallel.fsdp) && w.rule.parameter_shards > 1;
  if (fully_sharded) {
    const double layer = gathered_width(run, w, stage) * stage.largest_layer;
    // Under a pipeline nothing is resharded between microbatches (data_calls.cpp counts one gathering a step).
    if (parallel.fsdp == Fsdp::shard_grad_op || parallel.pipeline > 1) {
      buffers.gathered = buffers.gathered_at_loss = gathered_width(run, w, stage) * elements;
    } else {
      buffers.gathered = std::min(memory.gathered_layers, std::max(1, stage.layers)) * layer;
      if (memory.root_unit_gathered) buffers.gathered += width * stage.root;
      // FSDP1 has freed the last layer by then; FSDP2 users keep it for the backward pass that follows (torchtitan
      // parallelize_llama.py, reshard_after_forward false for the last block).
      buffers.gathered_at_loss = width * stage.root + (parallel.fsdp_version == 1 ? 0.0 : layer);
    }
    if (stage.has_head) buffers.root_gradient = w.ends.head_gradient;
    if (memory.fp32_reduce_scatter_input && trains) {
      buffers.collectives = bytes_of(training.grad_dtype) * stage.largest_layer;
    }
    if (parallel.grad_sync == GradSync::last && run.microbatches() > 1) {
      // Unsharded gradients while accumulating: of every unit that holds a parameter that trains, FSDP1's flat
      // parameters with their frozen ones inside.
      const double layers = elements - stage.root;
      const double held = width * (trains ? elements : parallel.fsdp_version == 1 ? layers : adapters_of(stage));
      buffers.collectives += held;
      buffers.at_loss += held;
    }
  } else if (framework.zero_pools && parallel.dense_replicas() > 1) {
    if (parallel.zero_stage == 3) {
      buffers.gathered = width * std::min(elements, static_cast<double>(memory.live_parameters));
      buffers.gathered += width * stage.root;
      buffers.collectives = width * std::min(elements, static_cast<double>(memory.prefetch));
      if (stage.has_head) buffers.root_gradient = w.ends.head_gradient;
    } else if (parallel.zero_stage >= 1) {
      buffers.collectives = width * std::min(elements, static_cast<double>(memory.gather_bucket));
    }
    if (parallel.zero_stage >= 2) {
      const double bucket = std::min(elements, static_cast<double>(memory.reduce_bucket));
      buffers.collectives += memory.reduce_buckets * width * bucket;
    }
    if (parallel.hpz) {
      // The secondary partition: 2 bytes a parameter inside its group.
      buffers.gathered += width * std::ceil(elements / std::max(1, parallel.shard_group));
    }
    buffers.gathered_at_loss = buffers.gathered;
    buffers.at_loss = buffers.collectives;
  }
  if (w.rule.narrow_parameter_bytes == 0) {
    buffers.cached = narrow_copy_bytes(run) * (stage.weights.dense.narrow + stage.weights.expert.narrow);
  }
  // Gradients that a backward pass makes beside their fp32 sums are in the weights' type.
  if (framework.gradients_apart) buffers.gradients_apart = w.rule.parameter_bytes * stage.weights.trained();
  const bool buckets = framework.copies_gradient_buckets && parallel.dense_replicas() > 1 && parallel.zero_stage == 0 &&
                       w.rule.keeps_gradients;
  if (buckets && !memory.gradient_bucket_views) {
    // DistributedDataParallel reduces copies of the gradients, in buckets that live as long as the model.
    const Weights& weights = stage.weights.dense;
    const bool one_layer = w.optimizer->form == StateForm::block_coordinate && trains;
    const double all = framework.gradients_apart ? stage.weights.trained() : weights.trained;
    const double trained = one_layer ? stage.largest_layer : all;
    const double width_of_bucket = framework.gradients_apart ? w.rule.parameter_bytes : w.rule.gradient_bytes;
    buffers.lasting = width_of_bucket * trained + w.rule.adapter_gradient_bytes * weights.adapters;
    buffers.collectives += buffers.lasting;
    buffers.at_loss += buffers.lasting;
  }
  if (parallel.pipeline > 1 && framework.measures_overheads) {
    const double messages = boundary_bytes(run) * ((stage.has_embedding ? 0 : 1) + (stage.has_head ? 0 : 1));
    buffers.collectives += messages;
    buffers.at_loss += messages;
  }
  return buffers;
}

}  // namespace shardplan
