// Every default of a run file, and that the resolved run names it.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "shardplan/physics/matrices.hpp"
#include "shardplan/plan/validate.hpp"
#include "support/catch.hpp"
#include "support/runs.hpp"

using namespace shardplan;

namespace {

nlohmann::json resolved(std::string_view snippet) {
  const io::ReadRun read = test::read_snippet(snippet);
  if (!read.ok()) throw std::runtime_error(test::problem_lines(read.problems));
  return nlohmann::json::parse(read.run_json);
}

bool warns(const io::ReadRun& read, std::string_view code) {
  return std::any_of(read.warnings.begin(), read.warnings.end(), [&](const Warning& w) { return w.code == code; });
}

}  // namespace

TEST_CASE("the framework follows from the layout") {
  struct Row {
    const char* snippet;
    Framework framework;
  };
  const Row rows[] = {{"{}", Framework::ddp},
                      {R"({"parallel": {"zero_stage": 0}})", Framework::deepspeed},
                      {R"({"parallel": {"zero_stage": 3}})", Framework::deepspeed},
                      {R"({"parallel": {"zero_stage": null}})", Framework::ddp},
                      {R"({"parallel": {"fsdp": "full_shard"}})", Framework::fsdp},
                      {R"({"parallel": {"fsdp": "full_shard", "tensor": 2}})", Framework::fsdp},
                      {R"({"parallel": {"tensor": 2}})", Framework::megatron},
                      {R"({"parallel": {"pipeline": 2, "zero_stage": 1}})", Framework::megatron},
                      {R"({"parallel": {"context": 2}})", Framework::megatron},
                      {R"({"model": "mixtral-8x7b", "parallel": {"expert": 2}})", Framework::megatron}};
  for (const Row& row : rows) {
    CAPTURE(row.snippet);
    CHECK(test::run_of(row.snippet).training.framework == row.framework);
  }
}

TEST_CASE("defaults of the layout and the batch, each named") {
  const nlohmann::json run = resolved(R"({"num_gpus": 64, "parallel": {"tensor": 2, "pipeline": 4}})");
  CHECK(run["parallel"]["data"] == 8);
  CHECK(run["parallel"]["schedule"] == "1f1b");
  CHECK(run["parallel"]["sequence_parallel"] == true);
  CHECK(run["parallel"]["zero_stage"] == 0);
  CHECK(run["parallel"]["fsdp"].is_null());
  CHECK(run["parallel"]["fsdp_version"] == 2);
  CHECK(run["parallel"]["context_comm"] == "ring");
  CHECK(run["parallel"]["grad_sync"] == "last");
  CHECK(run["parallel"]["shard_group"] == 4);  // of 8 GPUs in a node, tensor takes 2 each
  CHECK(run["parallel"]["layers_per_stage"] == nlohmann::json({8, 8, 8, 8}));
  CHECK(run["parallel"]["order"] == "tp-cp-ep-dp-pp");
  CHECK(run["training"]["seq_length"] == 4096);
  CHECK(run["training"]["micro_batch_size"] == 1);
  CHECK(run["training"]["global_batch_size"] == 8 * 16);
  CHECK(run["training"]["precision"] == "bf16");
  CHECK(run["training"]["optimizer"] == "adamw");
  CHECK(run["training"]["recompute"] == "none");
  CHECK(run["training"]["attention"] == "flash");
  CHECK(run["training"]["make_vocab_size_divisible_by"] == 128);
  CHECK(run["training"]["initialisation"] == "sharded");
  const auto& defaults = run["defaults"];
  for (const char* named :
       {"/parallel/data", "/parallel/layers_per_stage", "/training/seq_length", "/training/global_batch_size",
        "/training/loss", "/training/kernels/norm", "/training/peft"}) {
    CAPTURE(named);
    CHECK(std::find(defaults.begin(), defaults.end(), named) != defaults.end());
  }
  for (const char* given : {"/model", "/num_gpus", "/parallel/tensor", "/parallel/pipeline", "/training/peft/rank"}) {
    CAPTURE(given);
    CHECK(std::find(defaults.begin(), defaults.end(), given) == defaults.end());
  }
}

TEST_CASE("sequence length, batch and schedule defaults follow model and pipeline") {
  CHECK(test::run_of(R"({"model": "gpt2"})").training.seq_length == 1024);
  CHECK(test::run_of(R"({"training": {"micro_batch_size": 3}})").training.global_batch_size == 24);
  const Run run = test::run_of(R"({"parallel": {"pipeline": 2, "virtual_pipeline": 4}})");
  CHECK(run.parallel.schedule == ScheduleKind::interleaved);
  CHECK(run.training.global_batch_size == 4 * 8);
  CHECK(run.parallel.layers_per_chunk == std::vector<int>(8, 4));
}

TEST_CASE("layers_per_stage counts stages or chunks") {
  struct Row {
    const char* parallel;
    std::vector<int> chunks;
  };
  const Row rows[] = {
      {R"({"pipeline": 2, "layers_per_stage": [15, 17]})", {15, 17}},
      {R"({"pipeline": 2, "virtual_pipeline": 2, "layers_per_stage": [14, 18]})", {7, 9, 7, 9}},
      {R"({"pipeline": 2, "virtual_pipeline": 2, "schedule": "zb-v", "layers_per_stage": [14, 18]})", {7, 9, 9, 7}},
      {R"({"pipeline": 2, "virtual_pipeline": 2, "layers_per_stage": [0, 20, 12, 0]})", {0, 20, 12, 0}},
      {R"({"pipeline": 1, "layers_per_stage": [32]})", {32}}};
  for (const Row& row : rows) {
    CAPTURE(row.parallel);
    CHECK(test::run_of(std::string(R"({"parallel": )") + row.parallel + "}").parallel.layers_per_chunk == row.chunks);
  }
}

TEST_CASE("types of the states, per framework") {
  using D = DType;
  struct Row {
    Framework framework;
    Precision precision;
    int zero_stage;
    std::optional<DType> parameter;
    plan::StateTypes expected;
  };
  constexpr plan::StateTypes all_fp32 = {D::fp32, D::fp32, false, D::fp32};
  const Row rows[] = {
      // The textbook's 2 + 2 + 12, and 4 + 4 + 8 in fp32.
      {Framework::textbook, Precision::bf16, 0, {}, {D::bf16, D::bf16, true, D::fp32}},
      {Framework::textbook, Precision::fp16, 3, {}, {D::fp16, D::fp16, true, D::fp32}},
      {Framework::textbook, Precision::fp32, 0, {}, all_fp32},
      {Framework::textbook, Precision::tf32, 0, {}, all_fp32},
      // Megatron-LM: 18 with bf16, 2 + 2 + 4 + 8 with fp16.
      {Framework::megatron, Precision::bf16, 1, {}, {D::bf16, D::fp32, true, D::fp32}},
      {Framework::megatron, Precision::fp8, 1, {}, {D::bf16, D::fp32, true, D::fp32}},
      {Framework::megatron, Precision::fp16, 0, {}, {D::fp16, D::fp16, true, D::fp32}},
      {Framework::megatron, Precision::bf16, 0, D::fp32, all_fp32},
      // DeepSpeed: fp32 gradients at stage 0 with bf16.
      {Framework::deepspeed, Precision::bf16, 0, {}, {D::bf16, D::fp32, true, D::fp32}},
      {Framework::deepspeed, Precision::bf16, 1, {}, {D::bf16, D::bf16, true, D::fp32}},
      {Framework::deepspeed, Precision::fp16, 0, {}, {D::fp16, D::fp16, true, D::fp32}},
      // torch.amp over fp32 weights; 16-bit weights are trained as they are.
      {Framework::fsdp, Precision::bf16, 0, {}, all_fp32},
      {Framework::ddp, Precision::bf16, 0, {}, all_fp32},
      {Framework::dp, Precision::fp16, 0, {}, all_fp32},
      {Framework::ddp, Precision::bf16, 0, D::bf16, {D::bf16, D::bf16, false, D::bf16}},
      {Framework::fsdp, Precision::bf16, 0, D::fp16, {D::fp16, D::fp16, false, D::fp16}},
  };
  for (const Row& row : rows) {
    CAPTURE(name(row.framework), name(row.precision), row.zero_stage);
    CHECK(plan::default_state_types(row.framework, row.precision, row.zero_stage, row.parameter) == row.expected);
  }
}

TEST_CASE("stated state types win; without a master copy the moments follow the weights") {
  const auto states = [](std::string_view training) {
    const Training t = test::run_of(std::string(R"({"training": )") + std::string(training) + "}").training;
    return plan::StateTypes{t.param_dtype, t.grad_dtype, t.master_weights, t.optimizer_state_dtype};
  };
  using D = DType;
  CHECK(states(R"({"framework": "textbook", "grad_dtype": "bf16", "master_weights": false})") ==
        plan::StateTypes{D::bf16, D::bf16, false, D::bf16});
  CHECK(states(R"({"framework": "megatron", "grad_dtype": "bf16", "optimizer_state_dtype": "bf16"})") ==
        plan::StateTypes{D::bf16, D::bf16, true, D::bf16});
  CHECK(states(R"({"framework": "ddp", "param_dtype": "bf16", "master_weights": true})") ==
        plan::StateTypes{D::bf16, D::bf16, true, D::fp32});
  const io::ReadRun no_copy = test::read_snippet(R"({"training": {"param_dtype": "fp32", "master_weights": true}})");
  CHECK_FALSE(no_copy.run.training.master_weights);
  CHECK(warns(no_copy, "master_weights_no_effect"));
}

TEST_CASE("adapters: fp32 by default, and then all of their states are") {
  const io::ReadRun lora =
      test::read_snippet(R"({"training": {"grad_dtype": "bf16", "param_dtype": "bf16", "peft": {"rank": 8}}})");
  REQUIRE(lora.ok());
  const Training& t = lora.run.training;
  CHECK(t.peft.method == PeftMethod::lora);
  CHECK(t.peft.alpha == 16);
  CHECK(t.peft.quant == Quantization::none);
  CHECK(t.peft.target_names == std::vector<std::string>{"q_proj", "v_proj"});
  CHECK(t.peft.targets == set_of(MatrixId::q_proj, MatrixId::v_proj));
  CHECK(t.param_dtype == DType::fp32);
  CHECK(t.grad_dtype == DType::fp32);
  CHECK_FALSE(t.master_weights);
  CHECK_FALSE(t.autocast);
  CHECK(warns(lora, "adapters_are_fp32"));
  CHECK_FALSE(warns(lora, "param_dtype_no_effect"));

  const Training half =
      test::run_of(R"({"training": {"peft": {"method": "qlora", "adapter_dtype": "bf16"}}})").training;
  CHECK(half.peft.quant == Quantization::nf4);
  CHECK(half.param_dtype == DType::bf16);
  CHECK(half.optimizer_state_dtype == DType::bf16);
  CHECK(test::run_of(R"({"training": {"peft": {"quant": "int8"}}})").training.peft.method == PeftMethod::qlora);
  CHECK(warns(test::read_snippet(R"({"training": {"peft": {"targets": []}}})"), "nothing_trainable"));
}

TEST_CASE("kernels, loss and overlap come from the framework's row, a stack, or single entries over it") {
  const Training megatron = test::run_of(R"({"training": {"framework": "megatron"}})").training;
  CHECK(megatron.kernels.norm == NormKernel::fused);
  CHECK(megatron.kernels.softmax == SoftmaxKernel::fused16);
  CHECK(megatron.kernels.sp_input == SequenceParallelInput::regather);
  CHECK(megatron.kernels.wgrad == WeightGradient::fused);
  CHECK(megatron.kernels.moe_dispatch == MoeDispatch::permute);
  CHECK(megatron.loss == LossKind::megatron);
  CHECK_FALSE(megatron.overlap.tp);
  CHECK(megatron.overlap.grad_reduce);
  const Training ddp = test::run_of("{}").training;
  CHECK(ddp.kernels.norm == NormKernel::naive);
  CHECK(ddp.kernels.qkv == QkvLayout::separate);
  CHECK(ddp.kernels.moe_combine == MoeCombine::index_add);
  CHECK(ddp.loss == LossKind::hf);
  CHECK(ddp.stack.name.empty());

  const Training old = test::run_of(R"({"training": {"framework": "megatron", "stack": "megatron-2021"}})").training;
  CHECK_FALSE(old.overlap.grad_reduce);
  CHECK_FALSE(old.overlap.p2p);
  CHECK(old.stack.name == "megatron-2021");
  const Training partial = test::run_of(R"({"training": {"framework": "megatron", "stack": "megatron-core-2024",
      "loss": "megatron", "kernels": {"qkv": "fused"}, "overlap": {"tp": false}}})")
                               .training;
  CHECK(partial.kernels.qkv == QkvLayout::fused);
  CHECK(partial.kernels.te_dummy_wgrad);
  CHECK(partial.loss == LossKind::megatron);
  CHECK_FALSE(partial.overlap.tp);
  CHECK(partial.overlap.grad_reduce);
}

TEST_CASE("autocast, gradient synchronisation, sequence parallelism and FSDP defaults") {
  CHECK(test::run_of("{}").training.autocast);
  CHECK_FALSE(test::run_of(R"({"training": {"param_dtype": "bf16"}})").training.autocast);
  CHECK_FALSE(test::run_of(R"({"training": {"precision": "fp32"}})").training.autocast);
  CHECK_FALSE(test::run_of(R"({"parallel": {"fsdp": "full_shard"}})").training.autocast);
  CHECK(test::run_of(R"({"training": {"stack": "hf-4.48", "param_dtype": "bf16"}})").training.autocast);
  CHECK_FALSE(test::run_of(R"({"training": {"stack": "hf-4.48", "autocast": false}})").training.autocast);

  CHECK(test::run_of(R"({"parallel": {"zero_stage": 1}})").parallel.grad_sync == GradSync::last);
  CHECK(test::run_of(R"({"parallel": {"zero_stage": 2}})").parallel.grad_sync == GradSync::every);
  CHECK(test::run_of(R"({"parallel": {"fsdp": "full_shard"}})").parallel.grad_sync == GradSync::every);
  CHECK(test::run_of(R"({"parallel": {"zero_stage": 2}, "training": {"framework": "textbook"}})").parallel.grad_sync ==
        GradSync::every);

  CHECK(test::run_of(R"({"training": {"framework": "fsdp"}})").parallel.fsdp == Fsdp::full_shard);
  CHECK_FALSE(
      test::run_of(R"({"parallel": {"tensor": 2}, "training": {"framework": "textbook"}})").parallel.sequence_parallel);
  CHECK(test::run_of(R"({"parallel": {"tensor": 2, "fsdp": "full_shard"}, "training": {"stack": "fsdp2-2025-04"}})")
            .parallel.sequence_parallel);
  const io::ReadRun alone = test::read_snippet(R"({"parallel": {"sequence_parallel": true}})");
  CHECK_FALSE(alone.run.parallel.sequence_parallel);
  CHECK(warns(alone, "sequence_parallel_no_effect"));
}

TEST_CASE("the default shard group is what lies in one node") {
  const auto group = [](int gpus, const char* parallel) {
    return test::run_of("{\"num_gpus\": " + std::to_string(gpus) + ", \"parallel\": " + parallel + "}")
        .parallel.shard_group;
  };
  CHECK(group(32, R"({"fsdp": "hybrid_shard"})") == 8);
  CHECK(group(32, R"({"fsdp": "hybrid_shard", "tensor": 4})") == 2);
  CHECK(group(32, R"({"fsdp": "hybrid_shard", "tensor": 8})") == 1);
  CHECK(group(32, R"({"fsdp": "hybrid_shard", "context": 2})") == 8);
  CHECK(group(4, R"({"fsdp": "hybrid_shard"})") == 4);
  CHECK(group(24, R"({"fsdp": "hybrid_shard", "pipeline": 2})") == 6);  // 8 does not divide 12
  CHECK(group(32, R"({"fsdp": "hybrid_shard", "pipeline": 4, "order": "pp-tp-cp-ep-dp"})") == 2);
}

TEST_CASE("warnings that follow from the run alone") {
  struct Row {
    const char* snippet;
    const char* code;
    const char* path;
  };
  const Row rows[] = {
      {R"({"model": "qwen2.5-3b", "parallel": {"tensor": 8}})", "kv_heads_replicated", "/parallel/tensor"},
      {R"({"model": "mixtral-8x7b", "parallel": {"tensor": 2}})", "expert_tensor_default", "/parallel/expert_tensor"},
      {R"({"model": "mixtral-8x7b", "parallel": {"tensor": 2, "sequence_parallel": false}})",
       "moe_needs_sequence_parallel", "/parallel/sequence_parallel"},
      {R"({"training": {"seq_length": 262144}})", "rope_beyond_max_position", "/training/seq_length"},
      {R"({"parallel": {"pipeline": 2, "zero_stage": 3}, "training": {"framework": "textbook"}})",
       "zero_repeats_collectives", "/parallel/zero_stage"},
  };
  for (const Row& row : rows) {
    const io::ReadRun read = test::read_snippet(row.snippet);
    CAPTURE(row.snippet, test::problem_lines(read.problems));
    REQUIRE(read.ok());
    CHECK(warns(read, row.code));
    for (const Warning& warning : read.warnings) {
      if (warning.code == row.code) CHECK(warning.path == row.path);
    }
  }
  CHECK(test::read_snippet(R"({"parallel": {"tensor": 2}})").warnings.empty());
  CHECK_FALSE(warns(test::read_snippet(R"({"model": "mixtral-8x7b", "parallel": {"tensor": 2, "expert_tensor": 1}})"),
                    "expert_tensor_default"));
}
