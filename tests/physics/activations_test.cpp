// Bytes that autograd keeps, as measured, against the fold of the operator lists.
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "shardplan/plan/estimate.hpp"
#include "support/catch.hpp"
#include "support/runs.hpp"

namespace {

using shardplan::EstimateDetail;
using shardplan::LayerDetail;

std::int64_t layer_bytes(const EstimateDetail& detail, int layer, bool kept) {
  for (const LayerDetail& entry : detail.layers) {
    if (layer < entry.first || layer >= entry.first + entry.count) continue;
    return kept ? entry.kept_bytes : entry.saved_bytes;
  }
  return -1;
}

std::int64_t answer(const EstimateDetail& detail, const std::string& what) {
  if (what == "head.peak_bytes") return detail.head_peak_bytes;
  if (what == "backward_transient_bytes") return detail.backward_transient_bytes;
  if (what == "head.saved_bytes") return detail.head_saved_bytes;
  if (what == "embedding.saved_bytes") return detail.embedding_saved_bytes;
  if (what == "kept_bytes of the stack") {
    std::int64_t sum = 0;
    for (const LayerDetail& entry : detail.layers) sum += entry.count * entry.kept_bytes;
    return sum;
  }
  if (what == "layer 0 saved_bytes") return layer_bytes(detail, 0, false);
  if (what == "layer 1 saved_bytes") return layer_bytes(detail, 1, false);
  if (what == "layer 0 kept_bytes") return layer_bytes(detail, 0, true);
  return -1;
}

/// Compares every row of an evidence file; how many there are.
int check_rows(const std::string& file) {
  std::ifstream rows(SHARDPLAN_SOURCE_DIR "/tests/evidence/" + file);
  REQUIRE(rows);
  std::string line;
  int count = 0;
  while (std::getline(rows, line)) {
    const nlohmann::json row = nlohmann::json::parse(line);
    const std::string id = row["id"];
    CAPTURE(id);
    const shardplan::io::ReadRun read = shardplan::io::read_run(shardplan::io::run_input_from_json(row["run"].dump()),
                                                                shardplan::catalog::builtin_catalog());
    REQUIRE(test::problem_lines(read.problems).empty());
    // A head's peak was measured with its token ids, masks and scalars alive: the slack. All else is exact.
    const std::int64_t got = answer(shardplan::estimate_detail(read.run), row["what"]);
    CHECK(std::abs(got - row["bytes"].get<std::int64_t>()) <= row.value("slack", std::int64_t{0}));
    ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("saved bytes equal what PyTorch's autograd keeps, to the byte") {
  CHECK(check_rows("autograd_bytes.jsonl") == 232);
}

TEST_CASE("peaks of backward passes and heads equal what PyTorch's allocator measured") {
  CHECK(check_rows("autograd_peaks.jsonl") == 81);
}

TEST_CASE("recomputation modules drop what they cover and nothing else") {
  // Llama-3.1-8B, one sequence of 4,096 tokens, fused kernels: bytes per token h 4096, q 4096, c 1024, F 14336.
  struct Row {
    const char* recompute;
    std::int64_t kept_per_token;
  };
  const std::int64_t h = 4096, q = 4096, c = 1024, f = 14336, a = 32;
  const std::int64_t all = 8 * h + 8 + 6 * q + 6 * c + 6 * f + 4 * a;
  const Row row = GENERATE_COPY(values<Row>({
      {R"("none")", all},
      {R"("full")", 2 * h},
      {R"("selective")", all - 4 * a},  // flash: the log-sum-exp alone
      {R"({"modules": ["core_attn"]})", all - 4 * a},
      {R"({"modules": ["layernorm"]})", all - 2 * (2 * h) - 8},  // both norm outputs and the statistics
      {R"({"modules": ["mlp"]})", all - 6 * f},                  // the block keeps its input
      {R"({"modules": ["layernorm", "mlp"]})", all - 2 * (2 * h) - 8 - 6 * f},
  }));
  CAPTURE(row.recompute);
  const shardplan::Run run =
      test::run_of(R"({"num_gpus": 1, "training": {"framework": "megatron", "seq_length": 4096, "recompute": )" +
                   std::string(row.recompute) + "}}");
  const EstimateDetail detail = shardplan::estimate_detail(run);
  REQUIRE(detail.layers.size() == 1);
  CHECK(detail.layers[0].saved_bytes == 4096 * all);
  CHECK(detail.layers[0].kept_bytes == 4096 * row.kept_per_token);
}

TEST_CASE("full:N and every:K split a stage into entries") {
  const auto kept = [](const char* recompute) {
    const shardplan::Run run = test::run_of(
        std::string(R"({"num_gpus": 1, "training": {"framework": "megatron", "seq_length": 1024, "recompute": ")") +
        recompute + "\"}}");
    return shardplan::estimate_detail(run).layers;
  };
  const auto first = kept("full:5");
  REQUIRE(first.size() == 2);
  CHECK(first[0].count == 5);
  CHECK(first[0].kept_bytes == 2 * 1024 * 4096);
  CHECK(first[1].count == 27);
  CHECK(first[1].kept_bytes == first[1].saved_bytes);
  const auto segments = kept("every:3");  // 32 layers: ten segments of three and one of two
  std::int64_t checkpoints = 0, layers = 0;
  for (const LayerDetail& entry : segments) {
    layers += entry.count;
    if (entry.kept_bytes > 0) checkpoints += entry.count;
  }
  CHECK(layers == 32);
  CHECK(checkpoints == 11);
}
