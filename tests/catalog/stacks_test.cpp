// The named stacks and what holds without one.
#include <algorithm>

#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/stack_file.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "support/catch.hpp"

using namespace shardplan;

namespace {

Stack stack(std::string_view name) {
  const Result<Stack> result = io::find_stack(name, "test", "/training/stack", catalog::builtin_catalog());
  REQUIRE(result.ok());
  CHECK_FALSE(result.value.source.empty());
  return result.value;
}

}  // namespace

TEST_CASE("every named stack reads") {
  const char* expected[] = {"megatron-2021", "megatron-core-2024", "deepspeed-2024",  "deepspeed-2026", "hf-4.45",
                            "hf-4.48",       "fsdp1-2023",         "fsdp1-2024",      "fsdp2-2024-12",  "fsdp2-2025-04",
                            "litgpt-2023",   "litgpt-2024",        "fsdp-qlora-2024", "nanotron-2025"};
  const auto names = catalog::builtin_catalog().names(io::CatalogKind::stacks);
  CHECK(names.size() == std::size(expected));
  for (const char* name : expected) {
    INFO(name);
    CHECK(std::count(names.begin(), names.end(), name) == 1);
    CHECK(stack(name).name == name);
  }
}

TEST_CASE("losses and optimizer implementations of the stacks") {
  struct Row {
    const char* name;
    LossKind loss;
    OptimizerImpl impl;
  };
  const Row rows[] = {{"megatron-2021", LossKind::megatron, OptimizerImpl::fused},
                      {"megatron-core-2024", LossKind::te, OptimizerImpl::fused},
                      {"hf-4.45", LossKind::hf, OptimizerImpl::foreach},
                      {"hf-4.48", LossKind::hf_external, OptimizerImpl::foreach},
                      {"fsdp2-2024-12", LossKind::hf, OptimizerImpl::foreach},
                      {"fsdp2-2025-04", LossKind::compiled, OptimizerImpl::fused},
                      {"litgpt-2023", LossKind::logits16, OptimizerImpl::foreach},
                      {"fsdp-qlora-2024", LossKind::hf, OptimizerImpl::foreach}};
  for (const Row& row : rows) {
    INFO(row.name);
    CHECK(stack(row.name).loss == row.loss);
    CHECK(stack(row.name).optimizer_impl == row.impl);
  }
}

TEST_CASE("kernels and memory constants of the stacks") {
  CHECK(stack("megatron-2021").kernels.kv_expanded);
  CHECK(stack("megatron-core-2024").kernels.te_dummy_wgrad);
  CHECK(stack("megatron-core-2024").kernels.qkv == QkvLayout::separate);
  CHECK(stack("fsdp-qlora-2024").kernels.kv_expanded);
  CHECK(stack("hf-4.45").autocast);
  CHECK_FALSE(stack("fsdp1-2023").compile);
  CHECK(stack("fsdp2-2025-04").tensor_is_sequence_parallel);
  CHECK(stack("hf-4.45").memory.gathered_layers == 1);
  CHECK(stack("hf-4.45").memory.retains_frozen_inputs);
  CHECK(stack("fsdp2-2025-04").memory.gathered_layers == 2);
  CHECK(stack("fsdp2-2025-04").memory.fp32_reduce_scatter_input);
  CHECK_FALSE(stack("fsdp2-2025-04").memory.retains_frozen_inputs);
  CHECK(stack("fsdp2-2025-04").memory.reserved_factor == 1.0);
  CHECK(stack("fsdp-qlora-2024").memory.reserved_factor == 1.03);
  CHECK(stack("fsdp-qlora-2024").memory.logits_fragmentation);
  CHECK(stack("megatron-core-2024").memory.reserved_factor == 1.05);
  CHECK(stack("litgpt-2023").memory.quantized_linear_keeps_input);
  CHECK(stack("litgpt-2024").memory.quantized_base_runs_fp32);
  const StackMemory deepspeed = stack("deepspeed-2024").memory;
  CHECK(deepspeed.live_parameters == 1'000'000'000);
  CHECK(deepspeed.reduce_bucket == 500'000'000);
  CHECK(deepspeed.reduce_buckets == 2);
  CHECK(deepspeed.prefetch == 50'000'000);
  CHECK(deepspeed.reserved_factor == 1.03);
}

TEST_CASE("overlap of the stacks") {
  const Overlap none = stack("megatron-2021").overlap;
  CHECK_FALSE((none.grad_reduce || none.param_gather || none.tp || none.p2p));
  const Overlap all = stack("megatron-core-2024").overlap;
  CHECK((all.grad_reduce && all.param_gather && all.tp && all.p2p));
  for (const char* name : {"fsdp1-2023", "fsdp1-2024", "fsdp2-2024-12", "fsdp2-2025-04"}) {
    const Overlap fsdp = stack(name).overlap;
    CHECK((fsdp.grad_reduce && fsdp.param_gather && !fsdp.tp));
  }
}

TEST_CASE("without a stack the framework's own kernels and loss hold") {
  for (const Framework framework : {Framework::megatron, Framework::textbook}) {
    const Stack own = io::default_stack(framework, catalog::builtin_catalog());
    CHECK(own.name.empty());
    CHECK(own.framework == framework);
    CHECK(own.kernels.norm == NormKernel::fused);
    CHECK(own.kernels.mlp == MlpKernel::fused);
    CHECK(own.kernels.qkv == QkvLayout::fused);
    CHECK(own.kernels.softmax == SoftmaxKernel::fused16);
    CHECK(own.kernels.sp_input == SequenceParallelInput::regather);
    CHECK(own.kernels.wgrad == WeightGradient::fused);
    CHECK(own.kernels.moe_dispatch == MoeDispatch::permute);
    CHECK(own.kernels.moe_probs == MoeProbs::activation);
    CHECK(own.kernels.moe_combine == MoeCombine::scatter_add);
    CHECK(own.loss == LossKind::megatron);
    CHECK(own.timing.host_forward_s == stack("megatron-core-2024").timing.host_forward_s);
  }
  for (const Framework framework : {Framework::deepspeed, Framework::fsdp, Framework::ddp, Framework::dp}) {
    const Stack own = io::default_stack(framework, catalog::builtin_catalog());
    CHECK(own.name.empty());
    CHECK(own.framework == framework);
    CHECK(own.kernels.norm == NormKernel::naive);
    CHECK(own.kernels.mlp == MlpKernel::naive);
    CHECK(own.kernels.qkv == QkvLayout::separate);
    CHECK(own.kernels.softmax == SoftmaxKernel::fp32);
    CHECK(own.kernels.sp_input == SequenceParallelInput::keep);
    CHECK(own.kernels.wgrad == WeightGradient::separate);
    CHECK(own.kernels.moe_dispatch == MoeDispatch::loop);
    CHECK(own.kernels.moe_probs == MoeProbs::after);
    CHECK(own.kernels.moe_combine == MoeCombine::index_add);
    CHECK(own.loss == LossKind::hf);
  }
}

TEST_CASE("every framework has a stack of its own that holds where none is named") {
  for (std::size_t i = 0; i < framework_count; ++i) {
    const FrameworkFacts& facts = *framework_table[i];
    INFO(name(facts.framework));
    const Result<Stack> read = io::find_stack(facts.default_stack, "test", "", catalog::builtin_catalog());
    REQUIRE(read.ok());
    CHECK(read.value.framework == facts.framework);
    CHECK(io::default_stack(facts.framework, catalog::builtin_catalog()).name.empty());
  }
}

TEST_CASE("nanotron's kernels are its own, its time constants Megatron's") {
  const Stack nanotron = stack("nanotron-2025");
  CHECK(nanotron.kernels.norm == NormKernel::fused);
  CHECK(nanotron.kernels.mlp == MlpKernel::naive);
  CHECK(nanotron.kernels.sp_input == SequenceParallelInput::regather);
  CHECK(nanotron.kernels.wgrad == WeightGradient::separate);
  CHECK(nanotron.kernels.reentrant_checkpoint);
  CHECK(nanotron.flash == FlashKernel::v2);
  CHECK(nanotron.loss == LossKind::megatron);
  CHECK(nanotron.memory.loss_keeps_cast);
  CHECK_FALSE(nanotron.overlap.param_gather);
  CHECK_FALSE(nanotron.timing.measured);
  CHECK(nanotron.timing.host_forward_s == stack("megatron-core-2024").timing.host_forward_s);
}

TEST_CASE("an unknown stack is one problem with a suggestion") {
  const Result<Stack> result =
      io::find_stack("megatron-core-2042", "run.json", "/training/stack", catalog::builtin_catalog());
  REQUIRE(result.problems.size() == 1);
  CHECK(result.problems[0].file == "run.json");
  CHECK(result.problems[0].pointer == "/training/stack");
  CHECK_THAT(result.problems[0].message, test::Contains("megatron-core-2024"));
}
