// The estimate's document: members, their order, integers for bytes, null for what cannot be known.
#include "shardplan/io/estimate_json.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "shardplan/plan/results.hpp"
#include "support/catch.hpp"

namespace {

using shardplan::Estimate;
using shardplan::EstimateDetail;
using shardplan::MemoryParts;
using shardplan::Moment;
using shardplan::Run;
using shardplan::io::estimate_json;
using shardplan::io::EstimateContext;
using Json = nlohmann::ordered_json;

Run example_run() {
  Run run;
  run.model.name = "a \"quoted\" \\ name\nof two lines";
  return run;
}

Estimate example_estimate() {
  Estimate estimate;
  estimate.model.parameters = 70'553'706'496;
  estimate.capacity_bytes = 85'000'000'000;
  estimate.peak_bytes = 9'007'199'254'740'993;  // 2^53 + 1: no double holds it
  estimate.peak_stage = 1;
  estimate.headroom_bytes = -5;
  estimate.stages.resize(2);
  for (int i = 0; i < 2; ++i) {
    shardplan::StageEstimate& stage = estimate.stages[static_cast<std::size_t>(i)];
    stage.stage = i;
    stage.peak_moment = Moment::backward;
    stage.moments[static_cast<std::size_t>(Moment::backward)] = {1, 2, 3, 4, 5, 6, 7 + i};
    stage.moments[static_cast<std::size_t>(Moment::loss)] = {1, 2, 3, 4, 0, 0, 7};
    stage.has_moment[static_cast<std::size_t>(Moment::backward)] = true;
    stage.has_moment[static_cast<std::size_t>(Moment::loss)] = i == 1;
  }
  estimate.communication.add({"expert_tensor_all_gather", shardplan::Collective::all_gather,
                              shardplan::GroupKind::expert_tensor, 2, shardplan::Scope::intra_node, 3, 4, 5, 0.5,
                              0.25});
  estimate.time.step_s = 32;
  estimate.throughput.peak_flop_per_s = 989.4e12;
  return estimate;
}

Json document(const Estimate& estimate, const EstimateContext& context = {"{}", nullptr, nullptr, nullptr}) {
  return Json::parse(estimate_json(example_run(), estimate, context));
}

std::vector<std::string> names(const Json& object) {
  std::vector<std::string> all;
  for (const auto& member : object.items()) all.push_back(member.key());
  return all;
}

using Names = std::vector<std::string>;
const Names part_names = {"parameters_bytes",  "gradients_bytes", "optimizer_bytes",
                          "activations_bytes", "transient_bytes", "communication_buffers_bytes",
                          "framework_bytes",   "total_bytes"};

}  // namespace

TEST_CASE("every number that the document says of the whole run is found by its path, with its value") {
  Estimate estimate = example_estimate();
  estimate.time = {32, 20, 1, 2, 3, 4, 5};
  estimate.sent = {1, 2, 3, 4, 5};
  estimate.model.by_part.mlp = 7;
  estimate.throughput.samples_per_s = 3;
  const Json flat = document(estimate).flatten();
  std::size_t found = 0;
  for (const auto& member : flat.items()) {
    const std::string& path = member.key();
    // Lists are of stages, calls and warnings; the run itself is input.
    const bool listed = path.find_first_of("0123456789") != std::string::npos &&
                        path.find("1e12") == std::string::npos && path != "/throughput/mfu_6n";
    if (listed || !member.value().is_number() || path.rfind("/run/", 0) == 0) continue;
    CAPTURE(path);
    const shardplan::plan::ResultField* const field = shardplan::plan::find_result(path);
    REQUIRE(field != nullptr);
    CHECK(field->value(example_run(), estimate) == member.value().get<double>());
    ++found;
  }
  CHECK(found > 35);
}

TEST_CASE("members stand in the schema's order") {
  const Json json = document(example_estimate());
  CHECK(names(json) == Names{"schema", "version", "run", "model", "memory", "communication", "pipeline", "time",
                             "throughput", "warnings"});
  CHECK(names(json["model"]) == Names{"name", "parameters", "active_parameters", "trainable_parameters",
                                      "padded_vocab_size", "parameters_by_part"});
  CHECK(names(json["model"]["parameters_by_part"]) ==
        Names{"embedding", "attention", "mlp", "experts", "router", "norm", "head", "adapters"});
  CHECK(names(json["memory"]) == Names{"capacity_bytes", "peak_bytes", "peak_stage", "peak_moment", "reserved_bytes",
                                       "reserved_band_bytes", "headroom_bytes", "fits", "host_bytes_per_node",
                                       "nvme_bytes_per_node", "stages"});
  Names stage = {"stage", "layers", "parameters", "in_flight_microbatches", "peak_moment"};
  stage.insert(stage.end(), part_names.begin(), part_names.end());
  for (const char* const name : {"reserved_bytes", "host_bytes", "nvme_bytes", "moments"}) stage.emplace_back(name);
  CHECK(names(json["memory"]["stages"][0]) == stage);
  CHECK(names(json["communication"]) == Names{"calls", "sent_bytes_per_step"});
  CHECK(names(json["communication"]["calls"][0]) == Names{"name", "op", "group", "group_size", "scope",
                                                          "calls_per_step", "message_bytes", "sent_bytes_per_step",
                                                          "time_s", "exposed_s"});
  CHECK(names(json["communication"]["sent_bytes_per_step"]) ==
        Names{"tensor", "pipeline", "data", "context", "expert", "total"});
  CHECK(names(json["pipeline"]) == Names{"schedule", "num_microbatches", "bubble_fraction", "ideal_bubble_fraction"});
  CHECK(names(json["time"]) == Names{"step_s", "compute_s", "recompute_s", "communication_exposed_s", "bubble_s",
                                     "optimizer_s", "offload_s", "step_band_s", "step_band_class"});
  CHECK(names(json["throughput"]) ==
        Names{"tokens_per_s", "tokens_per_s_per_gpu", "samples_per_s", "model_flop_per_token", "score_flop_per_token",
              "peak_tflops_per_gpu", "model_tflops_per_gpu", "hardware_tflops_per_gpu", "mfu", "hfu", "mfu_causal",
              "mfu_6n", "gpu_hours_per_1e12_tokens", "price_per_1e12_tokens"});
}

TEST_CASE("bytes are exact integers and a stage repeats the parts of its peak") {
  const Json json = document(example_estimate());
  CHECK(json["memory"]["peak_bytes"].is_number_integer());
  CHECK(json["memory"]["peak_bytes"].get<std::int64_t>() == 9'007'199'254'740'993);
  CHECK(json["memory"]["headroom_bytes"].get<std::int64_t>() == -5);
  CHECK(json["memory"]["peak_moment"] == "backward");
  const Json& stages = json["memory"]["stages"];
  REQUIRE(stages.size() == 2);
  CHECK(stages[0]["total_bytes"] == 28);
  CHECK(stages[1]["total_bytes"] == 29);
  CHECK(stages[1]["framework_bytes"] == 8);
  CHECK(names(stages[0]["moments"]) == Names{"backward"});
  CHECK(names(stages[1]["moments"]) == Names{"loss", "backward"});
  CHECK(names(stages[1]["moments"]["loss"]) == part_names);
  CHECK(stages[1]["moments"]["loss"]["total_bytes"] == 17);
}

TEST_CASE("text, rates and groups") {
  const Json json = document(example_estimate());
  CHECK(json["schema"] == "shardplan/estimate/v1");
  CHECK(json["model"]["name"] == example_run().model.name);
  CHECK(json["time"]["step_s"].is_number_float());
  CHECK_THAT(json["throughput"]["peak_tflops_per_gpu"].get<double>(), test::WithinRel(989.4, 1e-12));
  CHECK(json["throughput"]["price_per_1e12_tokens"].is_null());
  CHECK(json["communication"]["calls"][0]["group"] == "expert");  // the schema knows seven groups
  Estimate priced = example_estimate();
  priced.throughput.has_price = true;
  priced.throughput.price_per_1e12_tokens = 0.1;
  CHECK(document(priced)["throughput"]["price_per_1e12_tokens"] == 0.1);
}

TEST_CASE("the resolved run is part of the document as it was given") {
  const Json json =
      document(example_estimate(), {"{\n  \"model\": \"m\",\n  \"defaults\": [\"/a\"]\n}", nullptr, nullptr, nullptr});
  CHECK(names(json["run"]) == Names{"model", "defaults"});
  const std::string text =
      estimate_json(example_run(), example_estimate(), {"{\n  \"model\": \"m\"\n}", nullptr, nullptr, nullptr});
  CHECK_THAT(text, test::Contains("\n  \"run\": {\n    \"model\": \"m\"\n  },\n"));
  CHECK(text.back() == '\n');
}

TEST_CASE("detail, measured and warnings are members only where they are given") {
  EstimateDetail detail;
  detail.layers.resize(1);
  detail.layers[0] = {0, 80, true, 10, 5, {}};
  detail.layers[0].operators.push_back({"qkv", "gemm", 7, 8, 1e15, 2e15, 3e9, 0.5, 1.5, 9});
  detail.head_peak_bytes = 4;
  const shardplan::io::Measured measured = {0.5, 0.4, 0.6, 1.25, false, 8, {"bubble", 1, 2}};
  const shardplan::Warnings warnings = {{"tp_crosses_node", "/parallel/tensor", "slow"}};
  const Json json = document(example_estimate(), {"{}", &warnings, &detail, &measured});
  CHECK(names(json) == Names{"schema", "version", "run", "model", "memory", "communication", "pipeline", "time",
                             "throughput", "measured", "warnings", "layers", "embedding", "final_norm", "head",
                             "backward_transient_bytes", "overheads", "timeline", "offload"});
  CHECK(json["measured"] == Json({{"mfu", 0.5},
                                  {"mfu_causal", 0.4},
                                  {"hfu", 0.6},
                                  {"ratio_to_estimate", 1.25},
                                  {"in_band", false},
                                  {"suspect", "bubble"}}));
  CHECK(json["warnings"][0] == Json({{"code", "tp_crosses_node"}, {"path", "/parallel/tensor"}, {"message", "slow"}}));
  CHECK(names(json["layers"][0]) == Names{"first", "count", "kind", "saved_bytes", "kept_bytes", "operators"});
  CHECK(json["layers"][0]["kind"] == "moe");
  const Json& row = json["layers"][0]["operators"][0];
  CHECK(names(row) == Names{"name", "kind", "parameters", "saved_bytes", "forward_flop", "backward_flop",
                            "forward_hbm_bytes", "forward_s", "backward_s", "sent_bytes"});
  CHECK(row["forward_flop"].is_number_integer());
  CHECK(row["backward_flop"].get<std::int64_t>() == 2'000'000'000'000'000);
  CHECK(json["head"] == Json({{"saved_bytes", 0}, {"peak_bytes", 4}}));
  CHECK(json["memory"]["stages"][0].contains("in_flight_chunks"));
}

TEST_CASE("a number that cannot be known is null and has a warning") {
  Estimate estimate = example_estimate();
  estimate.throughput.mfu = std::numeric_limits<double>::quiet_NaN();
  estimate.time.band_high_s = std::numeric_limits<double>::infinity();
  const Json json = document(estimate);
  CHECK(json["throughput"]["mfu"].is_null());
  CHECK(json["time"]["step_band_s"][1].is_null());
  REQUIRE(json["warnings"].size() == 2);
  CHECK(json["warnings"][0]["code"] == "unknown_value");
  CHECK(json["warnings"][0]["path"] == "/time/step_band_s");
  CHECK(json["warnings"][1]["path"] == "/throughput/mfu");
}
