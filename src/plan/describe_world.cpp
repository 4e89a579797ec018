// GPUs, nodes, the framework's own limits and the product of the degrees.
#include <fmt/format.h>

#include "describe.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/plan/saturate.hpp"

namespace shardplan::plan {
namespace {

constexpr std::int64_t most_gpus = std::int64_t{1} << 20;

std::string replica_text(const Parallel& parallel) {
  return fmt::format("tensor {} x pipeline {} x context {}", parallel.tensor, parallel.pipeline, parallel.context);
}

/// "tensor is 8 and pipeline is 4"
std::string degrees_above_one(const Parallel& parallel) {
  std::vector<std::string> words;
  const auto add_degree = [&](const char* degree, int value) {
    if (value > 1) words.push_back(fmt::format("{} is {}", degree, value));
  };
  add_degree("tensor", parallel.tensor);
  add_degree("pipeline", parallel.pipeline);
  add_degree("context", parallel.context);
  add_degree("expert", parallel.expert);
  return join_words(words, "and");
}

Words describe_product(const Run& run) {
  const Parallel& parallel = run.parallel;
  const std::int64_t replica = saturating_product({parallel.tensor, parallel.pipeline, parallel.context});
  const std::int64_t product = saturating_product({replica, parallel.data});
  Words words;
  words.message = fmt::format("{}: {} x data {} = {} GPUs, but num_gpus is {}", parallel.data, replica_text(parallel),
                              parallel.data, product, run.num_gpus);
  if (parallel.context > 1) words.message += "; the context ranks share the sequences of one replica";
  if (run.num_gpus % replica == 0) {
    words.ways.push_back(set(Field::data, "null", fmt::format("it becomes {}", run.num_gpus / replica)));
  }
  const int node = run.cluster.gpus_per_node;
  if (product <= most_gpus && (product <= node || product % node == 0)) {
    words.ways.push_back(set(Field::num_gpus, std::to_string(product)));
  }
  return words;
}

}  // namespace

Words describe_world(Rule rule, const Subject& subject) {
  const Run& run = subject.run;
  const Parallel& parallel = run.parallel;
  const int node = run.cluster.gpus_per_node;
  switch (rule) {
    case Rule::cluster_size: {
      const std::int64_t gpus = saturating_product({run.cluster.num_nodes, node});
      return {
          fmt::format("{}: the cluster has {} nodes x {} GPUs = {}", run.num_gpus, run.cluster.num_nodes, node, gpus),
          say(fmt::format("at most {}, or leave num_nodes out of the cluster", gpus))};
    }
    case Rule::node_shape:
      return {fmt::format("{} is above one node and not a multiple of gpus_per_node {}", run.num_gpus, node),
              say(nearest_multiples(run.num_gpus, node, most_gpus))};
    case Rule::framework_degrees:
      if (!facts_of(run.training.framework).data_only) {
        return {fmt::format("\"{}\" keeps whole experts on every rank, but expert is {} and expert_tensor {}",
                            name(run.training.framework), parallel.expert, parallel.expert_tensor),
                {set(Field::expert, "1", Field::expert_tensor, "1"),
                 set(Field::framework, R"("megatron")", "splits experts too")}};
      }
      return {fmt::format("\"{}\" splits the batch only, but {}", name(run.training.framework),
                          degrees_above_one(parallel)),
              {set(Field::framework, R"("megatron")", "splits tensors, stages, sequences and experts"),
               set(Field::framework, "null")}};
    case Rule::single_node:
      return {fmt::format("{}: \"dp\" (torch.nn.DataParallel) is one process on one node, which has {} GPUs",
                          run.num_gpus, node),
              {set(Field::num_gpus, std::to_string(node), "the most"), set(Field::framework, R"("ddp")")}};
    case Rule::stack_framework:
      return {fmt::format("\"{}\" is a stack of {}, but the run's framework is {}", run.training.stack.name,
                          name(run.training.stack.framework), name(run.training.framework)),
              {set(Field::framework, fmt::format("\"{}\"", name(run.training.stack.framework))),
               set(Field::stack, "null", fmt::format("the stacks of {}: list stacks", name(run.training.framework)))}};
    case Rule::world_product: return describe_product(run);
    case Rule::world_multiple: {
      const std::int64_t replica = saturating_product({parallel.tensor, parallel.pipeline, parallel.context});
      return {fmt::format("{} is not a multiple of {} = {}", run.num_gpus, replica_text(parallel), replica),
              say(nearest_multiples(run.num_gpus, replica, most_gpus))};
    }
    default: return {};
  }
}

}  // namespace shardplan::plan
