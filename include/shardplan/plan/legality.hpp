// Which runs are legal, as codes: checks over plain values that neither allocate nor throw. validate.hpp has the words.
//
// Sources of the rules: Megatron-LM (arguments.py, schedules.py, transformer_config.py), DeepSpeed (engine, zero,
// pipe), PyTorch (FSDP, torch.distributed.pipelining), torchtitan, PEFT and bitsandbytes.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "shardplan/core/layout.hpp"
#include "shardplan/core/names.hpp"
#include "shardplan/core/run.hpp"

namespace shardplan::plan {

/// In the order in which they are checked: a rule may take those before it for granted.
enum class Rule : std::uint8_t {
  cluster_size,           ///< more GPUs than the cluster's nodes have
  node_shape,             ///< above one node, whole nodes
  framework_degrees,      ///< ddp and dp split data only
  single_node,            ///< dp is one process
  stack_framework,        ///< a stack belongs to a family of frameworks
  tensor_heads,           ///< tensor divides the attention heads
  tensor_kv_heads,        ///< tensor divides the KV heads, or they divide it
  tensor_intermediate,    ///< tensor divides the MLP's widths
  experts_missing,        ///< expert parallelism of a dense model
  expert_count,           ///< expert divides the experts
  expert_tensor_missing,  ///< expert_tensor of a dense model
  expert_tensor_width,    ///< expert_tensor divides an expert's width
  moe_options,            ///< capacity or imbalance of a dense model
  virtual_alone,          ///< virtual_pipeline without a pipeline
  virtual_framework,      ///< DeepSpeed has no virtual stages
  layers_list_length,     ///< layers_per_stage has pipeline or pipeline x virtual_pipeline entries
  layers_list_sum,        ///< ... that sum to the layers
  layers_list_chunks,     ///< a stage's entry divides over its chunks
  layers_list_empty,      ///< only the chunks of the embedding and of the head may have no layer
  pipeline_layers,        ///< pipeline divides the layers
  virtual_layers,         ///< virtual_pipeline divides a stage's layers
  world_product,          ///< tensor x pipeline x context x data = num_gpus
  world_multiple,         ///< tensor x pipeline x context divides num_gpus
  expert_world,           ///< expert x expert_tensor x pipeline divides num_gpus
  zero_and_fsdp,          ///< one or the other
  zero_framework,         ///< the framework has this stage
  fsdp_framework,         ///< the framework has FSDP
  zero_pipeline,          ///< DeepSpeed's pipeline engine: stage 0 or 1
  zero_context,           ///< nanotron shards over data, not over context
  grad_sync_zero,         ///< DeepSpeed stage 2 and 3 reduce every microbatch
  zeropp_stage,           ///< ZeRO++ is DeepSpeed's, stage 3
  shard_group_unused,     ///< shard_group is for hybrid_shard and hpZ
  shard_group_divides,    ///< it divides data x context
  context_framework,      ///< DeepSpeed's context parallelism is all-to-all
  context_heads,          ///< all-to-all: tensor x context divides the heads
  sequence_context,       ///< 2 x context (all-to-all: context) divides the sequence
  sequence_tensor,        ///< context x tensor divides it with sequence_parallel
  sequence_positions,     ///< a learned position table is long enough
  schedule_framework,     ///< the framework has the schedule
  schedule_shape,         ///< stages and chunks that the schedule needs
  batch_multiple,         ///< micro_batch_size x data divides global_batch_size
  schedule_microbatches,  ///< microbatches that the schedule needs
  interleaved_two,        ///< Megatron: two interleaved stages need overlapped p2p
  precision_gpu,          ///< the GPU computes in it
  fp8_param_gather,       ///< who gathers fp8 weights
  fp8_recipe_gpu,         ///< the GPU has the recipe's formats
  peft_framework,         ///< the framework trains adapters
  peft_quant,             ///< QLoRA has a quantised base
  peft_quant_tensor,      ///< quantised weights are not split by tensor parallelism
  peft_kbit,              ///< k-bit preparation of a base that is not quantised by bitsandbytes
  offload_optimizer,      ///< the framework can keep the optimizer there
  offload_parameters,     ///< ... the parameters
  offload_pair,           ///< FSDP offloads parameters and optimizer together
  offload_fraction,       ///< ... only a part of the optimizer
  offload_layers,         ///< activation_layers without activations, or above a stage's layers
  recompute_framework,    ///< the framework recomputes so
  recompute_modules,      ///< the model has these modules
  recompute_layers,       ///< full:N and every:K within a stage's layers
  too_large               ///< byte counts of the run stay below 2^60
};
inline constexpr std::size_t rule_count = static_cast<std::size_t>(Rule::too_large) + 1;

}  // namespace shardplan::plan

namespace shardplan {
template <>
inline constexpr std::array<std::string_view, plan::rule_count> names_of<plan::Rule> = {"cluster_size",
                                                                                        "node_shape",
                                                                                        "framework_degrees",
                                                                                        "single_node",
                                                                                        "stack_framework",
                                                                                        "tensor_heads",
                                                                                        "tensor_kv_heads",
                                                                                        "tensor_intermediate",
                                                                                        "experts_missing",
                                                                                        "expert_count",
                                                                                        "expert_tensor_missing",
                                                                                        "expert_tensor_width",
                                                                                        "moe_options",
                                                                                        "virtual_alone",
                                                                                        "virtual_framework",
                                                                                        "layers_list_length",
                                                                                        "layers_list_sum",
                                                                                        "layers_list_chunks",
                                                                                        "layers_list_empty",
                                                                                        "pipeline_layers",
                                                                                        "virtual_layers",
                                                                                        "world_product",
                                                                                        "world_multiple",
                                                                                        "expert_world",
                                                                                        "zero_and_fsdp",
                                                                                        "zero_framework",
                                                                                        "fsdp_framework",
                                                                                        "zero_pipeline",
                                                                                        "zero_context",
                                                                                        "grad_sync_zero",
                                                                                        "zeropp_stage",
                                                                                        "shard_group_unused",
                                                                                        "shard_group_divides",
                                                                                        "context_framework",
                                                                                        "context_heads",
                                                                                        "sequence_context",
                                                                                        "sequence_tensor",
                                                                                        "sequence_positions",
                                                                                        "schedule_framework",
                                                                                        "schedule_shape",
                                                                                        "batch_multiple",
                                                                                        "schedule_microbatches",
                                                                                        "interleaved_two",
                                                                                        "precision_gpu",
                                                                                        "fp8_param_gather",
                                                                                        "fp8_recipe_gpu",
                                                                                        "peft_framework",
                                                                                        "peft_quant",
                                                                                        "peft_quant_tensor",
                                                                                        "peft_kbit",
                                                                                        "offload_optimizer",
                                                                                        "offload_parameters",
                                                                                        "offload_pair",
                                                                                        "offload_fraction",
                                                                                        "offload_layers",
                                                                                        "recompute_framework",
                                                                                        "recompute_modules",
                                                                                        "recompute_layers",
                                                                                        "too_large"};
}  // namespace shardplan

namespace shardplan::plan {

using RuleSet = std::bitset<rule_count>;

inline void add(RuleSet& rules, Rule rule) noexcept { rules.set(static_cast<std::size_t>(rule)); }
inline bool contains(const RuleSet& rules, Rule rule) noexcept { return rules[static_cast<std::size_t>(rule)]; }

/// What the rules of a layout ask about a model. Folded once, however many layouts are tried.
struct ModelFacts {
  static constexpr std::size_t most_kv_heads = 8;

  std::int64_t layers = 0;
  std::int64_t heads = 0;                              ///< greatest common divisor over the layers, as the widths below
  std::array<std::int64_t, most_kv_heads> kv_heads{};  ///< each number that occurs
  std::size_t kv_heads_count = 0;
  std::int64_t intermediate = 0;         ///< dense and shared widths; 0: none
  std::int64_t experts = 0;              ///< 0: none
  std::int64_t expert_intermediate = 0;  ///< 0: none
  std::int64_t longest_sequence = 0;     ///< of a learned position table; 0: no limit
  bool has_dense_mlp = false;
  bool has_latent_attention = false;
  double parameters = 0;       ///< an upper bound, for range checks only
  double bytes_per_token = 0;  ///< an upper bound of what all layers and the head hold of one token
  double widest_heads = 0;     ///< attention heads of all layers, summed
};
ModelFacts facts_of(const Model& model) noexcept;

/// What the rules of a layout are about: the layout, and of the run what it has to go with.
struct RuleInputs : Layout {
  Framework framework = Framework::megatron;
  int gpus_per_node = 8;
  int data = 1;
  GradSync grad_sync = GradSync::last;
  ContextComm context_comm = ContextComm::ring;
  bool zeropp = false;
  bool hpz = false;
  bool equal_layers = true;  ///< layers are shared out equally, not by a list
  std::int64_t seq_length = 1;
  std::int64_t global_batch_size = 1;
};
RuleInputs rule_inputs_of(const Run& run, bool equal_layers) noexcept;

/// The layout's broken rules: of Rule, those from node_shape to interleaved_two that need no list of layers.
RuleSet broken_layout_rules(const ModelFacts& model, const RuleInputs& layout) noexcept;

/// The broken rules of everything else: GPU, precision, adapters, offload, recomputation, ranges.
RuleSet broken_training_rules(const ModelFacts& model, const Run& run) noexcept;

/// Microbatches that an interleaved schedule runs of a chunk before the next chunk's turn: pipeline, but as
/// torch.distributed.pipelining cuts them for fsdp; 0 where the microbatches cannot be cut.
int interleaved_group(Framework framework, int pipeline, std::int64_t microbatches) noexcept;

/// Whether a framework offers a schedule for a pipeline of more than one stage; to those that have no pipeline at all
/// the rule does not speak.
bool has_schedule(Framework framework, ScheduleKind kind) noexcept;

/// Whether an attention kernel runs on a GPU: FlashAttention-2 needs compute capability 8.0, the first one 7.5. Of a
/// GPU that is not CUDA's nothing is known against it.
bool runs_attention(const Gpu& gpu, AttentionKernel kernel) noexcept;

/// Whether a stack's framework and a run's are of one family: torch's fsdp, ddp and dp are; textbook goes with all.
bool stack_fits(Framework stack, Framework run) noexcept;

}  // namespace shardplan::plan
