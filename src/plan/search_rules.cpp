#include "search_rules.hpp"

#include <initializer_list>

namespace shardplan::plan {
namespace {

RuleSet rules(std::initializer_list<Rule> list) noexcept {
  RuleSet set;
  for (const Rule rule : list) add(set, rule);
  return set;
}

}  // namespace

const RuleSet& grid_rules() noexcept {
  static const RuleSet set = rules({Rule::cluster_size,
                                    Rule::node_shape,
                                    Rule::framework_degrees,
                                    Rule::single_node,
                                    Rule::stack_framework,
                                    Rule::tensor_heads,
                                    Rule::tensor_kv_heads,
                                    Rule::tensor_intermediate,
                                    Rule::experts_missing,
                                    Rule::expert_count,
                                    Rule::expert_tensor_missing,
                                    Rule::expert_tensor_width,
                                    Rule::moe_options,
                                    Rule::pipeline_layers,
                                    Rule::world_product,
                                    Rule::world_multiple,
                                    Rule::expert_world,
                                    Rule::context_framework,
                                    Rule::context_heads,
                                    Rule::sequence_context,
                                    Rule::sequence_positions,
                                    Rule::precision_gpu,
                                    Rule::fp8_recipe_gpu,
                                    Rule::peft_quant,
                                    Rule::peft_framework,
                                    Rule::peft_quant_tensor,
                                    Rule::peft_kbit});
  return set;
}
const RuleSet& node_rules() noexcept {
  static const RuleSet set = rules({Rule::sequence_tensor, Rule::batch_multiple, Rule::recompute_framework,
                                    Rule::recompute_modules, Rule::too_large});
  return set;
}
const RuleSet& pipelining_rules() noexcept {
  static const RuleSet set = rules({Rule::virtual_alone, Rule::virtual_framework, Rule::virtual_layers,
                                    Rule::schedule_framework, Rule::schedule_shape, Rule::schedule_microbatches});
  return set;
}
const RuleSet& sharding_rules() noexcept {
  static const RuleSet set =
      rules({Rule::zero_and_fsdp, Rule::zero_framework, Rule::fsdp_framework, Rule::zero_pipeline, Rule::zero_context,
             Rule::grad_sync_zero, Rule::zeropp_stage, Rule::shard_group_divides, Rule::fp8_param_gather,
             Rule::offload_optimizer, Rule::offload_parameters, Rule::offload_pair, Rule::offload_fraction});
  return set;
}

bool refuse(const RuleSet& broken, const RuleSet& level, RuleCounts& counts) noexcept {
  const RuleSet here = broken & level;
  if (here.none()) return false;
  for (std::size_t i = 0; i < rule_count; ++i) {
    if (!here[i]) continue;
    ++counts[i];
    break;
  }
  return true;
}

void refuse(Rule rule, RuleCounts& counts) noexcept { ++counts[static_cast<std::size_t>(rule)]; }

}  // namespace shardplan::plan
