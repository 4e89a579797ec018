#include "shardplan/plan/search_space.hpp"

#include <algorithm>
#include <tuple>

#include "search_tree.hpp"
#include "shardplan/schedule/shape.hpp"

namespace shardplan::plan {
namespace {

std::strong_ordering recompute_order(const Recompute& left, const Recompute& right) noexcept {
  const auto values = [](const Recompute& r) { return std::tuple(r.mode, r.n, r.modules); };
  return values(left) <=> values(right);
}

auto degrees_of(const LayoutChoice& c) noexcept {
  return std::tuple(c.num_gpus, c.tensor, c.pipeline, c.virtual_pipeline, c.context, c.expert, c.expert_tensor,
                    c.micro_batch_size, c.schedule, c.zero_stage, c.fsdp, c.shard_group);
}

/// Overlapped sorts before not overlapped.
auto options_of(const LayoutChoice& c) noexcept {
  return std::tuple(c.attention, !c.sequence_parallel, c.offload_optimizer, c.offload_parameters, c.offload_activations,
                    !c.overlap.grad_reduce, !c.overlap.param_gather, !c.overlap.tp, !c.overlap.p2p);
}

void state_offload(const LayoutChoice& choice, Draft& draft) {
  Offload& offload = draft.run.training.offload;
  offload.optimizer = choice.offload_optimizer;
  offload.parameters = choice.offload_parameters;
  offload.activations = choice.offload_activations;
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

std::strong_ordering order_of(const LayoutChoice& left, const LayoutChoice& right) noexcept {
  if (const auto order = degrees_of(left) <=> degrees_of(right); order != 0) return order;
  if (const auto order = recompute_order(left.recompute, right.recompute); order != 0) return order;
  return options_of(left) <=> options_of(right);
}

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

Draft with_layout(const Draft& base, const LayoutChoice& choice) {
  Draft draft = base;
  Parallel& parallel = draft.run.parallel;
  Training& training = draft.run.training;
  FieldSet& given = draft.given;
  draft.run.num_gpus = choice.num_gpus;
  parallel.tensor = choice.tensor;
  parallel.pipeline = choice.pipeline;
  parallel.virtual_pipeline = choice.virtual_pipeline;
  parallel.context = choice.context;
  parallel.expert = choice.expert;
  parallel.expert_tensor = choice.expert_tensor;
  parallel.sequence_parallel = choice.sequence_parallel;
  parallel.schedule = choice.schedule;
  given |= FieldSet(Field::num_gpus, Field::tensor, Field::pipeline, Field::virtual_pipeline, Field::context,
                    Field::schedule, Field::micro_batch_size, Field::recompute, Field::attention);
  given |= FieldSet(Field::overlap_grad_reduce, Field::overlap_param_gather, Field::overlap_tp, Field::overlap_p2p);
  given.remove(Field::data);
  if (draft.run.model.has_experts()) given |= FieldSet(Field::expert, Field::expert_tensor);
  if (choice.tensor > 1) {
    given.add(Field::sequence_parallel);
  } else {
    given.remove(Field::sequence_parallel);
  }
  parallel.zero_stage = choice.zero_stage;
  parallel.fsdp = choice.fsdp;
  given.remove(choice.fsdp == Fsdp::none ? Field::fsdp : Field::zero_stage);
  given.add(choice.fsdp == Fsdp::none ? Field::zero_stage : Field::fsdp);
  if (choice.shard_group > 0) {
    parallel.shard_group = choice.shard_group;
    given.add(Field::shard_group);
  } else if (!parallel.hpz) {
    given.remove(Field::shard_group);
  }
  const std::int64_t layers = draft.run.model.layers();
  if (!base.given.has(Field::layers_per_stage) &&
      layers % (std::int64_t{choice.pipeline} * choice.virtual_pipeline) != 0) {
    layers_of_chunks(layers, choice.pipeline, choice.virtual_pipeline, draft.layers_per_stage);
    given.add(Field::layers_per_stage);
  }
  training.micro_batch_size = choice.micro_batch_size;
  training.recompute = choice.recompute;
  training.attention = choice.attention;
  training.overlap = choice.overlap;
  state_offload(choice, draft);
  return draft;
}

LayoutChoice layout_choice_of(const Run& run) noexcept {
  const Parallel& parallel = run.parallel;
  const Training& training = run.training;
  LayoutChoice choice;
  choice.num_gpus = run.num_gpus;
  choice.tensor = parallel.tensor;
  choice.pipeline = parallel.pipeline;
  choice.virtual_pipeline = parallel.virtual_pipeline;
  choice.context = parallel.context;
  choice.expert = parallel.expert;
  choice.expert_tensor = parallel.expert_tensor;
  choice.micro_batch_size = training.micro_batch_size;
  choice.schedule = parallel.schedule;
  choice.zero_stage = parallel.zero_stage;
  choice.fsdp = parallel.fsdp;
  choice.shard_group = parallel.fsdp == Fsdp::hybrid_shard ? parallel.shard_group : 0;
  choice.recompute = training.recompute;
  choice.attention = training.attention;
  choice.sequence_parallel = parallel.sequence_parallel;
  choice.offload_optimizer = training.offload.optimizer;
  choice.offload_parameters = training.offload.parameters;
  choice.offload_activations = training.offload.activations;
  choice.overlap = training.overlap;
  return choice;
}

RuleCounts for_each_layout(const Draft& base, const SearchSpace& space,
                           const std::function<void(const LayoutChoice&)>& visit) {
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
