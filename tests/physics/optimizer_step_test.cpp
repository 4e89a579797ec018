// What an optimizer's step holds for a moment, and how long it takes.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "shardplan/plan/workspace.hpp"
#include "support/catch.hpp"
#include "support/estimated.hpp"
#include "support/optimizer_runs.hpp"

namespace {

using namespace shardplan;
using test::run_with;

constexpr double h = 4096, f = 11008, V = 32000, all = 6738415616;  // Llama-2-7B

}  // namespace

TEST_CASE("what the step holds besides the states") {
  struct Row {
    const char* training;
    double bytes;
  };
  const double newton_schulz = 2 * (h * f + 2 * h * h);
  const Row row = GENERATE_COPY(values<Row>({
      {R"({"optimizer": "adamw", "optimizer_impl": "foreach"})", 4 * all},
      {R"({"optimizer": "adamw", "optimizer_impl": "foreach", "param_dtype": "bf16"})", 2 * all},
      {R"({"optimizer": "adamw", "optimizer_impl": "fused"})", 0},
      {R"({"optimizer": "adamw", "optimizer_impl": "for_loop"})", 2 * 4 * V * h},
      {R"({"optimizer": "sgd", "optimizer_impl": "foreach"})", 0},
      {R"({"optimizer": "adagrad", "optimizer_impl": "foreach"})", 12 * all},
      {R"({"optimizer": "adamw-8bit", "optimizer_impl": "foreach"})", 0},
      {R"({"optimizer": "adafactor", "optimizer_impl": "foreach"})", 2 * 4 * V * h},
      {R"({"optimizer": "muon", "optimizer_impl": "foreach"})", 2 * 4 * V * h},
      {R"({"optimizer": "galore-8bit"})", 4 * h * f},
      {R"({"optimizer": "adamw", "framework": "megatron"})", 0},
      {R"({"optimizer": "muon", "framework": "megatron"})", newton_schulz},
      {R"({"optimizer": "adamw", "framework": "deepspeed", "grad_dtype": "bf16", "param_dtype": "bf16"})", 4 * all},
  }));
  CAPTURE(row.training);
  const auto transient = [](nlohmann::json run) {
    const Estimate estimate = test::estimate_of(run.dump());
    return static_cast<double>(estimate.stages[0].moments[static_cast<std::size_t>(Moment::optimizer_step)].transient);
  };
  nlohmann::json run = run_with("adamw");
  const nlohmann::json training = nlohmann::json::parse(row.training);
  const bool torch = !training.contains("framework");
  if (!torch) run["training"].erase("param_dtype");
  run["training"].update(training);
  // Nothing but what the framework holds anyway.
  nlohmann::json none = run;
  none["training"]["optimizer"] = torch ? "sgd" : "adamw";
  none["training"]["optimizer_impl"] = "fused";
  if (training.value("framework", "") == "deepspeed") none["training"]["optimizer"] = "lomo";
  CHECK(transient(run) - transient(none) == Approx(row.bytes).margin(1));
}

TEST_CASE("time follows the bytes that an optimizer moves") {
  const auto seconds = [](const char* optimizer, const char* framework) {
    nlohmann::json run = run_with(optimizer);
    run["num_gpus"] = 8;
    run["training"] = {{"framework", framework}, {"optimizer", optimizer}};
    return test::estimate_of(run.dump()).time.optimizer_s;
  };
  for (const char* framework : {"ddp", "megatron", "deepspeed"}) {
    CAPTURE(framework);
    const double adamw = seconds("adamw", framework);
    CHECK(seconds("sgd", framework) < seconds("adamw-8bit", framework));
    CHECK(seconds("adamw-8bit", framework) < seconds("lion", framework));
    CHECK(seconds("lion", framework) < adamw);
    CHECK(seconds("adam", framework) == adamw);
    CHECK(seconds("ademamix", framework) > adamw);
    // Newton-Schulz costs more than the momentum saves.
    CHECK(seconds("muon", framework) > 2 * adamw);
    CHECK(seconds("apollo", framework) < adamw);
  }
}

TEST_CASE("AdamW with fp32 moments takes the stack's constant, in the runs of configs/runs") {
  EstimateWorkspace w;
  Estimate result;
  int exact = 0;
  for (const std::string& path : test::run_files()) {
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    const io::ReadRun read = test::read_run(text);
    CAPTURE(path, test::problems_of(read));
    REQUIRE(read.ok());
    const Run& run = read.run;
    if (run.training.optimizer != "adamw" || run.training.offload.optimizer != OffloadDevice::none) continue;
    estimate(run, w, result);
    const StackTiming& timing = run.training.stack.timing;
    double expected = 0;
    for (const Stage& stage : w.stages) {
      const Weights &dense = stage.weights.dense, &expert = stage.weights.expert;
      const double elements = (dense.trained + dense.adapters) / w.rule.optimizer_shards +
                              (expert.trained + expert.adapters) / w.rule.expert_optimizer_shards;
      const double bytes = timing.optimizer_bytes_per_parameter * elements;
      expected = std::max(expected, memory_seconds(run.cluster.gpu, bytes) + timing.optimizer_fixed_s);
    }
    if (run.training.optimizer_state_dtype == DType::fp32) {
      ++exact;
      CHECK(result.time.optimizer_s == expected);
    } else {
      CHECK(result.time.optimizer_s < expected);
    }
  }
  CHECK(exact > 10);
}

TEST_CASE("Newton-Schulz is dealt out among the ranks that share the states") {
  const auto seconds = [](int zero_stage) {
    nlohmann::json run = run_with("muon");
    run["num_gpus"] = 8;
    run["parallel"] = {{"zero_stage", zero_stage}};
    run["training"] = {{"framework", "megatron"}, {"optimizer", "muon"}};
    return test::estimate_of(run.dump()).time.optimizer_s;
  };
  CHECK(seconds(1) < 0.2 * seconds(0));
}

TEST_CASE("pages cross PCIe only where the card has no room for them") {
  const auto offload = [](const char* model) {
    nlohmann::json run = run_with("paged-adamw-32bit", model);
    return test::estimate_of(run.dump()).time.offload_s;
  };
  CHECK(offload("gpt2") == 0);
  CHECK(offload("llama-2-7b") > 0.1);
}
