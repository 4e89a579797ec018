// Variations are the runs that the whole reader makes of the same overrides.
#include "shardplan/io/run_variations.hpp"

#include <string>
#include <vector>

#include "property/random_run.hpp"
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/plan/estimate.hpp"
#include "support/catch.hpp"
#include "support/runs.hpp"

namespace {

using shardplan::catalog::builtin_catalog;
using shardplan::io::Override;
using shardplan::io::ReadRun;
using shardplan::io::RunVariations;
using shardplan::io::Variation;

/// Both ways of reading agree: legal or not, and every figure of the estimate.
void check_same(const std::string& run, const std::vector<Override>& changes, RunVariations& variations) {
  shardplan::io::RunInput input = shardplan::io::run_input_from_json(run);
  input.overrides = changes;
  const ReadRun whole = shardplan::io::read_run(input, builtin_catalog());
  Variation variation;
  variations.read(changes, variation);
  std::string shown;
  for (const Override& change : changes) shown += change.pointer + "=" + change.value + " ";
  CAPTURE(run, shown, test::problem_lines(whole.problems));
  const bool legal = variation.problems.empty() && variation.broken.none();
  CHECK(legal == whole.ok());
  CHECK(variation.problems.empty() == whole.readable);
  if (!legal || !whole.ok()) return;
  const std::string resolved = shardplan::io::resolved_run_json(variation.draft, variation.run, "null", "null");
  CHECK(resolved == shardplan::io::resolved_run_json(whole.draft, whole.run, "null", "null"));
  shardplan::Estimate ours;
  shardplan::Estimate theirs;
  shardplan::estimate(variation.run, ours);
  shardplan::estimate(whole.run, theirs);
  CHECK(ours.peak_bytes == theirs.peak_bytes);
  CHECK(ours.time.step_s == theirs.time.step_s);
  CHECK(ours.headroom_bytes == theirs.headroom_bytes);
}

const std::vector<Override> single_changes = {{"/parallel/tensor", "2", "--vary"},
                                              {"/parallel/tensor", "3", "--vary"},
                                              {"/parallel/tensor", "\"x\"", "--vary"},
                                              {"/parallel/tensor", "0", "--vary"},
                                              {"/parallel/tensor", "null", "--vary"},
                                              {"/parallel/pipeline", "2", "--vary"},
                                              {"/parallel/context", "2", "--vary"},
                                              {"/parallel/data", "1", "--vary"},
                                              {"/parallel/zero_stage", "3", "--vary"},
                                              {"/parallel/zero_stage", "null", "--vary"},
                                              {"/parallel/fsdp", "full_shard", "--vary"},
                                              {"/parallel/fsdp", "null", "--vary"},
                                              {"/parallel/schedule", "zb-h1", "--vary"},
                                              {"/parallel/virtual_pipeline", "2", "--vary"},
                                              {"/parallel/layers_per_stage", "[16,16]", "--vary"},
                                              {"/parallel/sequence_parallel", "true", "--vary"},
                                              {"/num_gpus", "16", "--vary"},
                                              {"/num_gpus", "12", "--vary"},
                                              {"/num_gpus", "null", "--vary"},
                                              {"/microbatches", "8", "--vary"},
                                              {"/microbatches", "x", "--vary"},
                                              {"/training/seq_length", "2048", "--vary"},
                                              {"/training/global_batch_size", "64", "--vary"},
                                              {"/training/micro_batch_size", "2", "--vary"},
                                              {"/training/precision", "fp16", "--vary"},
                                              {"/training/precision", "fp9", "--vary"},
                                              {"/training/optimizer", "adamw_torch_fused", "--vary"},
                                              {"/training/optimizer", "muon", "--vary"},
                                              {"/training/framework", "deepspeed", "--vary"},
                                              {"/training/framework", "null", "--vary"},
                                              {"/training/stack", "megatron-core-2024", "--vary"},
                                              {"/training/recompute", "full", "--vary"},
                                              {"/training/recompute", R"({"modules": ["mlp"]})", "--vary"},
                                              {"/training/loss", "chunked:4", "--vary"},
                                              {"/training/moe/imbalance", "1.5", "--vary"},
                                              {"/training/peft", R"({"method": "lora", "rank": 8})", "--vary"},
                                              {"/training/peft/rank", "8", "--vary"},
                                              {"/training/peft", "null", "--vary"},
                                              {"/training/offload/optimizer", "cpu", "--vary"},
                                              {"/training/offload", "null", "--vary"},
                                              {"/training/kernels/norm", "fused", "--vary"},
                                              {"/training/no_such_field", "1", "--vary"},
                                              {"/training", "7", "--vary"},
                                              {"/cluster", "dgx-h200", "--vary"},
                                              {"/cluster/gpus_per_node", "4", "--vary"},
                                              {"/model", "llama-3.2-1b", "--vary"},
                                              {"/model", "no-such-model", "--vary"},
                                              {"/model/num_hidden_layers", "8", "--vary"}};

}  // namespace

TEST_CASE("one change of a run reads as the whole reader reads it") {
  for (const char* const snippet :
       {R"({"num_gpus": 16})", R"({"num_gpus": 16, "parallel": {"tensor": 4, "pipeline": 2, "data": 2}})",
        R"({"parallel": {"fsdp": "full_shard"}})",
        R"({"training": {"framework": "deepspeed"}, "parallel": {"zero_stage": 2}})",
        R"({"training": {"peft": {"method": "lora"}, "offload": {"optimizer": "cpu", "parameters": "cpu"}},
            "parallel": {"fsdp": "full_shard"}})",
        R"({"model": "mixtral-8x7b", "parallel": {"expert": 8}})",
        R"({"cluster": {"gpu": "h100", "num_nodes": 1}, "num_gpus": null})"}) {
    const std::string run = test::run_text(snippet);
    RunVariations variations(shardplan::io::run_input_from_json(run), builtin_catalog());
    for (const Override& change : single_changes) check_same(run, {change}, variations);
    for (std::size_t i = 0; i + 1 < single_changes.size(); ++i) {
      const Override& next = single_changes[(i * 7 + 3) % single_changes.size()];
      if (next.pointer.rfind(single_changes[i].pointer, 0) == 0 ||
          single_changes[i].pointer.rfind(next.pointer, 0) == 0)
        continue;
      check_same(run, {single_changes[i], next}, variations);
    }
  }
}

TEST_CASE("variations of random runs are the runs of the reader") {
  test::Random random(77);
  for (int i = 0; i < 150; ++i) {
    const std::string run = test::random_run(random).dump();
    RunVariations variations(shardplan::io::run_input_from_json(run), builtin_catalog());
    for (int k = 0; k < 4; ++k) check_same(run, {random.pick(single_changes)}, variations);
  }
}

TEST_CASE("a base that cannot be read is what is wrong with every variation") {
  const std::string run = test::run_text(R"({"parallel": {"tenosr": 8}})");
  RunVariations variations(shardplan::io::run_input_from_json(run), builtin_catalog());
  Variation variation;
  const std::vector<Override> change = {{"/parallel/tensor", "2", "--vary"}};
  variations.read(change, variation);
  REQUIRE(variation.problems.size() == 1);
  CHECK(variation.problems.front().pointer == "/parallel/tenosr");
}
