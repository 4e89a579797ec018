#include "shardplan/io/stack_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "catalog_lookup.hpp"
#include "object_reader.hpp"
#include "shardplan/physics/frameworks/facts.hpp"

namespace shardplan::io {
namespace {

const NumberRange not_negative = {std::nullopt, 0, 1e9};
const NumberRange share = {std::nullopt, 0, 1};

void set(std::optional<bool> given, bool& field) {
  if (given) field = *given;
}
void set(std::optional<double> given, double& field) {
  if (given) field = *given;
}
template <class Enum>
void set(std::optional<Enum> given, Enum& field) {
  if (given) field = *given;
}

void read_kernels(ObjectReader& reader, Kernels& kernels) {
  set(reader.choice<NormKernel>("norm"), kernels.norm);
  set(reader.choice<MlpKernel>("mlp"), kernels.mlp);
  set(reader.choice<QkvLayout>("qkv"), kernels.qkv);
  set(reader.choice<SoftmaxKernel>("softmax"), kernels.softmax);
  set(reader.choice<SequenceParallelInput>("sp_input"), kernels.sp_input);
  set(reader.choice<WeightGradient>("wgrad"), kernels.wgrad);
  set(reader.boolean("attention_output_copy"), kernels.attention_output_copy);
  set(reader.boolean("kv_expanded"), kernels.kv_expanded);
  set(reader.boolean("reentrant_checkpoint"), kernels.reentrant_checkpoint);
  set(reader.boolean("te_dummy_wgrad"), kernels.te_dummy_wgrad);
  set(reader.choice<MoeDispatch>("moe_dispatch"), kernels.moe_dispatch);
  set(reader.choice<MoeProbs>("moe_probs"), kernels.moe_probs);
  set(reader.choice<MoeCombine>("moe_combine"), kernels.moe_combine);
}

void read_overlap(ObjectReader& reader, Overlap& overlap) {
  set(reader.boolean("grad_reduce"), overlap.grad_reduce);
  set(reader.boolean("param_gather"), overlap.param_gather);
  set(reader.boolean("tp"), overlap.tp);
  set(reader.boolean("p2p"), overlap.p2p);
}

void read_memory(ObjectReader& reader, StackMemory& memory) {
  constexpr std::int64_t most = 1'000'000'000'000;
  memory.gathered_layers = static_cast<int>(reader.integer("gathered_layers", 0, 1000).value_or(0));
  set(reader.boolean("root_unit_gathered"), memory.root_unit_gathered);
  set(reader.boolean("retains_frozen_inputs"), memory.retains_frozen_inputs);
  set(reader.boolean("fp32_reduce_scatter_input"), memory.fp32_reduce_scatter_input);
  set(reader.boolean("quantized_linear_keeps_input"), memory.quantized_linear_keeps_input);
  set(reader.boolean("quantized_base_runs_fp32"), memory.quantized_base_runs_fp32);
  set(reader.boolean("quantized_head"), memory.quantized_head);
  set(reader.boolean("embedding_states_fp32"), memory.embedding_states_fp32);
  set(reader.boolean("attention_copy_for_a2a"), memory.attention_copy_for_a2a);
  set(reader.boolean("fused_loss_keeps_log_probs"), memory.fused_loss_keeps_log_probs);
  set(reader.boolean("two_logits_at_loss"), memory.two_logits_at_loss);
  set(reader.boolean("loss_keeps_cast"), memory.loss_keeps_cast);
  set(reader.boolean("fused_qkv_adapters"), memory.fused_qkv_adapters);
  set(reader.number("reserved_factor", {std::nullopt, 1, 2}), memory.reserved_factor);
  set(reader.boolean("logits_fragmentation"), memory.logits_fragmentation);
  set(reader.boolean("gradients_freed"), memory.gradients_freed);
  set(reader.boolean("gradient_bucket_views"), memory.gradient_bucket_views);
  memory.live_parameters = reader.integer("live_parameters", 0, most).value_or(0);
  memory.reduce_bucket = reader.integer("reduce_bucket", 0, most).value_or(0);
  memory.reduce_buckets = static_cast<int>(reader.integer("reduce_buckets", 0, 16).value_or(0));
  memory.gather_bucket = reader.integer("gather_bucket", 0, most).value_or(0);
  memory.prefetch = reader.integer("prefetch", 0, most).value_or(0);
}

void read_timing(ObjectReader& reader, StackTiming& timing) {
  set(reader.boolean("measured"), timing.measured);
  set(reader.number("elementwise_factor", not_negative), timing.elementwise_factor);
  set(reader.number("uncompiled_factor", not_negative), timing.uncompiled_factor);
  set(reader.number("host_forward_s", not_negative), timing.host_forward_s);
  set(reader.number("host_backward_s", not_negative), timing.host_backward_s);
  set(reader.number("host_per_microbatch_s", not_negative), timing.host_per_microbatch_s);
  set(reader.number("host_tensor_parallel_s", not_negative), timing.host_tensor_parallel_s);
  set(reader.number("loss_bytes_per_logit", not_negative), timing.loss_bytes_per_logit);
  set(reader.number("optimizer_bytes_per_parameter", not_negative), timing.optimizer_bytes_per_parameter);
  set(reader.number("optimizer_fixed_s", not_negative), timing.optimizer_fixed_s);
  set(reader.number("grad_reduce_hidden", share), timing.grad_reduce_hidden);
  set(reader.number("fsdp_hidden", share), timing.fsdp_hidden);
  set(reader.number("tp_hidden", share), timing.tp_hidden);
  set(reader.number("expert_hidden", share), timing.expert_hidden);
  set(reader.number("batched_product_share", share), timing.batched_product_share);
  set(reader.number("misaligned_head_slowdown", not_negative), timing.misaligned_head_slowdown);
  set(reader.number("narrow_head_share", share), timing.narrow_head_share);
  set(reader.number("grouped_product_share", not_negative), timing.grouped_product_share);
  set(reader.number("expert_start_s", not_negative), timing.expert_start_s);
  set(reader.number("all_to_all_spread", not_negative), timing.all_to_all_spread);
  set(reader.number("permutation_factor", not_negative), timing.permutation_factor);
  set(reader.number("weight_gradient_share", share), timing.weight_gradient_share);
  set(reader.number("fp8_rowwise_share", not_negative), timing.fp8_rowwise_share);
  set(reader.number("mxfp8_share", not_negative), timing.mxfp8_share);
  set(reader.number("nvfp4_share", not_negative), timing.nvfp4_share);
  set(reader.number("fsdp_contention", share), timing.fsdp_contention);
}

template <class Target, class Read>
void read_block(ObjectReader& reader, std::string_view name, Target& target, const Read& read) {
  const nlohmann::json* value = reader.member(name);
  if (value == nullptr) return;
  ObjectReader block(*value, reader.file(), reader.pointer_of(name), reader.problems());
  read(block, target);
  block.finish();
}

Result<Stack> read_whole_stack(const nlohmann::json& object, std::string_view file, std::string_view pointer) {
  Result<Stack> result;
  Stack& stack = result.value;
  ObjectReader reader(object, file, std::string(pointer), result.problems);
  stack.name = reader.text("name").value_or("");
  reader.require("name");
  set(reader.choice<Framework>("framework"), stack.framework);
  reader.require("framework");
  stack.description = reader.text("description").value_or("");
  read_block(reader, "kernels", stack.kernels, read_kernels);
  set(reader.choice<LossKind>("loss"), stack.loss);
  set(reader.choice<OptimizerImpl>("optimizer_impl"), stack.optimizer_impl);
  set(reader.boolean("compile"), stack.compile);
  set(reader.boolean("autocast"), stack.autocast);
  set(reader.choice<FlashKernel>("flash"), stack.flash);
  stack.fsdp_version = static_cast<int>(reader.integer("fsdp_version", 0, 2).value_or(0));
  set(reader.boolean("tensor_is_sequence_parallel"), stack.tensor_is_sequence_parallel);
  read_block(reader, "overlap", stack.overlap, read_overlap);
  read_block(reader, "memory", stack.memory, read_memory);
  read_block(reader, "timing", stack.timing, read_timing);
  stack.source = reader.text("source").value_or("");
  reader.finish();
  return result;
}

/// What a stack does not take over from the one that it is like: who it is, and what was measured of the other.
void forget_own(nlohmann::json& base) {
  for (const char* own : {"name", "description", "source", "like"}) base.erase(own);
  const auto timing = base.find("timing");
  if (timing != base.end() && timing->is_object()) timing->erase("measured");
}

/// `object` over all that it is like. `chain`: the names on the way here.
std::optional<nlohmann::json> merge(const nlohmann::json& object, std::vector<std::string> chain, std::string_view file,
                                    std::string_view pointer, const CatalogSource& catalog, Diagnostics& problems) {
  if (!object.is_object() || !object.contains("like")) return object;
  const std::string where = std::string(pointer) + "/like";
  const nlohmann::json& like = object["like"];
  if (!like.is_string()) {
    problems.push_back({std::string(file), where, quoted(like) + " is not a stack's name",
                        "a name in quotes (shardplan list stacks)", 0, 0});
    return std::nullopt;
  }
  const std::string& other = like.get_ref<const std::string&>();
  chain.push_back(object.value("name", ""));
  if (std::find(chain.begin(), chain.end(), other) != chain.end()) {
    problems.push_back({std::string(file), where,
                        fmt::format("stack {} is like itself: {}, {}", other, fmt::join(chain, ", "), other),
                        "one of them has to state its values", 0, 0});
    return std::nullopt;
  }
  const auto found = look_up(CatalogKind::stacks, other, file, where, catalog, problems);
  if (!found) return std::nullopt;
  std::optional<nlohmann::json> whole = merge(*found, std::move(chain), file, pointer, catalog, problems);
  if (!whole) return std::nullopt;
  forget_own(*whole);
  whole->merge_patch(object);
  whole->erase("like");
  return whole;
}

}  // namespace

Result<nlohmann::json> whole_stack(const nlohmann::json& object, std::string_view file, std::string_view pointer,
                                   const CatalogSource& catalog) {
  Result<nlohmann::json> result;
  std::optional<nlohmann::json> whole = merge(object, {}, file, pointer, catalog, result.problems);
  if (whole) result.value = std::move(*whole);
  return result;
}

Result<Stack> read_stack(const nlohmann::json& object, std::string_view file, std::string_view pointer,
                         const CatalogSource& catalog) {
  const Result<nlohmann::json> whole = whole_stack(object, file, pointer, catalog);
  if (whole.ok()) return read_whole_stack(whole.value, file, pointer);
  Result<Stack> result;
  result.problems = whole.problems;
  return result;
}

Result<Stack> find_stack(std::string_view name, std::string_view file, std::string_view pointer,
                         const CatalogSource& catalog) {
  Result<Stack> result;
  const auto object = look_up(CatalogKind::stacks, name, file, pointer, catalog, result.problems);
  if (object) result = read_stack(*object, name, "", catalog);
  return result;
}

Stack default_stack(Framework framework, const CatalogSource& catalog) {
  Diagnostics problems;
  const std::string_view entry = facts_of(framework).default_stack;
  const auto object = look_up(CatalogKind::stacks, entry, "", "", catalog, problems);
  Stack stack;
  if (object) stack = read_stack(*object, entry, "", catalog).value;
  stack.framework = framework;
  stack.name.clear();
  return stack;
}

}  // namespace shardplan::io
