// Numbers that papers print and courses teach, from the textbook framework.
#include <fmt/format.h>

#include <cmath>

#include "support/catch.hpp"
#include "support/estimated.hpp"

using namespace shardplan;

namespace {

/// A decoder of 4096 x 32 or 8192 x 80 whose vocabulary makes the parameters a round number (to 1 in 10^5).
std::string model_of(double billions) {
  const bool large = billions > 20;
  const int hidden = large ? 8192 : 4096;
  const int layers = large ? 80 : 32;
  const int width = large ? 28672 : 11008;
  const int kv_heads = large ? 8 : 32;
  const int heads = hidden / 128;
  const double layer = 2.0 * hidden * hidden + 2.0 * hidden * 128 * kv_heads + 3.0 * hidden * width + 2.0 * hidden;
  const double vocabulary = std::round((billions * 1e9 - layers * layer - hidden) / (2.0 * hidden));
  return fmt::format(
      R"({{"model_type": "transformer", "hidden_size": {}, "num_hidden_layers": {}, "num_attention_heads": {},
           "num_key_value_heads": {}, "intermediate_size": {}, "vocab_size": {}}})",
      hidden, layers, heads, kv_heads, width, static_cast<int>(vocabulary));
}

std::string run_of(double billions, int gpus, const std::string& parallel) {
  return fmt::format(
      R"({{"model": {}, "cluster": "dgx-h100", "num_gpus": {}, "parallel": {{{}}},
           "training": {{"framework": "textbook", "seq_length": 1024}}}})",
      model_of(billions), gpus, parallel);
}

/// Parameters, gradients and optimizer of one GPU, in GB (10^9).
struct States {
  double parameters, gradients, optimizer;
  double total() const { return parameters + gradients + optimizer; }
};

States states_of(const Estimate& estimate) {
  const MemoryParts& parts = estimate.stages.front().peak();
  return {static_cast<double>(parts.parameters) / 1e9, static_cast<double>(parts.gradients) / 1e9,
          static_cast<double>(parts.optimizer) / 1e9};
}

}  // namespace

TEST_CASE("mixed precision with Adam: 16 bytes a parameter, 7B takes 112 GB and 70B 140 + 140 + 840") {
  // ZeRO, Rajbhandari et al. 2020 (arXiv:1910.02054) section 3.1: 2 + 2 + 12 bytes.
  const Estimate seven = test::estimate_of(run_of(7, 1, ""));
  CHECK_THAT(states_of(seven).total(), test::WithinRel(112.0, 1e-4));
  const States seventy = states_of(test::estimate_of(run_of(70, 1, "")));
  CHECK_THAT(seventy.parameters, test::WithinRel(140.0, 1e-4));
  CHECK_THAT(seventy.gradients, test::WithinRel(140.0, 1e-4));
  CHECK_THAT(seventy.optimizer, test::WithinRel(840.0, 1e-4));
}

TEST_CASE("ZeRO stages of 7.5B on 64 GPUs: 120, 31.4, 16.6 and 1.88 GB") {
  // Rajbhandari et al. 2020, figure 1 and table 1.
  struct Row {
    int stage;
    double gigabytes;
  };
  const Row row = GENERATE(values<Row>({{0, 120}, {1, 31.4}, {2, 16.6}, {3, 1.88}}));
  CAPTURE(row.stage);
  const Estimate estimate = test::estimate_of(run_of(7.5, 64, fmt::format(R"("zero_stage": {})", row.stage)));
  CHECK_THAT(states_of(estimate).total(), test::WithinRel(row.gigabytes, 4e-3));
}

TEST_CASE("a ring all-reduce over 8 GPUs sends 1.75 times the data") {
  // Patarasuk, Yuan 2009: 2 (n - 1) / n.
  const Estimate estimate = test::estimate_of(run_of(7, 8, R"("zero_stage": 0)"));
  REQUIRE(estimate.communication.count == 1);
  const CommunicationCall& call = *estimate.communication.begin();
  CHECK(call.op == Collective::all_reduce);
  CHECK(call.group_size == 8);
  CHECK(static_cast<double>(call.sent_bytes_per_step) == 1.75 * static_cast<double>(call.message_bytes));
  CHECK(call.message_bytes == 2 * estimate.model.parameters);
}

TEST_CASE("ZeRO-1 and 2 send as much as data parallelism, ZeRO-3 half as much again, for one microbatch") {
  // Rajbhandari et al. 2020, section 7: 2, 2 and 3 times the parameters.
  const auto sent = [](int stage) {
    return static_cast<double>(test::estimate_of(run_of(7, 8, fmt::format(R"("zero_stage": {})", stage))).sent.total());
  };
  const double plain = sent(0);
  CHECK_THAT(sent(1), test::WithinRel(plain, 1e-9));
  CHECK_THAT(sent(2), test::WithinRel(plain, 1e-9));
  CHECK_THAT(sent(3), test::WithinRel(1.5 * plain, 1e-9));
}

TEST_CASE("the pipeline bubble is (p - 1)/(m + p - 1), 3/11 for 4 stages and 8 microbatches; v chunks divide it") {
  // Huang et al. 2019 (GPipe, arXiv:1811.06965); Narayanan et al. 2021 (arXiv:2104.04473) section 2.2.
  struct Row {
    const char* schedule;
    int p, v, m;
    double bubble;
  };
  const Row row = GENERATE(values<Row>({{"gpipe", 4, 1, 8, 3.0 / 11},
                                        {"1f1b", 4, 1, 8, 3.0 / 11},
                                        {"naive", 4, 1, 8, 3.0 / 4},
                                        {"1f1b", 8, 1, 64, 7.0 / 71},
                                        {"interleaved", 4, 2, 8, 3.0 / 19},
                                        {"interleaved", 4, 4, 8, 3.0 / 35}}));
  CAPTURE(row.schedule, row.p, row.v, row.m);
  const std::string run = fmt::format(
      R"({{"model": {}, "cluster": "dgx-h100", "num_gpus": 8,
           "parallel": {{"pipeline": {}, "virtual_pipeline": {}, "schedule": "{}", "data": {}}},
           "training": {{"framework": "textbook", "seq_length": 1024, "global_batch_size": {}}}}})",
      model_of(7), row.p, row.v, row.schedule, 8 / row.p, row.m * 8 / row.p);
  CHECK_THAT(test::estimate_of(run).pipeline.ideal_bubble_fraction, test::WithinRel(row.bubble, 1e-9));
}

TEST_CASE("one layer keeps 34 s b h + 5 a s^2 b, and its tensor, sequence-parallel and selective forms") {
  // Korthikanti et al. 2022 (arXiv:2205.05198), equations 1 to 6 and table 2. The paper leaves out the statistics of
  // the two LayerNorms: mean and variance in fp32, 16 s b.
  struct Row {
    const char* name;
    int t;
    bool sp;
    const char* recompute;
    double per_sbh;     ///< bytes per s b h
    double per_scores;  ///< bytes per a s^2 b
  };
  const Row row = GENERATE(values<Row>({{"no parallelism", 1, false, "none", 34, 5},
                                        {"tensor", 8, false, "none", 10 + 24.0 / 8, 5.0 / 8},
                                        {"tensor, sequence", 8, true, "none", 34.0 / 8, 5.0 / 8},
                                        {"selective", 1, false, "selective", 34, 0},
                                        {"tensor, selective", 8, false, "selective", 10 + 24.0 / 8, 0},
                                        {"tensor, sequence, selective", 8, true, "selective", 34.0 / 8, 0},
                                        {"full", 8, false, "full", 2, 0}}));
  CAPTURE(row.name);
  const double s = 2048, b = 4, h = 6144, a = 64;  // 22B, table 3
  const std::string run = fmt::format(
      R"({{"model": {{"model_type": "transformer", "hidden_size": 6144, "num_hidden_layers": 48,
           "num_attention_heads": 64, "vocab_size": 51200, "max_position_embeddings": 2048, "position": "learned",
           "tie_word_embeddings": true, "hidden_act": "gelu", "norm": "layernorm", "attention_bias": true,
           "mlp_bias": true}}, "cluster": "dgx-a100-80gb", "num_gpus": {},
           "parallel": {{"tensor": {}, "sequence_parallel": {}}},
           "training": {{"framework": "textbook", "precision": "fp16", "seq_length": 2048, "micro_batch_size": 4,
           "dropout": 0.1, "attention": "eager", "recompute": "{}"}}}})",
      row.t, row.t, row.sp, row.recompute);
  const io::ReadRun read = test::read_run(run);
  CAPTURE(test::problems_of(read));
  REQUIRE(read.ok());
  const EstimateDetail detail = estimate_detail(read.run);
  REQUIRE(detail.layers.size() == 1);
  const double kept = static_cast<double>(detail.layers.front().kept_bytes);
  const double paper = row.per_sbh * s * b * h + row.per_scores * a * s * s * b;
  CHECK(kept >= paper);
  CHECK(kept <= paper + 16 * s * b);
}

TEST_CASE("128 GPUs are 8 x 4 x 4") {
  const io::ReadRun read = test::read_run(
      R"({"model": "llama-2-70b", "cluster": "dgx-a100-80gb", "num_gpus": 128,
          "parallel": {"tensor": 8, "pipeline": 4}})");
  REQUIRE(read.ok());
  CHECK(read.run.parallel.data == 4);
}

TEST_CASE("6 N tokens: LLaMA-65B at 380 tokens/s on an A100 is 47.7% of 312 TFLOP/s") {
  // Touvron et al. 2023 (arXiv:2302.13971) section 2.4; N = 65,285,660,672.
  const Estimate estimate = test::estimate_of(
      R"({"model": "llama-65b", "cluster": "dgx-a100-80gb", "num_gpus": 8,
          "parallel": {"tensor": 8}, "training": {"framework": "textbook", "seq_length": 2048}})");
  CHECK(estimate.model.parameters == 65'285'660'672);
  const ThroughputEstimate& t = estimate.throughput;
  CHECK(t.peak_flop_per_s == 312e12);
  CHECK_THAT(t.mfu_6n / t.tokens_per_s_per_gpu * 380, test::WithinAbs(0.477, 5e-4));
}
