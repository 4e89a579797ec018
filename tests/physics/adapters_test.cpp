// Low-rank adapters: what trains, what the frozen base keeps, what DoRA adds.
#include <string>

#include "shardplan/plan/estimate.hpp"
#include "support/catch.hpp"
#include "support/runs.hpp"

namespace {

using namespace shardplan;

Run adapted(const std::string& model, int rank, const std::string& targets, const std::string& more = "") {
  return test::run_of(R"({"model": ")" + model + R"(", "num_gpus": 1, "training": {"seq_length": 512, "peft":
      {"method": "lora", "rank": )" +
                      std::to_string(rank) + R"(, "targets": )" + targets + more + "}}}");
}

std::int64_t trainable(const std::string& model, int rank, const std::string& targets) {
  Estimate out;
  estimate(adapted(model, rank, targets), out);
  return out.model.trainable_parameters;
}

}  // namespace

TEST_CASE("trainable parameters as PEFT prints them") {
  // print_trainable_parameters of published notebooks and model cards; a fused module has one adapter.
  struct Row {
    const char* model;
    int rank;
    const char* targets;
    std::int64_t count;
  };
  const Row row = GENERATE(values<Row>({
      {"llama-2-7b", 8, R"(["q_proj", "v_proj"])", 4'194'304},
      {"llama-2-7b", 64, R"("all-linear")", 159'907'840},
      {"llama-3.1-8b", 16, R"(["q_proj", "v_proj"])", 6'815'744},
      {"llama-3.1-8b", 16, R"("all-linear")", 41'943'040},
      {"mistral-7b", 8, R"(["q_proj", "v_proj"])", 3'407'872},
      {"gpt2", 8, R"(["c_attn"])", 294'912},                   // 12 x 8 x (768 + 2304)
      {"falcon-7b", 16, R"(["query_key_value"])", 4'718'592},  // 32 x 16 x (4544 + 4672)
      {"gpt-neox-20b", 8, R"(["query_key_value"])", 8'650'752},
      {"phi-3-mini", 16, R"(["qkv_proj"])", 6'291'456},      // 32 x 16 x (3072 + 9216)
      {"phi-3-mini", 16, R"(["gate_up_proj"])", 9'961'472},  // 32 x 16 x (3072 + 16384)
      {"opt-6.7b", 16, R"(["q_proj", "v_proj"])", 8'388'608},
      {"llama-2-7b", 8, R"(["embed_tokens"])", 8 * (32'000 + 4096)},
      {"llama-2-7b", 8, R"(["lm_head"])", 8 * (32'000 + 4096)},
      {"gpt2", 4, R"(["wpe"])", 4 * (1024 + 768)},
  }));
  CAPTURE(row.model, row.targets, row.rank);
  CHECK(trainable(row.model, row.rank, row.targets) == row.count);
}

TEST_CASE("DoRA is LoRA and one magnitude per output row") {
  const auto count = [](const char* method) {
    Estimate out;
    estimate(test::run_of(R"({"model": "llama-2-7b", "num_gpus": 1, "training": {"peft": {"method": ")" +
                          std::string(method) + R"(", "rank": 8, "targets": ["q_proj", "down_proj"]}}})"),
             out);
    return out.model.trainable_parameters;
  };
  CHECK(count("dora") - count("lora") == 32 * (4096 + 4096));
  CHECK(count("rslora") == count("lora"));
}

TEST_CASE("DoRA keeps both products that its magnitude scales") {
  const auto saved = [](const char* method, double dropout) {
    const Run run = test::run_of(R"({"model": "llama-2-7b", "num_gpus": 1, "training": {"seq_length": 512, "peft":
        {"method": ")" + std::string(method) +
                                 R"(", "rank": 8, "targets": ["q_proj"], "adapter_dtype": "bf16",
         "dropout": )" + std::to_string(dropout) +
                                 "}}}");
    return estimate_detail(run).layers.back().saved_bytes;
  };
  for (const double dropout : {0.0, 0.1})
    CHECK(saved("dora", dropout) - saved("lora", dropout) == 512 * 4096 * (2 + 2));
}

TEST_CASE("an adapted embedding makes the first layer like the others") {
  CHECK(estimate_detail(adapted("llama-2-7b", 8, R"(["q_proj"])")).layers.size() == 2);
  CHECK(estimate_detail(adapted("llama-2-7b", 8, R"(["q_proj", "embed_tokens"])")).layers.size() == 1);
}

TEST_CASE("what fp8 makes smaller, and what it does not") {
  // Llama-3.1-8B under Megatron and Transformer Engine on one GPU: matrices of the layers are narrow, embedding and
  // head are not.
  const std::int64_t h = 4096, q = 4096, c = 1024, f = 14336, tokens = 4096;
  const std::int64_t matrices = 32 * (h * (q + 2 * c) + q * h + 3 * h * f);
  const auto parts = [](const std::string& training, const char* cluster) {
    Estimate out;
    estimate(
        test::run_of(R"({"num_gpus": 8, "cluster": ")" + std::string(cluster) +
                     R"(", "parallel": {"zero_stage": 1}, "training": {"framework": "megatron", )" + training + "}}"),
        out);
    return out.stages[0].moments[static_cast<std::size_t>(Moment::optimizer_step)];
  };
  const MemoryParts wide = parts(R"("precision": "bf16")", "dgx-h100");
  const MemoryParts narrow = parts(R"("precision": "fp8")", "dgx-h100");
  CHECK(narrow.parameters == wide.parameters);
  CHECK(narrow.gradients == wide.gradients);
  CHECK(narrow.optimizer == wide.optimizer);
  CHECK(narrow.transient - wide.transient == 2 * matrices);  // rows and their transpose
  const MemoryParts blackwell = parts(R"("precision": "fp8")", "dgx-b200");
  CHECK(blackwell.transient - parts(R"("precision": "bf16")", "dgx-b200").transient == matrices);
  const MemoryParts gathered = parts(R"("precision": "fp8", "fp8": {"param_gather": true})", "dgx-b200");
  CHECK(wide.parameters - gathered.parameters == matrices);  // one byte instead of two
  CHECK(gathered.transient == parts(R"("precision": "bf16")", "dgx-b200").transient);

  const auto saved = [](const char* precision) {
    return estimate_detail(test::run_of(R"({"num_gpus": 1, "training": {"framework": "megatron", "precision": ")" +
                                        std::string(precision) + R"("}})"))
        .layers[0]
        .saved_bytes;
  };
  // Inputs of qkv, up and down: one byte less; attention's output is kept wide for attention, and narrow beside it.
  CHECK(saved("bf16") - saved("fp8") == tokens * (h + h + f) - tokens * q);
}

TEST_CASE("torchtitan's fp8 keeps 16-bit inputs and weights") {
  const auto peak = [](const char* precision) {
    Estimate out;
    estimate(test::run_of(R"({"parallel": {"fsdp": "full_shard"}, "training": {"precision": ")" +
                          std::string(precision) + R"("}})"),
             out);
    return out.peak_bytes;
  };
  CHECK(peak("fp8") == peak("bf16"));
}
