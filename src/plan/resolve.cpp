#include "shardplan/plan/resolve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/physics/optimizers.hpp"
#include "shardplan/plan/saturate.hpp"
#include "shardplan/schedule/shape.hpp"

namespace shardplan::plan {
namespace {

constexpr std::int64_t default_seq_length = 4096;
constexpr std::int64_t default_microbatches_per_stage = 4;
constexpr std::int64_t most_gpus = std::int64_t{1} << 20;

/// Gives a field its default.
template <class T, class U>
void fill(const Draft& draft, Field field, T& target, const U& value) {
  if (!draft.given.has(field)) target = value;
}

/// Sharded gradients are reduced as they come: there is no room for them whole.
GradSync default_grad_sync(const FrameworkFacts& framework, int zero_stage, Fsdp fsdp) noexcept {
  const bool every = framework.shards_by_fsdp() || shards_states(fsdp) || zero_stage >= 2;
  return every ? GradSync::every : GradSync::last;
}

void resolve_layout(const Draft& draft, Run& run) {
  Parallel& parallel = run.parallel;
  const Training& training = run.training;
  const FrameworkFacts& framework = facts_of(training.framework);
  if (!draft.given.has(Field::num_gpus)) {
    const std::int64_t gpus = saturating_product({run.cluster.num_nodes, run.cluster.gpus_per_node});
    run.num_gpus = static_cast<int>(std::clamp<std::int64_t>(gpus, 1, most_gpus));
  }
  const std::int64_t ranks_of_a_replica = saturating_product({parallel.tensor, parallel.pipeline, parallel.context});
  assert(ranks_of_a_replica > 0);
  const std::int64_t replicas = std::max<std::int64_t>(1, run.num_gpus / ranks_of_a_replica);
  fill(draft, Field::data, parallel.data, static_cast<int>(replicas));
  fill(draft, Field::zero_stage, parallel.zero_stage, 0);
  fill(draft, Field::fsdp, parallel.fsdp, framework.shards_by_fsdp() ? Fsdp::full_shard : Fsdp::none);
  fill(draft, Field::grad_sync, parallel.grad_sync, default_grad_sync(framework, parallel.zero_stage, parallel.fsdp));
  fill(draft, Field::schedule, parallel.schedule,
       parallel.virtual_pipeline > 1 ? ScheduleKind::interleaved
       : parallel.pipeline > 1       ? framework.pipeline.default_schedule
                                     : ScheduleKind::one_f_one_b);
  if (!draft.given.has(Field::sequence_parallel)) {
    parallel.sequence_parallel = framework.sequence_parallel_default || training.stack.tensor_is_sequence_parallel;
  }
  parallel.sequence_parallel = parallel.sequence_parallel && parallel.tensor > 1;
  fill(draft, Field::shard_group, parallel.shard_group, default_shard_group(parallel, run.cluster.gpus_per_node));
}

/// `layers_per_stage` as stated, one entry a chunk; empty when it cannot be one.
std::vector<int> stated_chunks(const Draft& draft, const Parallel& parallel) {
  const auto p = static_cast<std::size_t>(parallel.pipeline);
  const auto v = static_cast<std::size_t>(parallel.virtual_pipeline);
  const std::vector<int>& list = draft.layers_per_stage;
  if (list.size() == p * v) return list;
  if (list.size() != p) return {};
  std::vector<int> chunks(p * v);
  const bool vee = schedule::placement(parallel.schedule) == schedule::Placement::vee;
  for (std::size_t rank = 0; rank < p; ++rank) {
    for (std::size_t k = 0; k < v; ++k) {
      const std::size_t chunk = vee && k % 2 == 1 ? (k + 1) * p - 1 - rank : k * p + rank;
      chunks[chunk] = list[rank] / static_cast<int>(v);
    }
  }
  return chunks;
}

void resolve_batch(const Draft& draft, Run& run) {
  const Parallel& parallel = run.parallel;
  Training& training = run.training;
  const std::int64_t longest = run.model.max_position_embeddings;
  fill(draft, Field::seq_length, training.seq_length,
       longest > 0 ? std::min(default_seq_length, longest) : default_seq_length);
  fill(draft, Field::micro_batch_size, training.micro_batch_size, std::int64_t{1});
  const std::int64_t sequences = saturating_product({training.micro_batch_size, parallel.data});
  if (draft.microbatches > 0) {
    training.global_batch_size = saturating_product({sequences, draft.microbatches});
  } else {
    const std::int64_t depth = parallel.pipeline > 1 ? default_microbatches_per_stage * parallel.pipeline : 1;
    fill(draft, Field::global_batch_size, training.global_batch_size, saturating_product({sequences, depth}));
  }
}

void resolve_kernels(const Draft& draft, Training& training) {
  const Stack& stack = training.stack;
  Kernels& kernels = training.kernels;
  fill(draft, Field::kernel_norm, kernels.norm, stack.kernels.norm);
  fill(draft, Field::kernel_mlp, kernels.mlp, stack.kernels.mlp);
  fill(draft, Field::kernel_qkv, kernels.qkv, stack.kernels.qkv);
  fill(draft, Field::kernel_softmax, kernels.softmax, stack.kernels.softmax);
  fill(draft, Field::kernel_sp_input, kernels.sp_input, stack.kernels.sp_input);
  fill(draft, Field::kernel_wgrad, kernels.wgrad, stack.kernels.wgrad);
  fill(draft, Field::attention_output_copy, kernels.attention_output_copy, stack.kernels.attention_output_copy);
  fill(draft, Field::kv_expanded, kernels.kv_expanded, stack.kernels.kv_expanded);
  fill(draft, Field::reentrant_checkpoint, kernels.reentrant_checkpoint, stack.kernels.reentrant_checkpoint);
  fill(draft, Field::te_dummy_wgrad, kernels.te_dummy_wgrad, stack.kernels.te_dummy_wgrad);
  fill(draft, Field::moe_dispatch, kernels.moe_dispatch, stack.kernels.moe_dispatch);
  fill(draft, Field::moe_probs, kernels.moe_probs, stack.kernels.moe_probs);
  fill(draft, Field::moe_combine, kernels.moe_combine, stack.kernels.moe_combine);
  fill(draft, Field::loss, training.loss, stack.loss);
  fill(draft, Field::optimizer_impl, training.optimizer_impl, stack.optimizer_impl);
  fill(draft, Field::compile, training.compile, stack.compile);
  fill(draft, Field::overlap_grad_reduce, training.overlap.grad_reduce, stack.overlap.grad_reduce);
  fill(draft, Field::overlap_param_gather, training.overlap.param_gather, stack.overlap.param_gather);
  fill(draft, Field::overlap_tp, training.overlap.tp, stack.overlap.tp);
  fill(draft, Field::overlap_p2p, training.overlap.p2p, stack.overlap.p2p);
}

void resolve_peft(const Draft& draft, Peft& peft) {
  if (!draft.given.has(Field::peft)) {
    peft = {};
    return;
  }
  const bool quantised = draft.given.has(Field::peft_quant) && peft.quant != Quantization::none;
  fill(draft, Field::peft_method, peft.method, quantised ? PeftMethod::qlora : PeftMethod::lora);
  fill(draft, Field::peft_quant, peft.quant, peft.method == PeftMethod::qlora ? Quantization::nf4 : Quantization::none);
  fill(draft, Field::peft_alpha, peft.alpha, 2.0 * peft.rank);
  fill(draft, Field::adapter_dtype, peft.adapter_dtype, DType::fp32);
}

/// What an optimizer is made for, where the run does not say otherwise.
void optimizer_state_types(const Optimizer& optimizer, StateTypes& types) {
  if (types.parameter == DType::fp32) return;
  if (optimizer.gradient) types.gradient = *optimizer.gradient;
  if (optimizer.master == MasterCopy::fp16) types.master = true;
  if (optimizer.master != MasterCopy::none) return;
  types.master = false;
  types.optimizer_state = types.parameter;
}

Warnings resolve_states(const Draft& draft, const Parallel& parallel, Training& training) {
  Warnings warnings;
  const bool adapters = training.peft.active();
  std::optional<DType> parameter;
  if (adapters) {
    parameter = training.peft.adapter_dtype;
    if (draft.given.has(Field::param_dtype) && training.param_dtype != activation_dtype(training.precision)) {
      warnings.push_back({"param_dtype_no_effect", std::string(name(Field::param_dtype)),
                          fmt::format("the frozen weights are kept in {} (precision), the adapters in {}",
                                      name(activation_dtype(training.precision)), name(*parameter))});
    }
  } else if (draft.given.has(Field::param_dtype)) {
    parameter = training.param_dtype;
  }
  const Optimizer* optimizer = find_optimizer(training.optimizer);
  if (optimizer != nullptr && optimizer->sixteen_bit_weights && !parameter) {
    parameter = activation_dtype(training.precision);
  }
  StateTypes types = default_state_types(training.framework, training.precision, parallel.zero_stage, parameter);
  if (optimizer != nullptr) optimizer_state_types(*optimizer, types);
  if (draft.given.has(Field::master_weights) && training.master_weights && types.parameter == DType::fp32) {
    warnings.push_back({"master_weights_no_effect", std::string(name(Field::master_weights)),
                        "fp32 parameters have no second fp32 copy"});
  }
  const bool forced = adapters && types.parameter == DType::fp32;
  if (!forced) {
    if (draft.given.has(Field::master_weights)) {
      types.master = training.master_weights && types.parameter != DType::fp32;
      types.optimizer_state = types.master ? DType::fp32 : types.parameter;
    }
    if (draft.given.has(Field::grad_dtype)) types.gradient = training.grad_dtype;
    if (draft.given.has(Field::optimizer_state_dtype)) types.optimizer_state = training.optimizer_state_dtype;
  } else if ((draft.given.has(Field::grad_dtype) && training.grad_dtype != DType::fp32) ||
             (draft.given.has(Field::optimizer_state_dtype) && training.optimizer_state_dtype != DType::fp32)) {
    warnings.push_back({"adapters_are_fp32", std::string(name(Field::adapter_dtype)),
                        "with fp32 adapters their gradients and optimizer states are fp32 too; adapter_dtype \"bf16\" "
                        "makes them 16 bit"});
  }
  training.param_dtype = types.parameter;
  training.grad_dtype = types.gradient;
  training.master_weights = types.master;
  training.optimizer_state_dtype = types.optimizer_state;
  const bool torch = facts_of(training.framework).autocast_over_fp32;
  fill(draft, Field::autocast, training.autocast,
       training.stack.autocast ||
           (torch && !adapters && types.parameter == DType::fp32 && is_16_bit_or_less(training.precision)));
  return warnings;
}

bool all_usable(const Draft& draft, FieldSet fields) { return !inputs_of(fields, draft.given).meets(draft.unusable); }

}  // namespace

Framework default_framework(const Draft& draft) noexcept {
  const Parallel& parallel = draft.run.parallel;
  const bool fsdp = draft.given.has(Field::fsdp) && parallel.fsdp != Fsdp::none;
  const bool splits = parallel.tensor > 1 || parallel.pipeline > 1 || parallel.context > 1 || parallel.expert > 1;
  return implied_framework(fsdp, splits, draft.given.has(Field::zero_stage));
}

StateTypes default_state_types(Framework framework, Precision precision, int zero_stage,
                               std::optional<DType> parameter) noexcept {
  constexpr StateTypes all_fp32 = {DType::fp32, DType::fp32, false, DType::fp32};
  if (parameter.value_or(activation_dtype(precision)) == DType::fp32) return all_fp32;
  const FrameworkFacts& facts = facts_of(framework);
  if (facts.state_defaults == StateDefaults::stored) {
    // torch.amp and FSDP's mixed precision keep fp32 weights; 16-bit ones are trained as they are.
    return parameter ? StateTypes{*parameter, *parameter, false, *parameter} : all_fp32;
  }
  StateTypes types = {parameter.value_or(activation_dtype(precision)), DType::bf16, true, DType::fp32};
  types.gradient = types.parameter == DType::fp8 ? DType::bf16 : types.parameter;
  const bool fp32_gradient = facts.fp32_gradients == Fp32Gradients::always ||
                             (facts.fp32_gradients == Fp32Gradients::stage_zero && zero_stage == 0);
  if (fp32_gradient && types.gradient == DType::bf16) types.gradient = DType::fp32;
  return types;
}

int default_shard_group(const Parallel& parallel, int gpus_per_node) noexcept {
  const std::int64_t replicas = saturating_product({parallel.data, parallel.context});
  const std::int64_t world = saturating_product({parallel.tensor, parallel.pipeline, replicas});
  std::int64_t in_node = 0;
  for (int rank = 0; rank < std::min<std::int64_t>(gpus_per_node, world); ++rank) {
    int rest = rank;
    bool same_group = true;
    for (const Axis axis : parallel.order) {
      if (axis == Axis::expert) continue;
      const int size = axis == Axis::tensor    ? parallel.tensor
                       : axis == Axis::context ? parallel.context
                       : axis == Axis::data    ? parallel.data
                                               : parallel.pipeline;
      if ((axis == Axis::tensor || axis == Axis::pipeline) && rest % size != 0) same_group = false;
      rest /= size;
    }
    in_node += same_group ? 1 : 0;
  }
  std::int64_t group = std::clamp<std::int64_t>(in_node, 1, replicas);
  while (replicas % group != 0) --group;
  return static_cast<int>(group);
}

std::vector<int> equal_chunks(std::int64_t layers, int pipeline, int virtual_pipeline) {
  const std::int64_t chunks = std::int64_t{pipeline} * virtual_pipeline;
  if (chunks <= 0 || chunks > layers || layers % chunks != 0) return {};
  return std::vector<int>(static_cast<std::size_t>(chunks), static_cast<int>(layers / chunks));
}

Warnings resolve(const Draft& draft, Run& run) {
  run = draft.run;
  Training& training = run.training;
  resolve_layout(draft, run);
  resolve_batch(draft, run);
  resolve_kernels(draft, training);
  resolve_peft(draft, training.peft);
  Warnings warnings = resolve_states(draft, run.parallel, training);
  fill(draft, Field::attention_dropout, training.attention_dropout, training.dropout);
  fill(draft, Field::vocab_multiple, training.vocab_multiple, facts_of(training.framework).vocab_multiple);
  if (run.model.position == Position::learned && run.model.max_position_embeddings == 0) {
    run.model.position_rows = training.seq_length;
  }
  run.parallel.layers_per_chunk =
      draft.given.has(Field::layers_per_stage)
          ? stated_chunks(draft, run.parallel)
          : equal_chunks(run.model.layers(), run.parallel.pipeline, run.parallel.virtual_pipeline);

  const bool asked_sequence_parallel =
      draft.given.has(Field::sequence_parallel) && draft.run.parallel.sequence_parallel;
  if (asked_sequence_parallel && run.parallel.tensor == 1 && all_usable(draft, FieldSet(Field::tensor))) {
    warnings.push_back(
        {"sequence_parallel_no_effect", std::string(name(Field::sequence_parallel)),
         "tensor is 1, so there is nothing to split the sequence over; the numbers are those without it"});
  }
  const bool sharded = shards_states(run.parallel.fsdp);
  if (draft.given.has(Field::zero_stage) && draft.run.parallel.zero_stage == 0 && sharded &&
      all_usable(draft, FieldSet(Field::zero_stage, Field::fsdp))) {
    warnings.push_back({"zero_stage_no_effect", std::string(name(Field::zero_stage)),
                        fmt::format("zero_stage 0 does not keep the states whole: fsdp \"{}\" shards them; fsdp "
                                    "\"no_shard\" keeps them whole",
                                    name(run.parallel.fsdp))});
  }
  if (run.parallel.tensor > 1 && run.model.has_experts() && !draft.given.has(Field::expert_tensor) &&
      all_usable(draft, FieldSet(Field::tensor, Field::model, Field::expert_tensor))) {
    warnings.push_back({"expert_tensor_default", std::string(name(Field::expert_tensor)),
                        fmt::format("expert_tensor was not given and is 1: a rank holds whole experts; Megatron-LM's "
                                    "own default is tensor, {}",
                                    run.parallel.tensor)});
  }
  return warnings;
}

std::vector<Field> defaults_taken(const Draft& draft) {
  const bool fp8 = draft.run.training.precision == Precision::fp8;
  std::vector<Field> fields;
  for (std::size_t i = 0; i < field_count; ++i) {
    const auto field = static_cast<Field>(i);
    if (draft.given.has(field)) continue;
    if ((field == Field::fp8_recipe || field == Field::fp8_param_gather) && !fp8) continue;
    if (field > Field::peft && field <= Field::peft_fused && !draft.given.has(Field::peft)) continue;
    if (field > Field::offload && field <= Field::optimizer_fraction && !draft.given.has(Field::offload)) continue;
    if (field == Field::global_batch_size && draft.microbatches > 0) continue;
    fields.push_back(field);
  }
  return fields;
}

FieldSet inputs_of(FieldSet fields, const FieldSet& given) noexcept {
  struct Source {
    Field derived;
    FieldSet from;
  };
  static constexpr std::array<Source, 10> sources = {{
      {Field::global_batch_size, FieldSet(Field::micro_batch_size, Field::data, Field::pipeline)},
      {Field::shard_group, FieldSet(Field::cluster, Field::tensor, Field::pipeline, Field::context, Field::data)},
      {Field::grad_sync, FieldSet(Field::framework, Field::zero_stage, Field::fsdp)},
      {Field::sequence_parallel, FieldSet(Field::framework, Field::tensor, Field::stack)},
      {Field::fsdp, FieldSet(Field::framework)},
      {Field::framework,
       FieldSet(Field::tensor, Field::pipeline, Field::context, Field::expert, Field::fsdp, Field::zero_stage)},
      {Field::schedule, FieldSet(Field::virtual_pipeline)},
      {Field::data, FieldSet(Field::num_gpus, Field::tensor, Field::pipeline, Field::context)},
      {Field::num_gpus, FieldSet(Field::cluster)},
      {Field::seq_length, FieldSet(Field::model)},
  }};
  for (FieldSet before; !(before == fields);) {
    before = fields;
    for (const Source& source : sources) {
      if (fields.has(source.derived) && !given.has(source.derived)) fields |= source.from;
    }
  }
  return fields;
}

}  // namespace shardplan::plan
