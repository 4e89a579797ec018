// What papers say fits: QLoRA, ZeRO-Offload, ZeRO-Infinity; and what holds for every fine-tune.
#include <fmt/format.h>

#include <cmath>

#include "support/catch.hpp"
#include "support/estimated.hpp"
#include "support/process.hpp"

using namespace shardplan;

namespace {

Estimate example(const std::string& name, const test::Overrides& overrides = {}) {
  return test::estimate_of(test::read_file(std::string(SHARDPLAN_SOURCE_DIR) + "/configs/runs/" + name), overrides);
}

const MemoryParts& at(const Estimate& estimate, Moment moment) {
  return estimate.stages.front().moments[static_cast<std::size_t>(moment)];
}

std::string llama(const std::string& training, int gpus = 8, const std::string& parallel = "") {
  return fmt::format(R"({{"model": "llama-3.1-8b", "cluster": "dgx-h100", "num_gpus": {}, "parallel": {{{}}},
                          "training": {{"seq_length": 2048, {}}}}})",
                     gpus, parallel, training);
}

std::string lora(int rank, const char* quant, const char* more = "") {
  return fmt::format(R"("peft": {{"method": "lora", "rank": {}, "targets": "all-linear", "quant": "{}"}}{})", rank,
                     quant, more);
}

}  // namespace

TEST_CASE("QLoRA: 65B fits one 48 GB card, and double quantisation frees 3.0 GB of it") {
  // Dettmers et al. 2023 (arXiv:2305.14314): 0.373 bit for each of the 64,760,053,760 elements of linear layers.
  const Estimate with = example("llama-65b-qlora-1xa6000.json");
  CHECK(with.fits);
  const Estimate without = example("llama-65b-qlora-1xa6000.json", {{"/training/peft/double_quant", "false"}});
  const double elements = 64'760'053'760.0;
  const double freed =
      static_cast<double>(at(without, Moment::backward).parameters - at(with, Moment::backward).parameters);
  CHECK(std::abs(freed - elements * (4.0 / 64 - 1.0 / 64 - 4.0 / (64 * 256))) <= 4096);
  CHECK_THAT(freed / 1e9, test::WithinAbs(3.0, 0.05));
}

TEST_CASE("paging moves the optimizer's bytes to the host, all of them") {
  const Estimate paged = example("llama-65b-qlora-1xa6000.json");
  // bitsandbytes keeps 32-bit states in fp32, also of bf16 adapters.
  const Estimate kept = example("llama-65b-qlora-1xa6000.json", {{"/training/optimizer", "\"adamw\""},
                                                                 {"/training/optimizer_state_dtype", "\"fp32\""}});
  CHECK(at(paged, Moment::backward).optimizer == 0);
  CHECK(paged.host_bytes_per_node == at(kept, Moment::backward).optimizer);
}

TEST_CASE("ZeRO-Offload: 13B on one V100-32GB, and not without") {
  // Ren et al. 2021 (arXiv:2101.06840), figure 7.
  CHECK(example("opt-13b-zero-offload-1xv100.json").fits);
  CHECK_FALSE(example("opt-13b-zero-offload-1xv100.json", {{"/training/offload", "null"}}).fits);
}

TEST_CASE("ZeRO-Infinity: a trillion parameters on one DGX-2 node with NVMe, and not in its host memory") {
  // Rajbhandari et al. 2021 (arXiv:2104.07857), table 1.
  const Estimate nvme = example("gpt-1t-zero-infinity-1xdgx2.json");
  CHECK(nvme.fits);
  // fp16 weights and gradients, fp32 master and moments: 2 + 12 bytes and more for each of 10^12.
  CHECK(static_cast<double>(nvme.nvme_bytes_per_node) > 14e12);
  CHECK_FALSE(example("gpt-1t-zero-infinity-1xdgx2.json",
                      {{"/training/offload", R"({"optimizer": "cpu", "parameters": "cpu"})"}})
                  .fits);
}

TEST_CASE("frozen parameters have neither gradients nor optimizer states") {
  for (const char* quant : {"none", "nf4", "int8", "gptq4"}) {
    const Estimate e = test::estimate_of(llama(lora(8, quant), 1));
    CAPTURE(quant);
    CHECK(at(e, Moment::optimizer_step).gradients == 4 * e.model.trainable_parameters);
    CHECK(at(e, Moment::optimizer_step).optimizer == 8 * e.model.trainable_parameters);
  }
}

TEST_CASE("a higher rank never needs less") {
  std::int64_t before = 0;
  for (const int rank : {1, 2, 8, 16, 64, 256}) {
    const Estimate e = test::estimate_of(llama(lora(rank, "nf4"), 1));
    CHECK(e.peak_bytes > before);
    before = e.peak_bytes;
  }
}

TEST_CASE("quantised bytes are exact") {
  // Llama-3.1-8B: 6,979,321,856 elements in linear layers, 1,050,939,392 in embedding and head, 266,240 in norms.
  const std::int64_t linear = std::int64_t{32} * (4096 * 6144 + 4096 * 4096 + 3 * 4096 * 14336),
                     rest = std::int64_t{2} * 128'256 * 4096 + 65 * 4096;
  const auto base = [](const char* quant, const char* more) {
    const Estimate e = test::estimate_of(llama(
        fmt::format(R"("peft": {{"method": "lora", "rank": 8, "targets": ["q_proj"], "quant": "{}"{}}})", quant, more),
        1));
    return at(e, Moment::optimizer_step).parameters - 4 * e.model.trainable_parameters - 2 * rest;
  };
  CHECK(base("none", "") == 2 * linear);
  CHECK(base("nf4", R"(, "double_quant": false)") == linear / 2 + linear / 16);
  CHECK(std::abs(static_cast<double>(base("nf4", R"(, "double_quant": true)")) -
                 static_cast<double>(linear) * (0.5 + 1.0 / 64 + 4.0 / (64 * 256))) < 1024);
  CHECK(base("int8", "") == linear + 4 * 32 * (6144 + 4096 + 2 * 14336 + 4096));
  CHECK(base("gptq4", "") == linear / 2 + linear / 128 * 2 + linear / 256);
}

TEST_CASE("a base is replicated under DDP and sharded under FSDP") {
  const Estimate one = test::estimate_of(llama(lora(8, "none", R"(, "framework": "ddp")"), 1));
  const Estimate eight = test::estimate_of(llama(lora(8, "none", R"(, "framework": "ddp")"), 8));
  CHECK(at(one, Moment::backward).parameters == at(eight, Moment::backward).parameters);
  const Estimate sharded =
      test::estimate_of(llama(lora(8, "none", R"(, "framework": "fsdp")"), 8, R"("fsdp": "full_shard")"));
  CHECK(at(sharded, Moment::backward).parameters < at(one, Moment::backward).parameters / 7);
}

TEST_CASE("offloading never raises GPU bytes, and what leaves appears elsewhere") {
  struct Row {
    const char* framework;
    const char* parallel;
    const char* offload;
  };
  const Row row = GENERATE(values<Row>({
      {"deepspeed", R"("zero_stage": 2)", R"({"optimizer": "cpu"})"},
      {"deepspeed", R"("zero_stage": 3)", R"({"optimizer": "cpu", "parameters": "cpu"})"},
      {"deepspeed", R"("zero_stage": 3)", R"({"optimizer": "nvme", "parameters": "nvme"})"},
      {"deepspeed", R"("zero_stage": 3)", R"({"optimizer": "nvme", "parameters": "cpu"})"},
      {"fsdp", R"("fsdp": "full_shard")", R"({"optimizer": "cpu", "parameters": "cpu"})"},
      {"megatron", R"("zero_stage": 1)", R"({"optimizer": "cpu", "optimizer_fraction": 0.5})"},
      {"megatron", R"("zero_stage": 1)", R"({"activations": "cpu"})"},
  }));
  CAPTURE(row.framework, row.offload);
  const auto run = [&](const std::string& offload) {
    return test::estimate_of(llama(fmt::format(R"("framework": "{}"{})", row.framework, offload), 8, row.parallel));
  };
  const Estimate kept = run("");
  const Estimate moved = run(fmt::format(R"(, "offload": {})", row.offload));
  CHECK(moved.peak_bytes <= kept.peak_bytes);
  const auto states = [](const Estimate& e) {
    const MemoryParts& parts = at(e, Moment::backward_end);
    return parts.parameters + parts.gradients + parts.optimizer;
  };
  const StageEstimate& stage = moved.stages.front();
  // DeepSpeed pins host memory to swap with NVMe: five buffers of 1e8 16-bit weights, four of the rank's 1.004e9 fp32
  // states, of which a sub-group holds 1e9. Nothing of the run lies in them.
  const std::string offload = row.offload;
  std::int64_t pinned = offload.find(R"("parameters": "nvme")") != std::string::npos ? 1'000'000'000 : 0;
  if (offload.find(R"("optimizer": "nvme")") != std::string::npos) pinned += 16'000'000'000;
  const std::int64_t elsewhere = stage.host_bytes + stage.nvme_bytes - pinned;
  CHECK(elsewhere > 0);
  if (std::string(row.offload).find("activations") == std::string::npos) {
    CHECK(std::abs(states(kept) - states(moved) - elsewhere) <= 2);  // each state is rounded to a byte
  } else {
    const auto activations = [](const Estimate& e) { return at(e, Moment::backward).activations; };
    CHECK(std::abs(activations(kept) - activations(moved) - elsewhere) <= 1);
  }
  CHECK(moved.time.step_s >= kept.time.step_s);
}

TEST_CASE("what offloading moves, by link") {
  // 8,030,261,248 parameters over eight ranks: 16-bit gradients go down and weights come up once a step; weights kept
  // on the host come up for both passes of each of four microbatches; fp32 master and moments cross NVMe both ways.
  const std::int64_t shard = 8'030'261'248 / 8;
  const auto moved = [](const char* offload) {
    return test::estimate_of(
               llama(fmt::format(R"("framework": "deepspeed", "micro_batch_size": 1, "global_batch_size": 32,
                                                  "offload": {})",
                                 offload),
                     8, R"("zero_stage": 3)"))
        .offload;
  };
  const auto about = [](double value, std::int64_t expected) {
    return std::abs(value - static_cast<double>(expected)) < 1e-6 * static_cast<double>(expected);
  };
  const OffloadEstimate optimizer = moved(R"({"optimizer": "cpu"})");
  CHECK(about(optimizer.to_host_bytes, 2 * shard));
  CHECK(about(optimizer.from_host_bytes, 2 * shard));
  CHECK(optimizer.nvme_read_bytes == 0);
  CHECK(optimizer.passes_s == 0);
  const OffloadEstimate both = moved(R"({"optimizer": "nvme", "parameters": "nvme"})");
  CHECK(about(both.from_host_bytes, 2 * shard + 2 * 4 * 2 * shard));
  CHECK(about(both.nvme_written_bytes, 12 * shard));
  CHECK(about(both.nvme_read_bytes, 12 * shard + 2 * 4 * 2 * shard));
  CHECK(both.step_s > optimizer.step_s);
}
