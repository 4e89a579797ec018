// How a model's heads, widths, experts and layers are cut.
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>

#include "describe.hpp"
#include "shardplan/plan/saturate.hpp"

namespace shardplan::plan {
namespace {

bool tensor_fits(const ModelFacts& facts, std::int64_t tensor) {
  if (facts.heads % tensor != 0 || facts.intermediate % tensor != 0) return false;
  for (std::size_t i = 0; i < facts.kv_heads_count; ++i) {
    if (facts.kv_heads[i] % tensor != 0 && tensor % facts.kv_heads[i] != 0) return false;
  }
  return true;
}

/// " (8 GPUs per node allow 1, 2, 4, 8)"
std::string tensor_choices(const Subject& subject) {
  const int node = subject.run.cluster.gpus_per_node;
  std::vector<std::int64_t> legal;
  for (std::int64_t candidate = 1; candidate <= std::min<std::int64_t>(node, subject.facts.heads); ++candidate) {
    if (tensor_fits(subject.facts, candidate)) legal.push_back(candidate);
  }
  return fmt::format(" ({} GPUs per node allow {})", node, join(legal));
}

/// The width that tensor does not divide, named.
std::string odd_width(const Model& model, std::int64_t tensor) {
  for (const LayerKind& kind : model.kinds) {
    const MlpShape& mlp = kind.mlp;
    if (mlp.intermediate % tensor != 0) return fmt::format("intermediate_size {}", mlp.intermediate);
    if (mlp.shared_intermediate % tensor != 0) {
      return fmt::format("the shared experts' width {}", mlp.shared_intermediate);
    }
    if (mlp.parallel_dense_intermediate % tensor != 0) {
      return fmt::format("the dense MLP's width {}", mlp.parallel_dense_intermediate);
    }
  }
  return "the MLP's widths";
}

/// "3 does not divide WHAT 8 (1, 2, 4, 8 do)"
std::string not_a_divisor(std::int64_t value, const std::string& what, std::int64_t number) {
  return fmt::format("{} does not divide {} {} ({} do)", value, what, number, join(divisors_near(number, value)));
}

/// Layers of stages whose ends are lighter, since they carry embedding, head and MTP layers: "[12,12,12,11]". A stage
/// that is short of a layer is the last one first (the head's product outweighs the embedding's look-up), then the
/// first; an MTP layer counts as a layer of the last stage.
std::string balanced_split(const Model& model, std::int64_t layers, int pipeline) {
  constexpr int longest_list = 64;
  if (pipeline < 2 || pipeline > longest_list || layers < pipeline) return {};
  const std::int64_t extra = std::min<std::int64_t>(model.mtp_layers, layers - pipeline);
  const std::int64_t all = layers + extra;
  std::vector<std::int64_t> stages(static_cast<std::size_t>(pipeline), all / pipeline);
  std::int64_t rest = all % pipeline;
  // The stages between the ends take one more each, from the second on; then the first, and the last at the end.
  for (std::size_t i = 1; i + 1 < stages.size() && rest > 0; ++i, --rest) ++stages[i];
  if (rest > 0) ++stages.front();
  // What the last stage has beside decoder layers; should it have nothing else, its neighbours take over.
  stages.back() -= extra;
  for (std::size_t i = stages.size() - 1; stages.back() < 1 && i > 0; --i) {
    --stages[i - 1];
    ++stages.back();
  }
  std::string list;
  for (const std::int64_t count : stages) list += (list.empty() ? "[" : ",") + std::to_string(count);
  return list + "]";
}

/// Divisors of the experts that the GPUs of this layout have room for.
Words describe_expert_count(const Subject& subject) {
  const Parallel& parallel = subject.run.parallel;
  const std::int64_t others = saturating_product({parallel.expert_tensor, parallel.pipeline});
  std::vector<std::int64_t> legal;
  for (std::int64_t d = 1; d <= std::min<std::int64_t>(subject.facts.experts, subject.run.num_gpus); ++d) {
    if (subject.facts.experts % d == 0 && subject.run.num_gpus % saturating_product({d, others}) == 0) {
      legal.push_back(d);
    }
  }
  return {fmt::format(
      "{} does not divide num_experts {}{}", parallel.expert, subject.facts.experts,
      legal.empty() ? std::string() : fmt::format(" ({} do, and fit {} GPUs)", join(legal), subject.run.num_gpus))};
}

Words describe_expert_world(const Subject& subject) {
  const Parallel& parallel = subject.run.parallel;
  const std::int64_t others = saturating_product({parallel.expert_tensor, parallel.pipeline});
  std::vector<std::int64_t> legal;
  for (const std::int64_t candidate : divisors_near(subject.facts.experts, parallel.expert)) {
    const std::int64_t ranks = saturating_product({candidate, others});
    assert(ranks > 0);
    if (subject.run.num_gpus % ranks == 0) legal.push_back(candidate);
  }
  return {fmt::format("{}: expert {} x expert_tensor {} x pipeline {} = {} does not divide num_gpus {}",
                      parallel.expert, parallel.expert, parallel.expert_tensor, parallel.pipeline,
                      saturating_product({parallel.expert, others}), subject.run.num_gpus),
          say(legal.empty() ? std::string() : fmt::format("expert may be {}", join(legal)))};
}

Words describe_list(Rule rule, const Subject& subject) {
  const Parallel& parallel = subject.run.parallel;
  const std::span<const int> list = subject.layers_per_stage;
  const std::int64_t layers = subject.facts.layers;
  const int p = parallel.pipeline;
  const int v = parallel.virtual_pipeline;
  const std::int64_t chunks = saturating_product({p, v});
  switch (rule) {
    case Rule::layers_list_length: {
      std::string wanted = fmt::format("pipeline {} wants {} entries", p, p);
      if (v > 1) wanted += fmt::format(", or {} (pipeline x virtual_pipeline {})", chunks, v);
      return {fmt::format("a list of {}, but {}", list.size(), wanted),
              {set(Field::layers_per_stage, "null", "equal shares")}};
    }
    case Rule::layers_list_sum:
      return {fmt::format("sums to {}, but num_hidden_layers is {}",
                          std::accumulate(list.begin(), list.end(), std::int64_t{0}), layers)};
    case Rule::layers_list_chunks: {
      const auto odd = std::find_if(list.begin(), list.end(), [&](int n) { return n % v != 0; });
      return {fmt::format("the {} layers of stage {} do not divide into virtual_pipeline {} chunks",
                          odd == list.end() ? 0 : *odd, odd - list.begin(), v),
              say(fmt::format("give {} entries, one a chunk in model order", chunks))};
    }
    case Rule::layers_list_empty: {
      const std::vector<int>& filled = parallel.layers_per_chunk;
      const auto empty = filled.size() > 2 ? std::find(filled.begin() + 1, filled.end() - 1, 0) : filled.begin();
      std::string way_out;
      if (layers % p == 0) {
        way_out = fmt::format("equal chunks of the {} layers of a stage: virtual_pipeline {}", layers / p,
                              join(divisors_near(layers / p, v)));
      }
      return {fmt::format("chunk {} of pipeline {} x virtual_pipeline {} = {} has none of the {} layers; only the "
                          "first (embedding) and the last (head) may be without",
                          empty - filled.begin(), p, v, chunks, layers),
              say(way_out)};
    }
    default: return {};
  }
}

}  // namespace

Words describe_model_split(Rule rule, const Subject& subject) {
  const Run& run = subject.run;
  const Parallel& parallel = run.parallel;
  const ModelFacts& facts = subject.facts;
  switch (rule) {
    case Rule::tensor_heads:
      return {fmt::format("{} does not divide num_attention_heads {}{}", parallel.tensor, facts.heads,
                          tensor_choices(subject))};
    case Rule::tensor_kv_heads: {
      std::int64_t odd = 0;
      for (std::size_t i = 0; i < facts.kv_heads_count; ++i) {
        if (facts.kv_heads[i] % parallel.tensor != 0 && parallel.tensor % facts.kv_heads[i] != 0)
          odd = facts.kv_heads[i];
      }
      if (odd == 0) {
        return {fmt::format("{} does not divide num_key_value_heads {}, and {} does not repeat KV heads",
                            parallel.tensor, facts.kv_heads[0], name(run.training.framework)),
                {set(Field::tensor, std::to_string(std::gcd(facts.kv_heads[0], std::int64_t{parallel.tensor}))),
                 set(Field::framework, R"("megatron")", "repeats them")}};
      }
      return {fmt::format("{} neither divides num_key_value_heads {} nor is a multiple of it{}", parallel.tensor, odd,
                          tensor_choices(subject))};
    }
    case Rule::tensor_intermediate:
      return {fmt::format("{} does not divide {}{}", parallel.tensor, odd_width(run.model, parallel.tensor),
                          tensor_choices(subject))};
    case Rule::experts_missing:
      return {fmt::format("{}: the model has no experts", parallel.expert), {set(Field::expert, "1")}};
    case Rule::expert_count: return describe_expert_count(subject);
    case Rule::expert_tensor_missing:
      return {fmt::format("{}: the model has no experts", parallel.expert_tensor), {set(Field::expert_tensor, "1")}};
    case Rule::expert_tensor_width:
      return {not_a_divisor(parallel.expert_tensor, "an expert's width", facts.expert_intermediate)};
    case Rule::moe_options: {
      const bool imbalance = run.training.moe_imbalance != 1;
      return {fmt::format("{}: the model has no experts",
                          imbalance ? run.training.moe_imbalance : run.training.capacity_factor.value_or(0)),
              {set(imbalance ? Field::moe_imbalance : Field::capacity_factor, "null")}};
    }
    case Rule::pipeline_layers: {
      Words words{not_a_divisor(parallel.pipeline, "num_hidden_layers", facts.layers) + "; or give layers_per_stage"};
      const std::string split = balanced_split(run.model, facts.layers, parallel.pipeline);
      if (!split.empty() && parallel.virtual_pipeline == 1) words.ways.push_back(set(Field::layers_per_stage, split));
      return words;
    }
    case Rule::virtual_layers: {
      const std::int64_t stage = facts.layers / parallel.pipeline;
      return {fmt::format("{} does not divide the {} layers of a stage (num_hidden_layers {} / pipeline {}; {} do)",
                          parallel.virtual_pipeline, stage, facts.layers, parallel.pipeline,
                          join(divisors_near(stage, parallel.virtual_pipeline))),
              say("or give layers_per_stage, one count a chunk in model order")};
    }
    case Rule::expert_world: return describe_expert_world(subject);
    default: return describe_list(rule, subject);
  }
}

}  // namespace shardplan::plan
