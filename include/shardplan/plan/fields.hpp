// The fields of a run file, as an enum: which were given, which cannot be used, which a rule needs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "shardplan/core/names.hpp"

namespace shardplan::plan {

enum class Field : std::uint8_t {
  model,
  cluster,
  num_gpus,
  tensor,
  pipeline,
  virtual_pipeline,
  context,
  expert,
  expert_tensor,
  data,
  sequence_parallel,
  zero_stage,
  fsdp,
  fsdp_version,
  grad_sync,
  context_comm,
  shard_group,
  hpz,
  qwz,
  qgz,
  schedule,
  layers_per_stage,
  order,
  seq_length,
  micro_batch_size,
  global_batch_size,
  precision,
  fp8_recipe,
  fp8_param_gather,
  compile,
  framework,
  stack,
  initialisation,
  optimizer,
  optimizer_impl,
  recompute,
  attention,
  loss,
  keep_logits,
  kernel_norm,
  kernel_mlp,
  kernel_qkv,
  kernel_softmax,
  kernel_sp_input,
  kernel_wgrad,
  attention_output_copy,
  kv_expanded,
  reentrant_checkpoint,
  te_dummy_wgrad,
  moe_dispatch,
  moe_probs,
  moe_combine,
  dropout,
  attention_dropout,
  autocast,
  param_dtype,
  grad_dtype,
  master_weights,
  optimizer_state_dtype,
  vocab_multiple,
  capacity_factor,
  moe_imbalance,
  peft,
  peft_method,
  peft_rank,
  peft_alpha,
  peft_dropout,
  peft_targets,
  peft_quant,
  double_quant,
  adapter_dtype,
  kbit_preparation,
  peft_fused,
  offload,
  offload_optimizer,
  offload_parameters,
  offload_activations,
  activation_layers,
  optimizer_fraction,
  overlap_grad_reduce,
  overlap_param_gather,
  overlap_tp,
  overlap_p2p
};
inline constexpr std::size_t field_count = static_cast<std::size_t>(Field::overlap_p2p) + 1;

}  // namespace shardplan::plan

namespace shardplan {
/// The JSON pointer of each field.
template <>
inline constexpr std::array<std::string_view, plan::field_count> names_of<plan::Field> = {
    "/model",
    "/cluster",
    "/num_gpus",
    "/parallel/tensor",
    "/parallel/pipeline",
    "/parallel/virtual_pipeline",
    "/parallel/context",
    "/parallel/expert",
    "/parallel/expert_tensor",
    "/parallel/data",
    "/parallel/sequence_parallel",
    "/parallel/zero_stage",
    "/parallel/fsdp",
    "/parallel/fsdp_version",
    "/parallel/grad_sync",
    "/parallel/context_comm",
    "/parallel/shard_group",
    "/parallel/zeropp/hpz",
    "/parallel/zeropp/qwz",
    "/parallel/zeropp/qgz",
    "/parallel/schedule",
    "/parallel/layers_per_stage",
    "/parallel/order",
    "/training/seq_length",
    "/training/micro_batch_size",
    "/training/global_batch_size",
    "/training/precision",
    "/training/fp8/recipe",
    "/training/fp8/param_gather",
    "/training/compile",
    "/training/framework",
    "/training/stack",
    "/training/initialisation",
    "/training/optimizer",
    "/training/optimizer_impl",
    "/training/recompute",
    "/training/attention",
    "/training/loss",
    "/training/keep_logits",
    "/training/kernels/norm",
    "/training/kernels/mlp",
    "/training/kernels/qkv",
    "/training/kernels/softmax",
    "/training/kernels/sp_input",
    "/training/kernels/wgrad",
    "/training/kernels/attention_output_copy",
    "/training/kernels/kv_expanded",
    "/training/kernels/reentrant_checkpoint",
    "/training/kernels/te_dummy_wgrad",
    "/training/kernels/moe_dispatch",
    "/training/kernels/moe_probs",
    "/training/kernels/moe_combine",
    "/training/dropout",
    "/training/attention_dropout",
    "/training/autocast",
    "/training/param_dtype",
    "/training/grad_dtype",
    "/training/master_weights",
    "/training/optimizer_state_dtype",
    "/training/make_vocab_size_divisible_by",
    "/training/moe/capacity_factor",
    "/training/moe/imbalance",
    "/training/peft",
    "/training/peft/method",
    "/training/peft/rank",
    "/training/peft/alpha",
    "/training/peft/dropout",
    "/training/peft/targets",
    "/training/peft/quant",
    "/training/peft/double_quant",
    "/training/peft/adapter_dtype",
    "/training/peft/kbit_preparation",
    "/training/peft/fused",
    "/training/offload",
    "/training/offload/optimizer",
    "/training/offload/parameters",
    "/training/offload/activations",
    "/training/offload/activation_layers",
    "/training/offload/optimizer_fraction",
    "/training/overlap/grad_reduce",
    "/training/overlap/param_gather",
    "/training/overlap/tp",
    "/training/overlap/p2p"};
}  // namespace shardplan

namespace shardplan::plan {

/// A set of fields.
class FieldSet {
 public:
  constexpr FieldSet() noexcept = default;
  template <class... Fields>
  explicit constexpr FieldSet(Field first, Fields... rest) noexcept {
    add(first);
    (add(rest), ...);
  }

  constexpr void add(Field field) noexcept { word(field) |= bit(field); }
  constexpr void remove(Field field) noexcept { word(field) &= ~bit(field); }
  constexpr bool has(Field field) const noexcept { return (words_[index(field) / 64] & bit(field)) != 0; }
  constexpr bool meets(const FieldSet& other) const noexcept {
    return (words_[0] & other.words_[0]) != 0 || (words_[1] & other.words_[1]) != 0;
  }
  constexpr bool empty() const noexcept { return words_[0] == 0 && words_[1] == 0; }
  constexpr FieldSet& operator|=(const FieldSet& other) noexcept {
    words_[0] |= other.words_[0];
    words_[1] |= other.words_[1];
    return *this;
  }
  bool operator==(const FieldSet&) const = default;

 private:
  static constexpr std::size_t index(Field field) noexcept { return static_cast<std::size_t>(field); }
  static constexpr std::uint64_t bit(Field field) noexcept { return std::uint64_t{1} << (index(field) % 64); }
  constexpr std::uint64_t& word(Field field) noexcept { return words_[index(field) / 64]; }

  std::array<std::uint64_t, 2> words_{};
};
static_assert(field_count <= 128);

}  // namespace shardplan::plan
