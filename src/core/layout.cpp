#include "shardplan/core/layout.hpp"

#include <tuple>

namespace shardplan {
namespace {

/// Everything that is ordered, the first difference decides.
auto order_key(const Layout& l) noexcept {
  const Recompute& again = l.recompute;
  return std::tuple(l.num_gpus, l.tensor, l.pipeline, l.virtual_pipeline, l.context, l.expert, l.expert_tensor,
                    l.micro_batch_size, l.schedule, l.zero_stage, l.fsdp, l.shard_group, again.mode, again.n,
                    again.modules, l.attention, !l.sequence_parallel, l.offload_optimizer, l.offload_parameters,
                    l.offload_activations, !l.overlap_grad_reduce, !l.overlap_param_gather, !l.overlap_tp,
                    !l.overlap_p2p);
}

}  // namespace

Layout layout_of(const Run& run) noexcept {
  const Parallel& parallel = run.parallel;
  const Training& training = run.training;
  Layout layout;
  layout.num_gpus = run.num_gpus;
  layout.tensor = parallel.tensor;
  layout.pipeline = parallel.pipeline;
  layout.context = parallel.context;
  layout.expert = parallel.expert;
  layout.expert_tensor = parallel.expert_tensor;
  layout.micro_batch_size = training.micro_batch_size;
  layout.recompute = training.recompute;
  layout.attention = training.attention;
  layout.sequence_parallel = parallel.sequence_parallel;
  layout.overlap_tp = training.overlap.tp;
  layout.schedule = parallel.schedule;
  layout.virtual_pipeline = parallel.virtual_pipeline;
  layout.overlap_p2p = training.overlap.p2p;
  layout.zero_stage = parallel.zero_stage;
  layout.fsdp = parallel.fsdp;
  layout.shard_group = parallel.fsdp == Fsdp::hybrid_shard ? parallel.shard_group : 0;
  layout.offload_optimizer = training.offload.optimizer;
  layout.offload_parameters = training.offload.parameters;
  layout.offload_activations = training.offload.activations;
  layout.overlap_grad_reduce = training.overlap.grad_reduce;
  layout.overlap_param_gather = training.overlap.param_gather;
  return layout;
}

void put(const Degrees& part, Run& run) noexcept {
  run.num_gpus = part.num_gpus;
  Parallel& parallel = run.parallel;
  parallel.tensor = part.tensor;
  parallel.pipeline = part.pipeline;
  parallel.context = part.context;
  parallel.expert = part.expert;
  parallel.expert_tensor = part.expert_tensor;
}

void put(const MicrobatchOptions& part, Run& run) noexcept {
  run.training.micro_batch_size = part.micro_batch_size;
  run.training.recompute = part.recompute;
  run.training.attention = part.attention;
  run.parallel.sequence_parallel = part.sequence_parallel;
  run.training.overlap.tp = part.overlap_tp;
}

void put(const PassOrder& part, Run& run) noexcept {
  run.parallel.schedule = part.schedule;
  run.parallel.virtual_pipeline = part.virtual_pipeline;
  run.training.overlap.p2p = part.overlap_p2p;
}

void put(const StatePlacement& part, Run& run) noexcept {
  run.parallel.zero_stage = part.zero_stage;
  run.parallel.fsdp = part.fsdp;
  if (part.shard_group > 0) run.parallel.shard_group = part.shard_group;
  Training& training = run.training;
  training.offload.optimizer = part.offload_optimizer;
  training.offload.parameters = part.offload_parameters;
  training.offload.activations = part.offload_activations;
  training.overlap.grad_reduce = part.overlap_grad_reduce;
  training.overlap.param_gather = part.overlap_param_gather;
}

void put(const Layout& layout, Run& run) noexcept {
  put(static_cast<const Degrees&>(layout), run);
  put(static_cast<const MicrobatchOptions&>(layout), run);
  put(static_cast<const PassOrder&>(layout), run);
  put(static_cast<const StatePlacement&>(layout), run);
}

std::strong_ordering order_of(const Layout& left, const Layout& right) noexcept {
  const auto one = order_key(left), other = order_key(right);
  if (one < other) return std::strong_ordering::less;
  return other < one ? std::strong_ordering::greater : std::strong_ordering::equal;
}

}  // namespace shardplan
