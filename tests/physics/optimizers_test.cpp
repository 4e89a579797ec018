// What each optimizer keeps of a model's tensors, and who shares it.
#include "shardplan/physics/optimizers.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shardplan/physics/optimizer_states.hpp"
#include "support/catch.hpp"
#include "support/estimated.hpp"
#include "support/optimizer_runs.hpp"

namespace {

using namespace shardplan;
using test::run_with;

struct Held {
  double parameters, gradients, optimizer, host;
};

Held held(const nlohmann::json& run) {
  const Estimate estimate = test::estimate_of(run.dump());
  const StageEstimate& stage = estimate.stages[0];
  const MemoryParts& parts = stage.peak();
  return {static_cast<double>(parts.parameters), static_cast<double>(parts.gradients),
          static_cast<double>(parts.optimizer), static_cast<double>(stage.host_bytes)};
}

// Llama-2-7B: 32 layers of q, k, v, o (h x h), gate, up, down (h x f); token table and head (V x h); 65 norms.
constexpr double h = 4096, f = 11008, V = 32000, layers = 32;
constexpr double squares = 4 * layers, rectangles = 3 * layers;  // how many matrices of either kind
constexpr double hidden = squares * h * h + rectangles * h * f;
constexpr double tables = 2 * V * h;
constexpr double vectors = (2 * layers + 1) * h;
constexpr double all = hidden + tables + vectors;
constexpr double sides = squares * 2 * h + rectangles * (h + f) + 2 * (V + h);
constexpr double r = h / 4;

/// In blocks of `block` elements with an fp32 scale each; every tensor of this model is whole blocks.
double quantized(double tensors, double bytes, double block) { return tensors * (bytes + 4 / block) * all; }

/// Squares of the blocks of at most 1024 that two sides are cut into.
double blocks(double rows, double cols) {
  double sum = 0;
  for (double i = 0; i < rows; i += 1024) {
    for (double j = 0; j < cols; j += 1024) {
      const double height = std::min(1024.0, rows - i), width = std::min(1024.0, cols - j);
      sum += height * height + width * width;
    }
  }
  return sum;
}

double low_rank(double projector, double moments) {
  return squares * (projector * h * r + moments * r * h) + rectangles * (projector * h * r + moments * r * f);
}

}  // namespace

TEST_CASE("bytes of every optimizer's states on Llama-2-7B in fp32") {
  const double eight_bit = 1 + 4 / 256.0;
  struct Row {
    const char* name;
    double bytes;
  };
  const std::vector<Row> rows = {
      {"sgd", 0},
      {"sgd-momentum", 4 * all},
      {"adam", 8 * all},
      {"adamw", 8 * all},
      {"adamw-amsgrad", 12 * all},
      {"precision-aware", 8 * all},
      {"adamw-8bit", quantized(2, 1, 256)},
      {"adamw-4bit", quantized(2, 0.5, 128)},
      {"adamw-fp8", quantized(2, 1, 256)},
      {"coat", quantized(2, 1, 128)},
      {"lion", 4 * all},
      {"lion-8bit", quantized(1, 1, 256)},
      {"adagrad", 4 * all},
      {"rmsprop", 4 * all},
      {"lamb", 8 * all},
      {"ademamix", 12 * all},
      {"ademamix-8bit", quantized(3, 1, 256)},
      {"adafactor", 4 * (sides + vectors)},
      {"adafactor-momentum", 4 * all + 4 * (sides + vectors)},
      {"adam-mini", 4 * all + 4 * (squares * h + layers * (2 * f + h) + 2 * V) + 4 * (2 * layers + 1)},
      {"came", 4 * all + 8 * sides + 4 * vectors},
      {"sm3", 4 * all + 4 * (sides + vectors)},
      {"sophia", 8 * all},
      {"schedule-free-adamw", 8 * all},
      {"prodigy", 16 * all},
      {"muon", 4 * hidden + 8 * (tables + vectors)},
      {"dion", 4 * hidden + 4 * (squares + rectangles) * h * h + 8 * (tables + vectors)},
      {"shampoo", 8 * all + 8 * (squares * blocks(h, h) + rectangles * blocks(h, f) + 2 * blocks(V, h))},
      {"soap", 8 * all + 8 * (squares * 2 * h * h + rectangles * h * h + 2 * h * h)},
      {"galore", low_rank(4, 8) + 8 * (tables + vectors)},
      {"galore-8bit", low_rank(4, 2 * eight_bit) + 2 * eight_bit * (tables + vectors)},
      {"q-galore", low_rank(0.5, 2) + 2 * eight_bit * (tables + vectors)},
      {"apollo", low_rank(0, 8) + 8 * (tables + vectors)},
      {"apollo-mini", 8 * (squares * h + rectangles * f) + 8 * (tables + vectors)},
      {"lomo", 0},
      {"adalomo", 4 * (sides + vectors)},
      {"badam", 8 * (4 * h * h + 3 * h * f + 2 * h)},
      {"one-bit-adam", 16 * all},
      {"kahan-adamw", 10 * all},
      {"fp8-lm", 3 * all},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(held(run_with(row.name)).optimizer == Approx(row.bytes).epsilon(1e-12).margin(1));
  }
  // Paged states are on the host; of tensors under 1e5 elements they stay.
  const std::vector<Row> paged = {{"paged-adamw-32bit", 8},     {"paged-adamw-8bit", 2 * eight_bit},
                                  {"paged-lion-32bit", 4},      {"paged-lion-8bit", eight_bit},
                                  {"paged-ademamix-32bit", 12}, {"paged-ademamix-8bit", 3 * eight_bit}};
  for (const Row& row : paged) {
    CAPTURE(row.name);
    const Held bytes = held(run_with(row.name));
    CHECK(bytes.host == Approx(row.bytes * (hidden + tables)).margin(1));
    CHECK(bytes.optimizer == Approx(row.bytes * vectors).margin(1));
  }
  CHECK(rows.size() + paged.size() == optimizers().size());
}

TEST_CASE("whole modes of training, bytes per parameter (weights, gradients, states)") {
  struct Row {
    const char* training;
    double bytes;
  };
  const Row row = GENERATE(values<Row>({
      {R"({"framework": "megatron"})", 18},
      {R"({"framework": "megatron", "optimizer": "precision-aware"})", 16},
      {R"({"framework": "megatron", "optimizer": "precision-aware", "grad_dtype": "bf16",
           "optimizer_state_dtype": "bf16"})",
       10},
      {R"({"framework": "megatron", "optimizer": "precision-aware", "grad_dtype": "bf16",
           "optimizer_state_dtype": "fp8"})",
       8},
      {R"({"framework": "ddp", "optimizer": "kahan-adamw"})", 10},
      {R"({"framework": "ddp", "optimizer": "fp8-lm"})", 8},
      {R"({"framework": "ddp", "optimizer": "lomo"})", 2},
      {R"({"framework": "ddp", "optimizer": "paged-adamw-32bit", "param_dtype": "bf16"})", 4 + 8 * vectors / all},
  }));
  CAPTURE(row.training);
  nlohmann::json run = run_with("adamw");
  run["training"] = nlohmann::json::parse(row.training);
  const Held bytes = held(run);
  CHECK((bytes.parameters + bytes.gradients + bytes.optimizer) / all == Approx(row.bytes).epsilon(1e-6));
}

TEST_CASE("8-bit states: whole blocks, small tensors and the Trainer's embedding in fp32") {
  StateCounting counting;
  counting.optimizer = find_optimizer("adamw-8bit");
  CHECK(tensor_state_bytes(counting, TensorRole::vector, 4095, 1) == 8 * 4095);
  CHECK(tensor_state_bytes(counting, TensorRole::vector, 4096, 1) == 2 * (4096 + 4 * 16));
  CHECK(tensor_state_bytes(counting, TensorRole::linear, 100, 100) == 2 * (10000 + 4 * 40));
  nlohmann::json run = run_with("adamw-8bit");
  run["training"]["stack"] = "hf-4.48";
  CHECK(held(run).optimizer == Approx(8 * V * h + 2 * (1 + 4 / 256.0) * (all - V * h)));
}

TEST_CASE("Muon's momentum is on hidden matrices, each expert's and the router among them") {
  // GPT-2: 12 h^2 a layer; token and position tables, norms and biases keep Adam's two.
  constexpr double gpt2 = 124439808, gpt2_hidden = 12.0 * 12 * 768 * 768;
  CHECK(held(run_with("muon", "gpt2")).optimizer == 4 * gpt2_hidden + 8 * (gpt2 - gpt2_hidden));
  constexpr double llama = 8030261248, llama_hidden = llama - 2.0 * 128256 * 4096 - 65 * 4096;
  CHECK(held(run_with("muon", "llama-3.1-8b")).optimizer == 4 * llama_hidden + 8 * (llama - llama_hidden));
  constexpr double mixtral = 46702792704, mixtral_hidden = mixtral - tables - vectors;
  CHECK(held(run_with("muon", "mixtral-8x7b")).optimizer == 4 * mixtral_hidden + 8 * (tables + vectors));

  StateCounting counting;
  counting.optimizer = find_optimizer("muon");
  CHECK(tensor_state_bytes(counting, TensorRole::hidden, 8, 4096) == 4 * 8 * 4096);
  CHECK(matrix_step_bytes(*counting.optimizer, 4096, 1024) == 2 * (4096 * 1024 + 2 * 1024 * 1024));
}

TEST_CASE("Megatron deals whole matrices out: a rank never holds less than the largest one's states") {
  nlohmann::json run = run_with("soap");
  run["num_gpus"] = 1024;
  run["parallel"] = {{"zero_stage", 1}};
  run["training"] = {{"framework", "megatron"}, {"optimizer", "soap"}, {"make_vocab_size_divisible_by", 1}};
  const double largest = 8 * V * h + 8 * h * h;
  const double master = 4 * std::ceil(all / 1024);
  CHECK(held(run).optimizer >= largest);
  CHECK(held(run).optimizer <= largest + master + 4 * 1024);
  run["training"]["optimizer"] = "shampoo";  // in blocks
  CHECK(held(run).optimizer < largest);
}

TEST_CASE("more sharding never holds more, whatever the optimizer; frozen weights have no states") {
  for (const Optimizer& optimizer : optimizers()) {
    CAPTURE(optimizer.name);
    double before = 1e30;
    for (const int stage : {0, 1, 2, 3}) {
      nlohmann::json run = run_with(std::string(optimizer.name));
      run["num_gpus"] = 8;
      run["parallel"] = {{"zero_stage", stage}};
      run["training"] = {{"framework", "deepspeed"}, {"optimizer", optimizer.name}};
      const Held now = held(run);
      const double sum = now.parameters + now.gradients + now.optimizer;
      // Gradients are fp32 at stage 0, bf16 above.
      CHECK(sum <= before);
      before = sum;
    }
    for (const char* framework : {"megatron", "fsdp"}) {
      nlohmann::json run = run_with(std::string(optimizer.name));
      run["training"] = {{"framework", framework}, {"optimizer", optimizer.name}};
      if (std::string(framework) == "megatron") run["parallel"] = {{"zero_stage", 1}};
      double last = 1e30;
      for (const int gpus : {1, 2, 8, 64, 512}) {
        run["num_gpus"] = gpus;
        const double now = held(run).optimizer;
        CAPTURE(framework, gpus);
        CHECK(now <= last + 4096);
        last = now;
      }
    }
    nlohmann::json frozen = run_with(std::string(optimizer.name));
    frozen["training"]["peft"] = {{"rank", 16}, {"targets", nlohmann::json::array()}};
    frozen["training"].erase("param_dtype");
    const Held none = held(frozen);
    CHECK(none.optimizer == 0);
    CHECK(none.gradients == 0);
    CHECK(none.host == 0);
  }
}

TEST_CASE("adapters are matrices: r x in and out x r") {
  nlohmann::json run = run_with("adafactor");
  run["training"].erase("param_dtype");
  run["training"]["peft"] = {{"rank", 16}, {"targets", {"q_proj", "down_proj"}}};
  CHECK(held(run).optimizer == layers * 4 * ((16 + h) + (h + 16) + (16 + f) + (h + 16)));
  run["training"]["optimizer"] = "muon";
  CHECK(held(run).optimizer == layers * 4 * 16 * (2 * h + f + h));
}

TEST_CASE("names: exact, aliases, any case, hyphens and underscores alike") {
  struct Row {
    const char* text;
    const char* name;
  };
  const Row row = GENERATE(values<Row>({{"adamw", "adamw"},
                                        {"AdamW", "adamw"},
                                        {"adamw_torch", "adamw"},
                                        {"adamw_bnb_8bit", "adamw-8bit"},
                                        {"paged_adamw_8bit", "paged-adamw-8bit"},
                                        {"PAGED_ADAMW_32BIT", "paged-adamw-32bit"},
                                        {"schedule_free_adamw", "schedule-free-adamw"},
                                        {"galore_adamw_8bit", "galore-8bit"},
                                        {"adamw_anyprecision", "kahan-adamw"},
                                        {"OneBitAdam", "one-bit-adam"},
                                        {"dist_muon", "muon"}}));
  CAPTURE(row.text);
  const NamedOptimizer found = parse_optimizer(row.text);
  REQUIRE(found.optimizer != nullptr);
  CHECK(found.optimizer->name == row.name);
  CHECK(!found.impl);
}

TEST_CASE("an alias that says how the step runs sets it; every alias has its optimizer") {
  CHECK(parse_optimizer("adamw_torch_fused").impl == OptimizerImpl::fused);
  CHECK(parse_optimizer("adamx").optimizer == nullptr);
  for (const OptimizerAlias& alias : optimizer_aliases()) {
    CAPTURE(alias.name);
    CHECK(find_optimizer(alias.optimizer) != nullptr);
    CHECK(find_optimizer(alias.name) == nullptr);
  }
  for (const Optimizer& optimizer : optimizers()) {
    CAPTURE(optimizer.name);
    CHECK(std::count_if(optimizers().begin(), optimizers().end(),
                        [&](const Optimizer& other) { return other.name == optimizer.name; }) == 1);
    CHECK(!optimizer.description.empty());
    CHECK(!optimizer.source.empty());
  }
}
