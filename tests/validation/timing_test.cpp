// The fitted constants and the bands, against the measured steps of tests/evidence.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shardplan/plan/estimate.hpp"
#include "shardplan/plan/suspect.hpp"
#include "support/catch.hpp"
#include "support/runs.hpp"

using namespace shardplan;
using nlohmann::json;

namespace {

json constants() {
  std::ifstream file(SHARDPLAN_SOURCE_DIR "/configs/timing/constants.json");
  REQUIRE(file.good());
  return json::parse(file)["constants"];
}

Run with_stack(const std::string& snippet) { return test::run_of(snippet); }

double step_s(const Run& run) {
  Estimate out;
  estimate(run, out);
  return out.time.step_s;
}

}  // namespace

TEST_CASE("at most sixty constants are fitted, each within physical bounds and touching none") {
  const json list = constants();
  CHECK(list.size() <= 60);
  for (const json& constant : list) {
    INFO(constant["name"]);
    const double value = constant["value"], low = constant["low"], high = constant["high"], prior = constant["prior"];
    CHECK(value > low * 1.005);
    CHECK(value < high * 0.995);
    CHECK(prior >= low);
    CHECK(prior <= high);
    CHECK_FALSE(constant["unit"].get<std::string>().empty());
    CHECK_FALSE(constant["meaning"].get<std::string>().empty());
    CHECK_FALSE(constant["rows"].empty());
  }
}

TEST_CASE("a GPU and a stack hold what the constants say") {
  std::map<std::string, double> values;
  for (const json& constant : constants()) values[constant["name"]] = constant["value"];
  const Run run = with_stack(R"({"training": {"framework": "megatron", "stack": "megatron-core-2024"}})");
  CHECK(run.cluster.gpu.gemm.sustained == values.at("gpu/H100/sustained"));
  CHECK(run.cluster.gpu.attention_v3.backward == values.at("attention/v3/H100/backward"));
  CHECK(run.training.stack.timing.host_forward_s == values.at("megatron-core/host_forward"));
}

TEST_CASE("bands hold four of five measured steps, overall and by class") {
  std::ifstream file(SHARDPLAN_SOURCE_DIR "/tests/evidence/measured_time.jsonl");
  REQUIRE(file.good());
  std::map<std::string, std::pair<int, int>> inside;  // of how many
  for (std::string line; std::getline(file, line);) {
    const json row = json::parse(line);
    if (row.contains("flagged")) continue;
    const io::ReadRun read = io::read_run(io::run_input_from_json(row["run"].dump()), catalog::builtin_catalog());
    REQUIRE(read.ok());
    Estimate out;
    estimate(read.run, out);
    const double measured = row["measured"]["step_s"];
    const bool in_band = measured >= out.time.band_low_s && measured <= out.time.band_high_s;
    for (const std::string& key : {std::string("all"), std::string(name(out.time.band_class))}) {
      inside[key].first += in_band ? 1 : 0;
      ++inside[key].second;
    }
  }
  REQUIRE(inside.at("all").second > 500);
  for (const auto& [key, counts] : inside) {
    const double share = static_cast<double>(counts.first) / counts.second;
    INFO(key << ": " << counts.first << " of " << counts.second << " in the band");
    if (counts.second < 20) continue;
    CHECK(share >= 0.75);
    CHECK(share <= 0.90);
  }
}

TEST_CASE("sources that the fit had not seen are met nearly as well") {
  std::ifstream file(SHARDPLAN_SOURCE_DIR "/docs/validation_timing.json");
  REQUIRE(file.good());
  const json fit = json::parse(file);
  const json& fitted = fit["without"][0]["errors"];
  for (const char* source : {"korthikanti-2022", "bigscience-tr11", "vtrain"}) {
    INFO(source);
    CHECK(fit["left_out"][source].get<double>() <= 1.6 * fitted[source].get<double>());
  }
}

TEST_CASE("the least known aspect of a run decides its band") {
  const auto of = [](const std::string& snippet) {
    Estimate out;
    estimate(with_stack(snippet), out);
    CHECK(out.time.band_low_s < out.time.step_s);
    CHECK(out.time.step_s < out.time.band_high_s);
    return out.time.band_class;
  };
  const std::string stack = R"("training": {"framework": "megatron", "stack": "megatron-core-2024"})";
  CHECK(of("{" + stack + "}") == BandClass::known);
  CHECK(of("{}") == BandClass::other_stack);
  CHECK(of(R"({"model": "mixtral-8x7b", )" + stack + "}") == BandClass::mixture_of_experts);
  CHECK(of(R"({"cluster": "mi300x-8way", )" + stack + "}") == BandClass::no_table);
  CHECK(of(R"({"cluster": {"gpu": "h100", "inter_node": {"type": "efa"}}, "num_gpus": 16, )" + stack + "}") ==
        BandClass::other_fabric);
  CHECK(of(R"({"cluster": {"gpu": "h100", "inter_node": {"type": "efa"}}, "num_gpus": 8, )" + stack + "}") ==
        BandClass::known);
}

TEST_CASE("a checkpoint that is not reentrant does not run a layer's last product again") {
  const auto recompute = [](bool reentrant) {
    Estimate out;
    estimate(with_stack(std::string(R"({"training": {"recompute": "full", "kernels": {"reentrant_checkpoint": )") +
                        (reentrant ? "true" : "false") + "}}}"),
             out);
    return out.time.recompute_s;
  };
  // Llama's layer: down is 14336 of the 2 x 14336 + 14336 + 2.5 x 4096 columns that are multiplied.
  const double share = recompute(false) / recompute(true);
  CHECK(share > 0.60);
  CHECK(share < 0.80);
}

TEST_CASE("heads that are no multiple of eight wide slow unfused attention down") {
  const auto with_heads = [](int heads) {
    return step_s(with_stack(R"({"model": {"model_type": "transformer", "hidden_size": 4800, "num_hidden_layers": 4,
      "vocab_size": 50304, "num_attention_heads": )" +
                             std::to_string(heads) + R"(},
      "training": {"attention": "eager", "seq_length": 2048}})"));
  };
  CHECK(with_heads(32) > 1.25 * with_heads(30));  // 150 against 160 wide
}

TEST_CASE("a ring over context ranks computes the same attention in smaller blocks, never faster") {
  const auto attention_s = [](const char* gpus, int context, int length) {
    const std::string text = R"({"model":"llama-3.1-8b","cluster":")" + std::string(gpus) +
                             R"(","num_gpus":8,"parallel":{"context":)" + std::to_string(context) +
                             R"(},"training":{"framework":"megatron","global_batch_size":32,"seq_length":)" +
                             std::to_string(length) + R"(,"micro_batch_size":)" + std::to_string(context) + "}}";
    Estimate out;
    estimate(with_stack(text), out);
    return out.time.attention_s;
  };
  for (const char* gpus : {"dgx-h100", "dgx-a100-80gb"}) {
    for (const int length : {2048, 8192, 32768}) {
      double before = attention_s(gpus, 1, length);
      for (const int context : {2, 4, 8}) {
        CAPTURE(gpus, length, context);
        const double now = attention_s(gpus, context, length);
        CHECK(now >= before * 0.999);
        before = now;
      }
    }
  }
}

TEST_CASE("what offloaded activations move does not depend on how a stage is cut into chunks") {
  const auto moved = [](int chunks) {
    Estimate out;
    estimate(with_stack(R"({"model":"llama-3.1-8b","cluster":"dgx-h100","num_gpus":8,
                            "parallel":{"pipeline":2,"fsdp":"shard_grad_op","virtual_pipeline":)" +
                        std::to_string(chunks) +
                        R"(},"training":{"framework":"fsdp","global_batch_size":64,"micro_batch_size":4,
                            "offload":{"activations":"cpu"}}})"),
             out);
    return out.offload.to_host_bytes;
  };
  CHECK(moved(1) > 100e9);
  for (const int chunks : {2, 4, 8, 16}) CHECK(moved(chunks) == Approx(moved(1)).epsilon(0.01));
}

TEST_CASE("a link that is faster or slower than the one that was measured changes the exchange, its start apart") {
  Run run = with_stack(R"({"model":"llama-3.1-8b","cluster":"dgx-h100","num_gpus":8,"parallel":{"tensor":8},
                           "training":{"framework":"megatron","global_batch_size":8}})");
  const auto exposed_s = [&](double factor) {
    Run changed = run;
    changed.cluster.intra_node.bandwidth *= factor;
    Estimate out;
    estimate(changed, out);
    return out.time.exposed_by_group_s[static_cast<std::size_t>(GroupKind::tensor)];
  };
  const double now = exposed_s(1);
  CHECK(exposed_s(2) < 0.9 * now);
  CHECK(exposed_s(2) > 0.5 * now);
  CHECK(exposed_s(4) < exposed_s(2));
  CHECK(exposed_s(0.5) == Approx(2 * now).epsilon(0.03));
}

TEST_CASE("adapters of a large rank take the time of their products") {
  const auto compute = [](int rank) {
    Estimate out;
    estimate(with_stack(R"({"num_gpus": 1, "training": {"micro_batch_size": 2, "peft": {"method": "lora",
      "targets": "all-linear", "rank": )" +
                        std::to_string(rank) + "}}}"),
             out);
    return out.time.compute_s;
  };
  CHECK(compute(16) == test::Approx(compute(8)).epsilon(0.02));
  // 42 million parameters at rank 16: 16 times as many FLOP of rank 1024 over 8,192 tokens, at most at the dense peak.
  const double more = 6.0 * 8192 * 41'943'040 * (1024 - 16) / 16 / 989.4e12;
  CHECK(compute(1024) - compute(16) > 0.5 * more);
  CHECK(compute(1024) - compute(16) < 2 * more);
}

TEST_CASE("traffic beside compute is never free") {
  const std::string fsdp =
      R"("parallel": {"fsdp": "full_shard"}, "training": {"micro_batch_size": 4, "recompute": "full"})";
  Estimate out;
  estimate(with_stack("{" + fsdp + "}"), out);
  double time = 0, exposed = 0;
  for (const CommunicationCall& call : out.communication) {
    time += call.time_s;
    exposed += call.exposed_s;
  }
  CHECK(exposed > 0.25 * time);
  CHECK(exposed < 0.35 * time);
}

TEST_CASE("the suspect is the term that explains a measurement with the least surprise") {
  TimeEstimate time;
  time.step_s = 10;
  time.compute_s = 8;
  time.gemm_s = 7.5;
  time.attention_s = 0.5;
  time.communication_exposed_s = 2;
  time.exposed_by_group_s[static_cast<std::size_t>(GroupKind::data)] = 2;
  const Suspect slow = most_likely_off(time, 12);
  CHECK(slow.term == "data-parallel exchange");
  CHECK(slow.estimated_s == 2);
  CHECK(slow.would_have_to_be_s == 4);
  // Traffic of two seconds cannot save three.
  CHECK(most_likely_off(time, 7).term == "matrix products");
  CHECK(most_likely_off(time, 1).term.empty());
}
