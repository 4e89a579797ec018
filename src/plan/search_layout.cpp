// One layout of the search tree, put into a run or named.
#include "search_tree.hpp"

namespace shardplan::plan {

void SearchTree::set(const Grid& grid, Run& run) const {
  put(grid, run);
  Parallel& parallel = run.parallel;
  parallel.data = grid.data;
  if (parallel.hpz && !base_.given.has(Field::shard_group)) {
    parallel.shard_group = default_shard_group(parallel, run.cluster.gpus_per_node);
  }
}

void SearchTree::set(const Node& node, Run& run) const {
  set(grids[node.grid], run);
  put(node, run);
}

void SearchTree::set(const Node& node, const Pipelining& pipelining, Run& run) const {
  const Grid& grid = grids[node.grid];
  put(pipelining, run);
  if (list_given_) {
    Draft draft = base_;
    draft.run.parallel.pipeline = grid.pipeline;
    draft.run.parallel.virtual_pipeline = pipelining.virtual_pipeline;
    draft.run.parallel.schedule = pipelining.schedule;
    draft.given |= FieldSet(Field::pipeline, Field::virtual_pipeline, Field::schedule);
    Run resolved;
    resolve(draft, resolved);
    run.parallel.layers_per_chunk = resolved.parallel.layers_per_chunk;
    return;
  }
  layers_of_chunks(facts_.layers, grid.pipeline, pipelining.virtual_pipeline, run.parallel.layers_per_chunk);
}

void SearchTree::set(const Sharding& sharding, Run& run) const {
  put(sharding, run);
  run.parallel.grad_sync = sharding.states.grad_sync;
  Training& training = run.training;
  training.param_dtype = sharding.states.param_dtype;
  training.grad_dtype = sharding.states.grad_dtype;
  training.master_weights = sharding.states.master_weights;
  training.optimizer_state_dtype = sharding.states.optimizer_state_dtype;
  training.autocast = sharding.states.autocast;
}

Layout SearchTree::layout(const Node& node, const Pipelining& pipelining, const Sharding& sharding) const {
  return {grids[node.grid], node, pipelining, sharding};
}

void SearchTree::for_each_overlap(const Node& node, const Pipelining& pipelining, const Sharding& sharding,
                                  const std::function<void(const Layout&)>& visit) const {
  Layout one = layout(node, pipelining, sharding);
  const OverlapPairs pairs = overlap_pairs(grids[node.grid], sharding);
  for (std::size_t i = 0; i < pairs.count; ++i) {
    std::tie(one.overlap_grad_reduce, one.overlap_param_gather) = pairs.list[i];
    for (int tp = 0; tp < node.overlap_tp_values; ++tp) {
      for (int p2p = 0; p2p < pipelining.overlap_p2p_values; ++p2p) {
        one.overlap_tp = tp == 0 && node.overlap_tp;
        one.overlap_p2p = p2p == 0 && pipelining.overlap_p2p;
        visit(one);
      }
    }
  }
}

}  // namespace shardplan::plan
