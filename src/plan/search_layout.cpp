// One layout of the search tree, put into a run or named.
#include "search_tree.hpp"

namespace shardplan::plan {

void SearchTree::set(const Grid& grid, Run& run) const {
  run.num_gpus = grid.num_gpus;
  Parallel& parallel = run.parallel;
  parallel.tensor = grid.tensor;
  parallel.pipeline = grid.pipeline;
  parallel.context = grid.context;
  parallel.expert = grid.expert;
  parallel.expert_tensor = grid.expert_tensor;
  parallel.data = grid.data;
  if (parallel.hpz && !base_.given.has(Field::shard_group)) {
    parallel.shard_group = default_shard_group(parallel, run.cluster.gpus_per_node);
  }
}

void SearchTree::set(const Node& node, Run& run) const {
  set(grids[node.grid], run);
  run.training.micro_batch_size = node.micro_batch_size;
  run.training.recompute = recomputes[node.recompute];
  run.training.attention = node.attention;
  run.training.overlap.tp = node.overlap_tp;
  run.parallel.sequence_parallel = node.sequence_parallel;
}

void SearchTree::set(const Node& node, const Pipelining& pipelining, Run& run) const {
  const Grid& grid = grids[node.grid];
  run.parallel.schedule = pipelining.kind;
  run.parallel.virtual_pipeline = pipelining.virtual_pipeline;
  run.training.overlap.p2p = pipelining.overlap_p2p;
  if (list_given_) {
    Draft draft = base_;
    draft.run.parallel.pipeline = grid.pipeline;
    draft.run.parallel.virtual_pipeline = pipelining.virtual_pipeline;
    draft.run.parallel.schedule = pipelining.kind;
    draft.given |= FieldSet(Field::pipeline, Field::virtual_pipeline, Field::schedule);
    Run resolved;
    resolve(draft, resolved);
    run.parallel.layers_per_chunk = resolved.parallel.layers_per_chunk;
    return;
  }
  layers_of_chunks(facts_.layers, grid.pipeline, pipelining.virtual_pipeline, run.parallel.layers_per_chunk);
}

void SearchTree::set(const Sharding& sharding, Run& run) const {
  Parallel& parallel = run.parallel;
  Training& training = run.training;
  parallel.zero_stage = sharding.zero_stage;
  parallel.fsdp = sharding.fsdp;
  if (sharding.shard_group > 0) parallel.shard_group = sharding.shard_group;
  parallel.grad_sync = sharding.states.grad_sync;
  training.param_dtype = sharding.states.param_dtype;
  training.grad_dtype = sharding.states.grad_dtype;
  training.master_weights = sharding.states.master_weights;
  training.optimizer_state_dtype = sharding.states.optimizer_state_dtype;
  training.autocast = sharding.states.autocast;
  training.offload.optimizer = sharding.optimizer;
  training.offload.parameters = sharding.parameters;
  training.offload.activations = sharding.activations;
  training.overlap.grad_reduce = sharding.overlap_grad_reduce;
  training.overlap.param_gather = sharding.overlap_param_gather;
}

LayoutChoice SearchTree::choice(const Node& node, const Pipelining& pipelining, const Sharding& sharding) const {
  const Grid& grid = grids[node.grid];
  LayoutChoice choice;
  choice.num_gpus = grid.num_gpus;
  choice.tensor = grid.tensor;
  choice.pipeline = grid.pipeline;
  choice.virtual_pipeline = pipelining.virtual_pipeline;
  choice.context = grid.context;
  choice.expert = grid.expert;
  choice.expert_tensor = grid.expert_tensor;
  choice.micro_batch_size = node.micro_batch_size;
  choice.schedule = pipelining.kind;
  choice.zero_stage = sharding.zero_stage;
  choice.fsdp = sharding.fsdp;
  choice.shard_group = sharding.shard_group;
  choice.recompute = recomputes[node.recompute];
  choice.attention = node.attention;
  choice.sequence_parallel = node.sequence_parallel;
  choice.offload_optimizer = sharding.optimizer;
  choice.offload_parameters = sharding.parameters;
  choice.offload_activations = sharding.activations;
  choice.overlap = {sharding.overlap_grad_reduce, sharding.overlap_param_gather, node.overlap_tp,
                    pipelining.overlap_p2p};
  return choice;
}

void SearchTree::for_each_overlap(const Node& node, const Pipelining& pipelining, const Sharding& sharding,
                                  const std::function<void(const LayoutChoice&)>& visit) const {
  LayoutChoice one = choice(node, pipelining, sharding);
  const OverlapPairs pairs = overlap_pairs(grids[node.grid], sharding);
  for (std::size_t i = 0; i < pairs.count; ++i) {
    const auto [reduce, gather] = pairs.list[i];
    for (int tp = 0; tp < node.overlap_tp_values; ++tp) {
      for (int p2p = 0; p2p < pipelining.overlap_p2p_values; ++p2p) {
        one.overlap = {reduce, gather, tp == 0 && node.overlap_tp, p2p == 0 && pipelining.overlap_p2p};
        visit(one);
      }
    }
  }
}

}  // namespace shardplan::plan
