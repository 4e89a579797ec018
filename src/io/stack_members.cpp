// The constants of a software profile, a row each.
#include "stack_members.hpp"

#include <array>

#include "shardplan/plan/field_table.hpp"

namespace shardplan::io {
namespace {

using namespace member;

constexpr double most = 1e12;
constexpr NumberRange not_negative = {std::nullopt, 0, 1e9};
constexpr NumberRange share = {std::nullopt, 0, 1};

constexpr std::array memory_rows = std::to_array<StackMember>({
    {"gathered_layers", integer<&Stack::memory, &StackMemory::gathered_layers>(0, 1000)},
    {"root_unit_gathered", boolean<&Stack::memory, &StackMemory::root_unit_gathered>()},
    {"retains_frozen_inputs", boolean<&Stack::memory, &StackMemory::retains_frozen_inputs>()},
    {"fp32_reduce_scatter_input", boolean<&Stack::memory, &StackMemory::fp32_reduce_scatter_input>()},
    {"quantized_linear_keeps_input", boolean<&Stack::memory, &StackMemory::quantized_linear_keeps_input>()},
    {"quantized_base_runs_fp32", boolean<&Stack::memory, &StackMemory::quantized_base_runs_fp32>()},
    {"quantized_head", boolean<&Stack::memory, &StackMemory::quantized_head>()},
    {"embedding_states_fp32", boolean<&Stack::memory, &StackMemory::embedding_states_fp32>()},
    {"attention_copy_for_a2a", boolean<&Stack::memory, &StackMemory::attention_copy_for_a2a>()},
    {"fused_loss_keeps_log_probs", boolean<&Stack::memory, &StackMemory::fused_loss_keeps_log_probs>()},
    {"loss_keeps_cast", boolean<&Stack::memory, &StackMemory::loss_keeps_cast>()},
    {"two_logits_at_loss", boolean<&Stack::memory, &StackMemory::two_logits_at_loss>()},
    {"fused_qkv_adapters", boolean<&Stack::memory, &StackMemory::fused_qkv_adapters>()},
    {"reserved_factor", number<&Stack::memory, &StackMemory::reserved_factor>({std::nullopt, 1, 2})},
    {"logits_fragmentation", boolean<&Stack::memory, &StackMemory::logits_fragmentation>()},
    {"gradients_freed", boolean<&Stack::memory, &StackMemory::gradients_freed>()},
    {"gradient_bucket_views", boolean<&Stack::memory, &StackMemory::gradient_bucket_views>()},
    {"live_parameters", integer<&Stack::memory, &StackMemory::live_parameters>(0, most)},
    {"reduce_bucket", integer<&Stack::memory, &StackMemory::reduce_bucket>(0, most)},
    {"reduce_buckets", integer<&Stack::memory, &StackMemory::reduce_buckets>(0, 16)},
    {"gather_bucket", integer<&Stack::memory, &StackMemory::gather_bucket>(0, most)},
    {"prefetch", integer<&Stack::memory, &StackMemory::prefetch>(0, most)},
});

constexpr std::array timing_rows = std::to_array<StackMember>({
    {"measured", boolean<&Stack::timing, &StackTiming::measured>()},
    {"elementwise_factor", number<&Stack::timing, &StackTiming::elementwise_factor>(not_negative)},
    {"uncompiled_factor", number<&Stack::timing, &StackTiming::uncompiled_factor>(not_negative)},
    {"host_forward_s", number<&Stack::timing, &StackTiming::host_forward_s>(not_negative)},
    {"host_backward_s", number<&Stack::timing, &StackTiming::host_backward_s>(not_negative)},
    {"host_per_microbatch_s", number<&Stack::timing, &StackTiming::host_per_microbatch_s>(not_negative)},
    {"host_tensor_parallel_s", number<&Stack::timing, &StackTiming::host_tensor_parallel_s>(not_negative)},
    {"loss_bytes_per_logit", number<&Stack::timing, &StackTiming::loss_bytes_per_logit>(not_negative)},
    {"optimizer_bytes_per_parameter",
     number<&Stack::timing, &StackTiming::optimizer_bytes_per_parameter>(not_negative)},
    {"optimizer_fixed_s", number<&Stack::timing, &StackTiming::optimizer_fixed_s>(not_negative)},
    {"grad_reduce_hidden", number<&Stack::timing, &StackTiming::grad_reduce_hidden>(share)},
    {"fsdp_hidden", number<&Stack::timing, &StackTiming::fsdp_hidden>(share)},
    {"tp_hidden", number<&Stack::timing, &StackTiming::tp_hidden>(share)},
    {"expert_hidden", number<&Stack::timing, &StackTiming::expert_hidden>(share)},
    {"batched_product_share", number<&Stack::timing, &StackTiming::batched_product_share>(share)},
    {"misaligned_head_slowdown", number<&Stack::timing, &StackTiming::misaligned_head_slowdown>(not_negative)},
    {"narrow_head_share", number<&Stack::timing, &StackTiming::narrow_head_share>(share)},
    {"grouped_product_share", number<&Stack::timing, &StackTiming::grouped_product_share>(not_negative)},
    {"expert_start_s", number<&Stack::timing, &StackTiming::expert_start_s>(not_negative)},
    {"all_to_all_spread", number<&Stack::timing, &StackTiming::all_to_all_spread>(not_negative)},
    {"permutation_factor", number<&Stack::timing, &StackTiming::permutation_factor>(not_negative)},
    {"weight_gradient_share", number<&Stack::timing, &StackTiming::weight_gradient_share>(share)},
    {"fp8_rowwise_share", number<&Stack::timing, &StackTiming::fp8_rowwise_share>(not_negative)},
    {"mxfp8_share", number<&Stack::timing, &StackTiming::mxfp8_share>(not_negative)},
    {"nvfp4_share", number<&Stack::timing, &StackTiming::nvfp4_share>(not_negative)},
    {"fsdp_contention", number<&Stack::timing, &StackTiming::fsdp_contention>(share)},
});

constexpr std::array own_rows = std::to_array<StackMember>({
    {"framework", word<&Stack::framework>(names_of<Framework>)},
    {"loss", word<&Stack::loss>(names_of<LossKind>)},
    {"optimizer_impl", word<&Stack::optimizer_impl>(names_of<OptimizerImpl>)},
    {"compile", boolean<&Stack::compile>()},
    {"autocast", boolean<&Stack::autocast>()},
    {"flash", word<&Stack::flash>(names_of<FlashKernel>)},
    {"fsdp_version", integer<&Stack::fsdp_version>(0, 2)},
    {"tensor_is_sequence_parallel", boolean<&Stack::tensor_is_sequence_parallel>()},
});

void read_rows(ObjectReader& reader, std::span<const StackMember> rows, Stack& stack) {
  for (const StackMember& row : rows) {
    if (const auto value = reader.value(row.name, row.value.type)) row.value.set(stack, *value);
  }
}

/// `kernels` and `overlap` are those of a run.
void read_like_run(ObjectReader& reader, std::string_view section, Run& run) {
  for (const plan::FieldRow& row : plan::field_rows()) {
    if (section_of(row) != section) continue;
    if (const auto value = reader.value(member_of(row), row.value.type, row.about)) row.value.set(run, *value);
  }
}

}  // namespace

void read_stack_members(ObjectReader& reader, Stack& stack) {
  stack.name = reader.text("name").value_or("");
  reader.require("name");
  read_rows(reader, std::span(own_rows).first(1), stack);
  reader.require("framework");
  stack.description = reader.text("description").value_or("");
  Run run;
  run.training.kernels = stack.kernels;
  run.training.overlap = stack.overlap;
  reader.object("kernels", "", [&](ObjectReader& kernels) { read_like_run(kernels, "/training/kernels", run); });
  read_rows(reader, std::span(own_rows).subspan(1), stack);
  reader.object("overlap", "", [&](ObjectReader& overlap) { read_like_run(overlap, "/training/overlap", run); });
  stack.kernels = run.training.kernels;
  stack.overlap = run.training.overlap;
  reader.object("memory", "", [&](ObjectReader& memory) { read_rows(memory, memory_rows, stack); });
  reader.object("timing", "", [&](ObjectReader& timing) { read_rows(timing, timing_rows, stack); });
  stack.source = reader.text("source").value_or("");
}

}  // namespace shardplan::io
