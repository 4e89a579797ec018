#include "shardplan/plan/search_space.hpp"

#include <algorithm>

#include "search_tree.hpp"
#include "shardplan/schedule/shape.hpp"

namespace shardplan::plan {
namespace {

/// Of offloading, a layout with any states all three parts; one without nothing.
void state_offload(Draft& draft) {
  Offload& offload = draft.run.training.offload;
  FieldSet& given = draft.given;
  const bool any = offload.optimizer != OffloadDevice::none || offload.parameters != OffloadDevice::none ||
                   offload.activations != OffloadDevice::none;
  if (any) {
    given |= FieldSet(Field::offload, Field::offload_optimizer, Field::offload_parameters, Field::offload_activations);
    return;
  }
  for (const Field field : {Field::offload, Field::offload_optimizer, Field::offload_parameters,
                            Field::offload_activations, Field::activation_layers, Field::optimizer_fraction}) {
    given.remove(field);
  }
  offload = Offload{};
}

}  // namespace

void layers_of_chunks(std::int64_t layers, int pipeline, int virtual_pipeline, std::vector<int>& chunks) {
  const std::int64_t count = std::int64_t{pipeline} * virtual_pipeline;
  chunks.clear();
  if (count <= 0 || count > layers + 2) return;
  if (layers % count == 0) {
    chunks.assign(static_cast<std::size_t>(count), static_cast<int>(layers / count));
    return;
  }
  const std::int64_t share = (layers + 2) / count;
  const std::int64_t rest = (layers + 2) % count;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t here = share + (i >= 1 && i <= rest ? 1 : 0);
    if (i == 0 || i == count - 1) --here;
    chunks.push_back(static_cast<int>(here));
  }
  const bool empty_between =
      chunks.size() > 2 && std::find(chunks.begin() + 1, chunks.end() - 1, 0) != chunks.end() - 1;
  if (empty_between || chunks.front() < 0 || chunks.back() < 0) chunks.clear();
}

Draft search_base(const Draft& draft, const Run& run) {
  Draft base = draft;
  base.run.training.framework = run.training.framework;
  base.run.training.seq_length = run.training.seq_length;
  base.run.training.global_batch_size = run.training.global_batch_size;
  base.microbatches = 0;
  base.given |= FieldSet(Field::framework, Field::seq_length, Field::global_batch_size);
  return base;
}

Draft with_layout(const Draft& base, const Layout& layout) {
  Draft draft = base;
  put(layout, draft.run);
  FieldSet& given = draft.given;
  given |= FieldSet(Field::num_gpus, Field::tensor, Field::pipeline, Field::virtual_pipeline, Field::context,
                    Field::schedule, Field::micro_batch_size, Field::recompute, Field::attention);
  given |= FieldSet(Field::overlap_grad_reduce, Field::overlap_param_gather, Field::overlap_tp, Field::overlap_p2p);
  given.remove(Field::data);
  if (draft.run.model.has_experts()) given |= FieldSet(Field::expert, Field::expert_tensor);
  if (layout.tensor > 1) {
    given.add(Field::sequence_parallel);
  } else {
    given.remove(Field::sequence_parallel);
  }
  given.remove(layout.fsdp == Fsdp::none ? Field::fsdp : Field::zero_stage);
  given.add(layout.fsdp == Fsdp::none ? Field::zero_stage : Field::fsdp);
  if (layout.shard_group > 0) {
    given.add(Field::shard_group);
  } else if (!draft.run.parallel.hpz) {
    given.remove(Field::shard_group);
  }
  const std::int64_t layers = draft.run.model.layers();
  if (!base.given.has(Field::layers_per_stage) &&
      layers % (std::int64_t{layout.pipeline} * layout.virtual_pipeline) != 0) {
    layers_of_chunks(layers, layout.pipeline, layout.virtual_pipeline, draft.layers_per_stage);
    given.add(Field::layers_per_stage);
  }
  state_offload(draft);
  return draft;
}

RuleCounts for_each_layout(const Draft& base, const SearchSpace& space,
                           const std::function<void(const Layout&)>& visit) {
  Run run;
  resolve(base, run);
  SearchTree tree(base, run, space);
  Run scratch = run;
  RuleCounts illegal = tree.illegal;
  std::vector<Node> nodes;
  std::vector<Pipelining> pipelinings;
  for (std::size_t grid = 0; grid < tree.grids.size(); ++grid) {
    nodes.clear();
    tree.nodes(grid, scratch, nodes, illegal);
    for (const Node& node : nodes) {
      tree.pipelinings(node, pipelinings, illegal);
      for (const Pipelining& pipelining : pipelinings) {
        for (const Sharding& sharding : tree.shardings(node)) {
          tree.for_each_overlap(node, pipelining, sharding, visit);
        }
      }
    }
  }
  return illegal;
}

}  // namespace shardplan::plan
