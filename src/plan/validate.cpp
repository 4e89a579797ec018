#include "shardplan/plan/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "describe.hpp"

namespace shardplan::plan {
namespace {

/// What a rule reads, and what it calls wrong: `blamed` is pointed at, and it and `also` are no longer relied on.
struct RuleFields {
  Rule rule;
  Field blamed;
  FieldSet needs;
  FieldSet also = {};
};

constexpr FieldSet layers_of_list(Field::model, Field::layers_per_stage, Field::pipeline, Field::virtual_pipeline);
constexpr FieldSet offload_needs(Field::offload, Field::offload_optimizer, Field::offload_parameters,
                                 Field::offload_activations, Field::framework, Field::zero_stage);

using F = Field;

constexpr std::array<RuleFields, rule_count> rule_fields = {{
    {Rule::cluster_size, F::num_gpus, FieldSet(F::cluster, F::num_gpus)},
    {Rule::node_shape, F::num_gpus, FieldSet(F::cluster, F::num_gpus)},
    {Rule::framework_degrees, F::framework, FieldSet(F::framework, F::tensor, F::pipeline, F::context, F::expert)},
    {Rule::single_node, F::num_gpus, FieldSet(F::framework, F::num_gpus, F::cluster)},
    {Rule::stack_framework, F::stack, FieldSet(F::stack, F::framework)},
    {Rule::tensor_heads, F::tensor, FieldSet(F::model, F::tensor)},
    {Rule::tensor_kv_heads, F::tensor, FieldSet(F::model, F::tensor)},
    {Rule::tensor_intermediate, F::tensor, FieldSet(F::model, F::tensor)},
    {Rule::experts_missing, F::expert, FieldSet(F::model, F::expert)},
    {Rule::expert_count, F::expert, FieldSet(F::model, F::expert)},
    {Rule::expert_tensor_missing, F::expert_tensor, FieldSet(F::model, F::expert_tensor)},
    {Rule::expert_tensor_width, F::expert_tensor, FieldSet(F::model, F::expert_tensor)},
    {Rule::moe_options, F::moe_imbalance, FieldSet(F::model, F::moe_imbalance, F::capacity_factor)},
    {Rule::virtual_alone, F::virtual_pipeline, FieldSet(F::virtual_pipeline, F::pipeline)},
    {Rule::virtual_framework, F::virtual_pipeline, FieldSet(F::virtual_pipeline, F::framework)},
    {Rule::layers_list_length, F::layers_per_stage, layers_of_list},
    {Rule::layers_list_sum, F::layers_per_stage, layers_of_list},
    {Rule::layers_list_chunks, F::layers_per_stage, layers_of_list},
    {Rule::layers_list_empty, F::layers_per_stage, layers_of_list},
    {Rule::pipeline_layers, F::pipeline, FieldSet(F::model, F::layers_per_stage, F::pipeline)},
    {Rule::virtual_layers, F::virtual_pipeline, layers_of_list},
    {Rule::world_product, F::data, FieldSet(F::num_gpus, F::tensor, F::pipeline, F::context, F::data),
     FieldSet(F::num_gpus)},
    {Rule::world_multiple, F::num_gpus, FieldSet(F::num_gpus, F::tensor, F::pipeline, F::context), FieldSet(F::data)},
    {Rule::expert_world, F::expert,
     FieldSet(F::num_gpus, F::tensor, F::pipeline, F::context, F::expert, F::expert_tensor)},
    {Rule::zero_and_fsdp, F::zero_stage, FieldSet(F::zero_stage, F::fsdp), FieldSet(F::fsdp)},
    {Rule::zero_framework, F::zero_stage, FieldSet(F::zero_stage, F::framework)},
    {Rule::fsdp_framework, F::fsdp, FieldSet(F::fsdp, F::framework)},
    {Rule::zero_pipeline, F::zero_stage, FieldSet(F::zero_stage, F::framework, F::pipeline)},
    {Rule::zero_context, F::zero_stage, FieldSet(F::zero_stage, F::framework, F::context)},
    {Rule::grad_sync_zero, F::grad_sync, FieldSet(F::grad_sync, F::zero_stage, F::framework)},
    {Rule::zeropp_stage, F::hpz, FieldSet(F::hpz, F::qwz, F::qgz, F::zero_stage, F::framework)},
    {Rule::shard_group_unused, F::shard_group, FieldSet(F::shard_group, F::fsdp, F::hpz)},
    {Rule::shard_group_divides, F::shard_group, FieldSet(F::shard_group, F::fsdp, F::hpz, F::data, F::context)},
    {Rule::context_framework, F::context_comm, FieldSet(F::context, F::context_comm, F::framework)},
    {Rule::context_heads, F::context, FieldSet(F::context, F::context_comm, F::tensor, F::model)},
    {Rule::sequence_context, F::seq_length, FieldSet(F::seq_length, F::context, F::context_comm)},
    {Rule::sequence_tensor, F::seq_length, FieldSet(F::seq_length, F::context, F::tensor, F::sequence_parallel)},
    {Rule::sequence_positions, F::seq_length, FieldSet(F::seq_length, F::model)},
    {Rule::schedule_framework, F::schedule, FieldSet(F::schedule, F::framework, F::pipeline)},
    {Rule::schedule_shape, F::schedule, FieldSet(F::schedule, F::pipeline, F::virtual_pipeline)},
    {Rule::batch_multiple, F::global_batch_size, FieldSet(F::global_batch_size, F::micro_batch_size, F::data)},
    {Rule::schedule_microbatches, F::global_batch_size,
     FieldSet(F::global_batch_size, F::micro_batch_size, F::data, F::schedule, F::pipeline, F::virtual_pipeline,
              F::framework)},
    {Rule::interleaved_two, F::overlap_p2p, FieldSet(F::overlap_p2p, F::schedule, F::pipeline, F::framework)},
    {Rule::precision_gpu, F::precision, FieldSet(F::precision, F::cluster)},
    {Rule::fp8_param_gather, F::fp8_param_gather,
     FieldSet(F::fp8_param_gather, F::fp8_recipe, F::precision, F::framework, F::zero_stage, F::fsdp)},
    {Rule::fp8_recipe_gpu, F::fp8_recipe, FieldSet(F::fp8_recipe, F::precision, F::cluster)},
    {Rule::peft_framework, F::peft, FieldSet(F::peft, F::framework)},
    {Rule::peft_quant, F::peft_quant, FieldSet(F::peft, F::peft_method, F::peft_quant)},
    {Rule::peft_quant_tensor, F::peft_quant, FieldSet(F::peft, F::peft_method, F::peft_quant, F::tensor, F::framework)},
    {Rule::peft_kbit, F::kbit_preparation, FieldSet(F::peft, F::peft_method, F::peft_quant, F::kbit_preparation)},
    {Rule::offload_optimizer, F::offload_optimizer, offload_needs},
    {Rule::offload_parameters, F::offload_parameters, offload_needs},
    {Rule::offload_pair, F::offload, offload_needs},
    {Rule::offload_fraction, F::optimizer_fraction, offload_needs},
    {Rule::offload_layers, F::activation_layers,
     FieldSet(F::offload, F::offload_activations, F::activation_layers, F::model, F::layers_per_stage, F::pipeline,
              F::virtual_pipeline)},
    {Rule::recompute_framework, F::recompute, FieldSet(F::recompute, F::framework)},
    {Rule::recompute_modules, F::recompute, FieldSet(F::recompute, F::model)},
    {Rule::recompute_layers, F::recompute,
     FieldSet(F::recompute, F::model, F::layers_per_stage, F::pipeline, F::virtual_pipeline)},
    {Rule::too_large, F::global_batch_size,
     FieldSet(F::global_batch_size, F::micro_batch_size, F::data, F::seq_length, F::model, F::attention,
              F::moe_imbalance)},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < rule_count; ++i) {
    if (rule_fields[i].rule != static_cast<Rule>(i)) return false;
  }
  return true;
}
static_assert(in_order());

const RuleFields& fields_of(Rule rule) noexcept { return rule_fields[static_cast<std::size_t>(rule)]; }

void check_list(const Draft& draft, const Run& run, RuleSet& broken) {
  const std::vector<int>& list = draft.layers_per_stage;
  const auto p = static_cast<std::size_t>(run.parallel.pipeline);
  const auto v = static_cast<std::size_t>(run.parallel.virtual_pipeline);
  if (list.size() != p && list.size() != p * v) {
    add(broken, Rule::layers_list_length);
    return;
  }
  const std::int64_t sum = std::accumulate(list.begin(), list.end(), std::int64_t{0});
  if (sum != run.model.layers()) add(broken, Rule::layers_list_sum);
  const bool per_stage = list.size() == p && v > 1;
  if (per_stage && std::any_of(list.begin(), list.end(), [&](int n) { return n % static_cast<int>(v) != 0; })) {
    add(broken, Rule::layers_list_chunks);
  }
  const std::vector<int>& chunks = run.parallel.layers_per_chunk;
  if (chunks.size() > 2 && std::find(chunks.begin() + 1, chunks.end() - 1, 0) != chunks.end() - 1) {
    add(broken, Rule::layers_list_empty);
  }
}

/// The pointer that a rule's diagnostic has for this run, where it is not simply the blamed field's.
std::string_view pointer_for(Rule rule, const Run& run) {
  const Training& training = run.training;
  if (rule == Rule::moe_options && training.moe_imbalance == 1) return name(Field::capacity_factor);
  if (rule == Rule::zeropp_stage && !run.parallel.hpz) return name(run.parallel.qwz ? Field::qwz : Field::qgz);
  if (rule == Rule::too_large) {
    constexpr double most_tokens = 68719476736.0;  // 2^36 a microbatch: beyond it the sequence is what is too long
    const auto seq = static_cast<double>(training.seq_length);
    const double tokens = seq * static_cast<double>(training.micro_batch_size);
    if (tokens > most_tokens || training.attention == AttentionKernel::eager) return name(Field::seq_length);
  }
  return name(fields_of(rule).blamed);
}

Diagnostic describe_with(Rule rule, const Subject& subject) {
  Words words;
  for (const auto describe_subject :
       {describe_world, describe_model_split, describe_sharding, describe_schedule, describe_training}) {
    words = describe_subject(rule, subject);
    if (!words.message.empty()) break;
  }
  std::string text = text_of(words.ways);
  return {"",
          std::string(pointer_for(rule, subject.run)),
          std::move(words.message),
          std::move(text),
          0,
          0,
          std::move(words.ways)};
}

}  // namespace

Field blamed_field(Rule rule) noexcept { return fields_of(rule).blamed; }

RuleSet broken_rules(const Draft& draft, const Run& run) {
  const ModelFacts facts = facts_of(run.model);
  const bool has_list = draft.given.has(Field::layers_per_stage);
  RuleSet broken = broken_layout_rules(facts, rule_inputs_of(run, !has_list)) | broken_training_rules(facts, run);
  if (has_list) check_list(draft, run, broken);
  const bool group_used = run.parallel.fsdp == Fsdp::hybrid_shard || run.parallel.hpz;
  if (draft.given.has(Field::shard_group) && !group_used) add(broken, Rule::shard_group_unused);
  // Without a stated `data` only the multiple can be wrong.
  if (!draft.given.has(Field::data)) broken.reset(static_cast<std::size_t>(Rule::world_product));
  return broken;
}

Diagnostics validate(const Draft& draft, const Run& run) {
  Diagnostics problems;
  const RuleSet broken = broken_rules(draft, run);
  if (broken.none()) return problems;
  const ModelFacts facts = facts_of(run.model);
  const Subject subject{run, facts, draft.layers_per_stage};
  FieldSet unusable = draft.unusable;
  for (const RuleFields& fields : rule_fields) {
    if (!contains(broken, fields.rule) || inputs_of(fields.needs, draft.given).meets(unusable)) continue;
    problems.push_back(describe_with(fields.rule, subject));
    unusable.add(fields.blamed);
    unusable |= fields.also;
  }
  return problems;
}

Diagnostic describe(Rule rule, const Run& run, std::span<const int> layers_per_stage) {
  const ModelFacts facts = facts_of(run.model);
  return describe_with(rule, {run, facts, layers_per_stage});
}

Warnings run_warnings(const Run& run) {
  Warnings warnings;
  const Parallel& parallel = run.parallel;
  const auto warn = [&](const char* code, Field field, std::string message) {
    warnings.push_back({code, std::string(name(field)), std::move(message)});
  };
  const ModelFacts facts = facts_of(run.model);
  std::int64_t fewest_kv_heads = parallel.tensor;
  for (std::size_t i = 0; i < facts.kv_heads_count; ++i) fewest_kv_heads = std::min(fewest_kv_heads, facts.kv_heads[i]);
  if (fewest_kv_heads < parallel.tensor) {
    warn("kv_heads_replicated", Field::tensor,
         fmt::format("num_key_value_heads {} is below tensor {}: {} ranks hold a copy of each KV head; tensor <= {} "
                     "avoids it",
                     fewest_kv_heads, parallel.tensor, parallel.tensor / fewest_kv_heads, fewest_kv_heads));
  }
  if (run.model.has_experts() && parallel.tensor > 1 && !parallel.sequence_parallel) {
    warn("moe_needs_sequence_parallel", Field::sequence_parallel,
         fmt::format("experts with tensor {} without sequence_parallel: every rank of the tensor group would route the "
                     "same tokens; Megatron-LM refuses to train so",
                     parallel.tensor));
  }
  const std::int64_t longest = run.model.max_position_embeddings;
  if (run.model.position == Position::rope && longest > 0 && run.training.seq_length > longest) {
    warn("rope_beyond_max_position", Field::seq_length,
         fmt::format("{} is beyond the model's max_position_embeddings {}: rotary positions go on, quality may not",
                     run.training.seq_length, longest));
  }
  const Gpu& gpu = run.cluster.gpu;
  if (!runs_attention(gpu, run.training.attention)) {
    const bool first = run.training.attention == AttentionKernel::flash_v1;
    warn("flash_needs_ampere", Field::attention,
         fmt::format("attention \"{}\" needs compute capability {} and {} has {}.{}: the numbers are of a kernel that "
                     "does not run there; attention \"eager\" does",
                     name(run.training.attention), first ? "7.5" : "8.0 (Ampere)", gpu.name, gpu.major, gpu.minor));
  }
  if (run.training.peft.active() && run.training.peft.targets == 0) {
    warn("nothing_trainable", Field::peft_targets, "no matrix has an adapter: the model is frozen");
  }
  if (parallel.pipeline > 1 && parallel.zero_stage >= 2) {
    warn("zero_repeats_collectives", Field::zero_stage,
         fmt::format("with pipeline {} every one of the {} microbatches repeats the {} of zero_stage {}; DeepSpeed "
                     "refuses it, zero_stage 1 avoids it",
                     parallel.pipeline, run.microbatches(),
                     parallel.zero_stage == 2 ? "gradient reduction" : "weight gathering and gradient reduction",
                     parallel.zero_stage));
  }
  return warnings;
}

}  // namespace shardplan::plan
