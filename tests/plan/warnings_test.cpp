// Warnings say what is true of the run, and only where it matters.
#include <algorithm>
#include <string>

#include "shardplan/plan/estimate.hpp"
#include "shardplan/plan/validate.hpp"
#include "support/catch.hpp"
#include "support/runs.hpp"

using namespace shardplan;

namespace {

std::string message_of(const Warnings& warnings, std::string_view code) {
  const auto found = std::find_if(warnings.begin(), warnings.end(), [&](const Warning& w) { return w.code == code; });
  return found == warnings.end() ? std::string() : found->message;
}

std::string estimate_warning(const char* snippet, std::string_view code) {
  const Run run = test::run_of(snippet);
  Estimate result;
  estimate(run, result);
  return message_of(warnings_of(run, result), code);
}

}  // namespace

TEST_CASE("replicated weights are named where they alone stand in the way") {
  // 504 GPUs are 2 GiB short, 1008 fit: the optimizer's shards shrink.
  CHECK(estimate_warning(R"({"model": "llama-3.1-405b", "num_gpus": 504,
                             "parallel": {"tensor": 8, "pipeline": 9, "zero_stage": 1}})",
                         "weights_replicated")
            .empty());
  struct Row {
    const char* snippet;
    const char* says;
    const char* way_out;
  };
  const Row rows[] = {
      {R"({"model": "llama-3.1-70b"})", "parameters, gradients and optimizer states of stage 0 take",
       "--fsdp full_shard --framework fsdp"},
      {R"({"model": "llama-3.1-405b", "num_gpus": 16, "parallel": {"tensor": 8, "zero_stage": 1}})",
       "parameters and gradients of stage 0 take",
       "--fsdp full_shard --framework megatron shards them (zero_stage 1 keeps them whole"},
      {R"({"model": "llama-3.1-70b", "training": {"framework": "deepspeed"}, "parallel": {"zero_stage": 2}})",
       "parameters of stage 0 take", "--zero 3"},
      {R"({"model": "llama-3.1-405b", "num_gpus": 16, "parallel": {"pipeline": 2, "zero_stage": 1},
           "training": {"framework": "deepspeed"}})",
       "parameters and gradients of stage 0 take", "a larger --tp or --pp"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.snippet);
    const std::string message = estimate_warning(row.snippet, "weights_replicated");
    CHECK_THAT(message, test::StartsWith(row.says));
    CHECK_THAT(message, test::Contains(row.way_out));
  }
  CHECK(estimate_warning(R"({"model": "llama-3.1-405b", "training": {"framework": "fsdp"}})", "weights_replicated")
            .empty());
}

TEST_CASE("flash attention is warned about where the GPU cannot run it") {
  struct Row {
    const char* snippet;
    bool warns;
  };
  const Row rows[] = {
      {R"({"cluster": "dgx-1v-16gb", "training": {"precision": "fp16"}})", true},
      {R"({"cluster": "dgx-1v-16gb", "training": {"precision": "fp16", "attention": "flash-v1"}})", true},
      {R"({"cluster": "dgx-1v-16gb", "training": {"precision": "fp16", "attention": "eager"}})", false},
      {R"({"cluster": "dgx-a100-80gb"})", false},
      {R"({"cluster": "mi300x-8way"})", false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.snippet);
    CHECK(message_of(plan::run_warnings(test::run_of(row.snippet)), "flash_needs_ampere").empty() != row.warns);
  }
}
