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

namespace shardplan::plan {
extern const std::array<std::string_view, field_count> field_pointers;
}  // namespace shardplan::plan

namespace shardplan {
/// The JSON pointer of each field: a column of plan/field_table.hpp.
template <>
inline constexpr const std::array<std::string_view, plan::field_count>& names_of<plan::Field> = plan::field_pointers;
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
