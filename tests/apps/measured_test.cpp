// A measurement in the estimate's conventions.
#include "measured.hpp"

#include "support/catch.hpp"

namespace {

using shardplan::Estimate;
using shardplan::Run;
using shardplan::cli::measured_against;
using shardplan::cli::parse_measurement;

/// 1 PFLOP/s of peak, 500 GFLOP a token, 1000 tokens/s/GPU: MFU 50%.
Estimate example_estimate() {
  Estimate estimate;
  estimate.throughput.peak_flop_per_s = 1e15;
  estimate.throughput.model_flop_per_token = 5e11;
  estimate.throughput.tokens_per_s_per_gpu = 1000;
  estimate.throughput.mfu = 0.5;
  estimate.throughput.mfu_causal = 0.45;
  estimate.throughput.hfu = 0.6;
  return estimate;
}

Run example_run() {
  Run run;
  run.num_gpus = 16;
  run.training.global_batch_size = 64;
  run.training.seq_length = 4000;
  return run;
}

shardplan::Result<shardplan::io::Measured> measured(const char* text) {
  const auto measurement = parse_measurement(text);
  REQUIRE(measurement.ok());
  return measured_against(measurement.value, example_run(), example_estimate());
}

}  // namespace

TEST_CASE("tokens/s, seconds a step and TFLOP/s of the same speed agree") {
  // 64 x 4000 tokens in 20 s on 16 GPUs = 800 tokens/s/GPU = 400 TFLOP/s
  const char* const text = GENERATE("tokens_per_s_per_gpu=800", "step_s=20", "tflops_per_gpu=400");
  CAPTURE(text);
  const auto result = measured(text);
  REQUIRE(result.ok());
  CHECK_THAT(result.value.ratio_to_estimate, test::WithinRel(0.8, 1e-12));
  CHECK_THAT(result.value.mfu, test::WithinRel(0.4, 1e-12));
  CHECK_THAT(result.value.mfu_causal, test::WithinRel(0.36, 1e-12));
  CHECK_THAT(result.value.hfu, test::WithinRel(0.48, 1e-12));
}

TEST_CASE("more than the dense peak is a problem") {
  CHECK(measured("tflops_per_gpu=1040").problems.at(0).message == "measured.mfu: 1.04 exceeds the GPU's dense peak");
  CHECK(measured("tflops_per_gpu=900").problems.at(0).message == "measured.hfu: 1.08 exceeds the GPU's dense peak");
  CHECK(measured("tflops_per_gpu=830").ok());
}

TEST_CASE("a hundred times slower than the estimate is no speed of the run") {
  // The estimate: 1000 tokens/s/GPU, 16 s a step, 500 TFLOP/s.
  const char* const text = GENERATE("step_s=1e9", "step_s=1601", "tokens_per_s_per_gpu=9.9", "tflops_per_gpu=4.9",
                                    "tokens_per_s_per_gpu=1e-9");
  CAPTURE(text);
  const auto result = measured(text);
  REQUIRE(result.problems.size() == 1);
  CHECK_THAT(result.problems[0].message, test::Contains("times slower than the estimate"));
  CHECK_FALSE(result.problems[0].way_out.empty());
}

TEST_CASE("ninety times slower is slow, and told") {
  const char* const text = GENERATE("step_s=1440", "tokens_per_s_per_gpu=11.2", "tflops_per_gpu=5.6");
  CAPTURE(text);
  CHECK(measured(text).ok());
}

TEST_CASE("what is no measurement is a problem") {
  const char* const text = GENERATE("", "step_s", "step_s=", "step_s=0", "step_s=-1", "step_s=nan", "step_s=inf",
                                    "step_s=1x", "steps=3", "=3");
  CAPTURE(text);
  CHECK(parse_measurement(text).problems.size() == 1);
}
