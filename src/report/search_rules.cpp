// What each rule refuses, in words that follow a count.
#include "search_tables.hpp"

namespace shardplan::report {

std::string_view rule_words(plan::Rule rule) {
  using plan::Rule;
  switch (rule) {
    case Rule::cluster_size: return "more GPUs than the cluster has";
    case Rule::node_shape: return "broken nodes";
    case Rule::framework_degrees: return "degrees that the framework does not split by";
    case Rule::single_node: return "GPUs beyond the one process of dp";
    case Rule::stack_framework: return "a stack of another framework";
    case Rule::tensor_heads: return "attention heads % TP";
    case Rule::tensor_kv_heads: return "KV heads % TP";
    case Rule::tensor_intermediate: return "MLP width % TP";
    case Rule::experts_missing: return "expert parallelism of a model without experts";
    case Rule::expert_count: return "experts % EP";
    case Rule::expert_tensor_missing: return "expert tensor parallelism of a model without experts";
    case Rule::expert_tensor_width: return "expert width % ETP";
    case Rule::moe_options: return "options of experts in a model without";
    case Rule::virtual_alone: return "virtual stages without a pipeline";
    case Rule::virtual_framework: return "virtual stages that the framework has not";
    case Rule::layers_list_length: return "layers_per_stage of another length";
    case Rule::layers_list_sum: return "layers_per_stage of another sum";
    case Rule::layers_list_chunks: return "a stage's layers % V";
    case Rule::layers_list_empty: return "stages without layers";
    case Rule::pipeline_layers: return "more stages than layers";
    case Rule::virtual_layers: return "layers % (PP x V)";
    case Rule::world_product: return "TP x PP x CP x DP that is not the GPUs";
    case Rule::world_multiple: return "GPUs % (TP x PP x CP)";
    case Rule::expert_world: return "GPUs % (EP x ETP x PP)";
    case Rule::zero_and_fsdp: return "ZeRO beside FSDP";
    case Rule::zero_framework: return "ZeRO stages that the framework has not";
    case Rule::fsdp_framework: return "FSDP that the framework has not";
    case Rule::zero_pipeline: return "ZeRO-2/3 in DeepSpeed's pipeline";
    case Rule::zero_context: return "ZeRO over context ranks";
    case Rule::grad_sync_zero: return "grad_sync that the ZeRO stage has not";
    case Rule::zeropp_stage: return "ZeRO++ outside DeepSpeed's ZeRO-3";
    case Rule::shard_group_unused: return "shard groups of what has none";
    case Rule::shard_group_divides: return "(DP x CP) % shard_group";
    case Rule::context_framework: return "context parallelism that DeepSpeed has not";
    case Rule::context_heads: return "heads % (TP x CP)";
    case Rule::sequence_context: return "sequence % (2 CP)";
    case Rule::sequence_tensor: return "sequence % (CP x TP)";
    case Rule::sequence_positions: return "sequences beyond the position table";
    case Rule::schedule_framework: return "schedules that the framework has not";
    case Rule::schedule_shape: return "stages or chunks that the schedule cannot have";
    case Rule::batch_multiple: return "batch % (mbs x DP)";
    case Rule::schedule_microbatches: return "microbatches that the schedule cannot run";
    case Rule::interleaved_two: return "two interleaved stages without overlapped p2p";
    case Rule::precision_gpu: return "a precision that the GPU has not";
    case Rule::fp8_param_gather: return "fp8 weights that nobody gathers";
    case Rule::fp8_recipe_gpu: return "an fp8 recipe that the GPU has not";
    case Rule::peft_framework: return "adapters that the framework does not train";
    case Rule::peft_quant: return "QLoRA without quantised weights";
    case Rule::peft_quant_tensor: return "quantised weights split by TP";
    case Rule::peft_kbit: return "k-bit preparation of weights of other kinds";
    case Rule::offload_optimizer: return "offload of a whole optimizer";
    case Rule::offload_parameters: return "offload of whole parameters";
    case Rule::offload_pair: return "offload of one without the other";
    case Rule::offload_fraction: return "offload of a part of the optimizer";
    case Rule::offload_layers: return "offload of more layers than a stage has";
    case Rule::recompute_framework: return "recomputation that the framework has not";
    case Rule::recompute_modules: return "recomputation of modules that the model has not";
    case Rule::recompute_layers: return "recomputation of more layers than a stage has";
    case Rule::too_large: return "bytes beyond 2^60";
  }
  return {};
}

}  // namespace shardplan::report
