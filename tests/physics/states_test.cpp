// Bytes per parameter of each framework, and how they divide.
#include "shardplan/physics/states.hpp"

#include <cmath>
#include <string>

#include "support/catch.hpp"
#include "support/runs.hpp"

namespace {

using namespace shardplan;

constexpr double parameters = 1e9;

StateBytes states(const std::string& snippet) {
  const Run run = test::run_of(snippet);
  UnitWeights unit;
  unit.dense.trained = parameters;
  return state_bytes(state_rule(run), unit, *find_optimizer(run.training.optimizer));
}

}  // namespace

TEST_CASE("bytes per parameter on eight GPUs") {
  struct Row {
    const char* parallel;
    const char* training;
    double parameter, gradient, optimizer;
  };
  const Row row = GENERATE(values<Row>({
      {R"({"zero_stage": 0})", R"({"framework": "textbook"})", 2, 2, 12},
      {R"({"zero_stage": 1})", R"({"framework": "textbook"})", 2, 2, 12 / 8.0},
      {R"({"zero_stage": 2})", R"({"framework": "textbook"})", 2, 2 / 8.0, 12 / 8.0},
      {R"({"zero_stage": 3})", R"({"framework": "textbook"})", 2 / 8.0, 2 / 8.0, 12 / 8.0},
      {R"({"zero_stage": 0})", R"({"framework": "textbook", "precision": "fp32"})", 4, 4, 8},
      {R"({"zero_stage": 0})", R"({"framework": "megatron"})", 2, 4, 12},
      {R"({"zero_stage": 1})", R"({"framework": "megatron"})", 2, 4, 12 / 8.0},
      {R"({"zero_stage": 1})", R"({"framework": "megatron", "grad_dtype": "bf16"})", 2, 2, 12 / 8.0},
      {R"({"fsdp": "full_shard"})", R"({"framework": "megatron"})", 2 / 8.0, 4 / 8.0, 12 / 8.0},
      {R"({"zero_stage": 0})", R"({"framework": "deepspeed"})", 2, 4, 12},
      {R"({"zero_stage": 1})", R"({"framework": "deepspeed"})", 2, 2, 12 / 8.0},
      {R"({"zero_stage": 2})", R"({"framework": "deepspeed"})", 2, 2 / 8.0, 12 / 8.0},
      {R"({"zero_stage": 3})", R"({"framework": "deepspeed"})", 2 / 8.0, 2 / 8.0, 12 / 8.0},
      {R"({"fsdp": "full_shard"})", R"({"framework": "fsdp"})", 4 / 8.0, 4 / 8.0, 8 / 8.0},
      {R"({"fsdp": "no_shard"})", R"({"framework": "fsdp"})", 4, 4, 8},
      {R"({"fsdp": "hybrid_shard", "shard_group": 4})", R"({"framework": "fsdp"})", 1, 1, 2},
      // nanotron: bf16 weights, whole fp32 sums of gradients, fp32 weights and moments over the data ranks.
      {R"({"zero_stage": 0})", R"({"framework": "nanotron"})", 2, 4, 12},
      {R"({"zero_stage": 1})", R"({"framework": "nanotron"})", 2, 4, 12 / 8.0},
      {R"({"zero_stage": 1, "tensor": 2})", R"({"framework": "nanotron"})", 2, 4, 12 / 4.0},
      {R"({})", R"({"framework": "ddp"})", 4, 4, 8},
      {R"({})", R"({"framework": "ddp", "param_dtype": "bf16"})", 2, 2, 4},
      {R"({})", R"({"framework": "ddp", "optimizer": "sgd"})", 4, 4, 0},
      {R"({})", R"({"framework": "ddp", "optimizer": "lion"})", 4, 4, 4},
      {R"({})", R"({"framework": "ddp", "param_dtype": "bf16", "optimizer": "adamw-8bit"})", 2, 2, 2 + 8 / 256.0},
  }));
  CAPTURE(row.parallel, row.training);
  const StateBytes bytes =
      states(std::string(R"({"parallel": )") + row.parallel + R"(, "training": )" + row.training + "}");
  CHECK(bytes.parameters == Approx(row.parameter * parameters));
  CHECK(bytes.gradients == Approx(row.gradient * parameters));
  CHECK(bytes.optimizer == Approx(row.optimizer * parameters));
}

TEST_CASE("Megatron's distributed optimizer pads its buffer to lcm(N, 128)") {
  const Run run =
      test::run_of(R"({"num_gpus": 8, "parallel": {"zero_stage": 1}, "training": {"framework": "megatron"}})");
  UnitWeights unit;
  unit.dense.trained = 1001;
  const StateBytes bytes = state_bytes(state_rule(run), unit, *find_optimizer("adamw"));
  CHECK(bytes.parameters == 2 * 1024);
  CHECK(bytes.gradients == 4 * 1024);
  CHECK(bytes.optimizer == 12 * 1024 / 8);
}

TEST_CASE("frozen weights have neither gradients nor states") {
  const Run run = test::run_of(
      R"({"num_gpus": 1, "training": {"peft": {"method": "qlora", "rank": 16, "targets": "all-linear", "quant": "nf4"}}})");
  UnitWeights unit;
  unit.dense.quantized = 64.0 * 256 * 100;
  unit.dense.frozen = 1000;
  const StateBytes bytes = state_bytes(state_rule(run), unit, *find_optimizer("adamw"));
  CHECK(bytes.gradients == 0);
  CHECK(bytes.optimizer == 0);
  // 4 bits, an 8-bit maximum per 64 and an fp32 one per 256 of those (Dettmers et al. 2023).
  CHECK(bytes.parameters == std::ceil(64.0 * 256 * 100 * (0.5 + 1 / 64.0 + 4 / (64.0 * 256))) + 2 * 1000);
}
