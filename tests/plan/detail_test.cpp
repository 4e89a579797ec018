// What --detail opens: memory outside the model, the simulated step, the head under tensor parallelism.
#include <algorithm>
#include <numeric>

#include "shardplan/plan/estimate.hpp"
#include "support/catch.hpp"
#include "support/runs.hpp"

namespace {

using namespace shardplan;

std::int64_t framework_lines(const EstimateDetail& detail) {
  std::int64_t sum = 0;
  for (const OverheadDetail& line : detail.overheads) sum += line.allocated ? 0 : line.bytes;
  return sum;
}

Estimate estimated(const Run& run) {
  Estimate out;
  estimate(run, out);
  return out;
}

const CommunicationCall* call_of(const Estimate& estimate, std::string_view name) {
  const auto found = std::find_if(estimate.communication.begin(), estimate.communication.end(),
                                  [&](const CommunicationCall& call) { return call.name == name; });
  return found == estimate.communication.end() ? nullptr : found;
}

}  // namespace

TEST_CASE("the lines outside the model sum to framework_bytes") {
  constexpr std::int64_t gib = std::int64_t{1} << 30;
  struct Row {
    const char* run;
    std::int64_t tenths_of_gib;  // 0.5 the context, 0.4 a communicator in a node, 0.6 across, 2.0 of NCCL at most
  };
  const Row row = GENERATE(values<Row>({
      {R"({"num_gpus": 1})", 5},
      {R"({"num_gpus": 8, "training": {"framework": "ddp"}})", 9},
      {R"({"num_gpus": 64, "parallel": {"tensor": 8}})", 15},
      {R"({"num_gpus": 128, "parallel": {"tensor": 8, "pipeline": 4, "context": 2}})", 25},
  }));
  CAPTURE(row.run);
  const Run run = test::run_of(row.run);
  const std::int64_t lines = framework_lines(estimate_detail(run));
  CHECK(std::abs(lines - estimated(run).stages[0].peak().framework) <= 4);  // each line is rounded
  CHECK(std::abs(10 * lines - row.tenths_of_gib * gib) <= 40);
}

TEST_CASE("memory over time peaks at what the backward moment counts, and ends with nothing") {
  const char* layout =
      GENERATE(R"("pipeline": 4)", R"("pipeline": 4, "virtual_pipeline": 4)", R"("pipeline": 4, "schedule": "gpipe")",
               R"("pipeline": 4, "schedule": "zb-h1")", R"("pipeline": 4, "schedule": "zb-v", "virtual_pipeline": 2)",
               R"("pipeline": 4, "schedule": "dualpipe")", R"("pipeline": 1)");
  CAPTURE(layout);
  const Run run = test::run_of(R"({"num_gpus": 4, "parallel": {)" + std::string(layout) +
                               R"(}, "training": {"framework": "megatron", "global_batch_size": 16}})");
  const Estimate whole = estimated(run);
  const StepTimeline timeline = estimate_detail(run).timeline;
  REQUIRE(timeline.stages.size() == whole.stages.size());
  for (const StageTimeline& stage : timeline.stages) {
    CAPTURE(stage.stage);
    REQUIRE(!stage.held.empty());
    CHECK(stage.held.back().bytes == 0);
    std::int64_t most = 0;
    for (const HeldActivations& point : stage.held) most = std::max(most, point.bytes);
    const StageEstimate& own = whole.stages[static_cast<std::size_t>(stage.stage)];
    const MemoryParts& backward = own.moments[static_cast<std::size_t>(Moment::backward)];
    if (!own.has_moment[static_cast<std::size_t>(Moment::loss)]) CHECK(std::abs(most - backward.activations) <= 1);
    CHECK(stage.last_end_s <= timeline.makespan_s);
    CHECK(stage.busy_s <= stage.last_end_s - stage.first_start_s + 1e-12);
    for (std::size_t c = 0; c < stage.reduce_start_s.size(); ++c) {
      CHECK(stage.gradients_ready_s[c] <= stage.reduce_start_s[c]);
      CHECK(stage.reduce_start_s[c] <= stage.last_end_s);
    }
  }
}

TEST_CASE("a long step's curve is thinned and keeps its peak") {
  const Run run = test::run_of(
      R"({"num_gpus": 4, "parallel": {"pipeline": 4}, "training": {"framework": "megatron", "global_batch_size": 4096}})");
  const StepTimeline timeline = estimate_detail(run).timeline;
  const Estimate whole = estimated(run);
  for (std::size_t i = 0; i + 1 < timeline.stages.size(); ++i) {
    const std::vector<HeldActivations>& held = timeline.stages[i].held;
    CHECK(held.size() == 2001);
    const auto most =
        std::max_element(held.begin(), held.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    CHECK(std::abs(most->bytes - whole.stages[i].moments[static_cast<std::size_t>(Moment::backward)].activations) <= 1);
  }
}

TEST_CASE("DistributedDataParallel keeps its gradients twice") {
  const Estimate eight = estimated(test::run_of(R"({"num_gpus": 8, "training": {"framework": "ddp"}})"));
  for (std::size_t i = 0; i < moment_count; ++i) {
    if (!eight.stages[0].has_moment[i]) continue;
    const MemoryParts& parts = eight.stages[0].moments[i];
    CHECK(parts.communication_buffers == parts.gradients);
  }
  const Estimate one = estimated(test::run_of(R"({"num_gpus": 1, "training": {"framework": "ddp"}})"));
  CHECK(one.stages[0].peak().communication_buffers == 0);
}

TEST_CASE("a head under sequence parallelism holds the gathered input and its gradient") {
  // Llama-3.1-8B, 4,096 tokens: h 4096, V 128256 (a multiple of 128 x 2).
  const EstimateDetail detail = estimate_detail(test::run_of(
      R"({"num_gpus": 2, "parallel": {"tensor": 2}, "training": {"framework": "megatron", "loss": "te"}})"));
  const std::int64_t tokens = 4096, h = 4096, v = 128256 / 2;
  CHECK(detail.head_peak_bytes == 2 * tokens * v + 2 * (2 * tokens * h) + tokens * h + 2 * v * h);
}

TEST_CASE("expert exchange hides behind other chunks' compute, where there are any") {
  const auto exposed = [](const char* pipeline) {
    const Estimate e = estimated(test::run_of(R"({"model": "mixtral-8x7b", "num_gpus": 16, "parallel": {"expert": 8,)" +
                                              std::string(pipeline) + R"(}, "training": {"framework": "megatron"}})"));
    const CommunicationCall* call = call_of(e, "ep_all_to_all");
    REQUIRE(call != nullptr);
    return call->exposed_s / call->time_s;
  };
  CHECK(exposed(R"("pipeline": 2)") == 1.0);
  CHECK(exposed(R"("pipeline": 2, "virtual_pipeline": 4)") < 0.5);
}

TEST_CASE("gradients reduce while the rest of the pipeline finishes") {
  // The last stage is done first: it has the whole flush for its traffic.
  const char* text = R"({"model": "llama-3.1-70b", "num_gpus": 64, "parallel": {"tensor": 8, "pipeline": 4},
                         "training": {"global_batch_size": 64}})";
  const Estimate hidden = estimated(test::run_of(text));
  Run run = test::run_of(text);
  run.training.overlap.grad_reduce = false;
  const Estimate plain = estimated(run);
  CHECK(hidden.time.communication_exposed_s < plain.time.communication_exposed_s);
  CHECK(hidden.time.step_s < plain.time.step_s);
}
