// Flags over the file, and what they are called in messages.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/run_file.hpp"
#include "support/catch.hpp"
#include "support/runs.hpp"

using namespace shardplan;

namespace {

io::ReadRun read_with(std::string_view snippet, std::vector<io::Override> overrides) {
  io::RunInput input = io::run_input_from_json(test::run_text(snippet));
  input.overrides = std::move(overrides);
  return io::read_run(input, catalog::builtin_catalog());
}

io::ReadRun read_flags(std::vector<io::Override> overrides) {
  io::RunInput input;
  input.overrides = std::move(overrides);
  return io::read_run(input, catalog::builtin_catalog());
}

}  // namespace

TEST_CASE("a FIELD is a pointer, a path or a flag's name") {
  struct Row {
    const char* field;
    const char* pointer;
  };
  const Row rows[] = {{"tp", "/parallel/tensor"},
                      {"no-sp", "/parallel/sequence_parallel"},
                      {"microbatches", "/microbatches"},
                      {"model", "/model"},
                      {"num_gpus", "/num_gpus"},
                      {"gpus", "/num_gpus"},
                      {"lora-rank", "/training/peft/rank"},
                      {"/training/loss", "/training/loss"},
                      {"training.seq_length", "/training/seq_length"},
                      {"parallel/order", "/parallel/order"},
                      {"cluster.inter_node.bandwidth_gb_s", "/cluster/inter_node/bandwidth_gb_s"},
                      {"/no/such", "/no/such"}};  // reading it says so
  for (const Row& row : rows) {
    CAPTURE(row.field);
    CHECK(io::field_pointer(row.field) == std::string(row.pointer));
  }
  for (const char* unknown : {"", "tensorr", "foo.bar"}) {
    CAPTURE(unknown);
    CHECK_FALSE(io::field_pointer(unknown));
  }
  const auto words = io::field_words();
  CHECK(std::find(words.begin(), words.end(), "tp") != words.end());
}

TEST_CASE("flags win over the file, the file over defaults, the later flag over the earlier") {
  const auto read = read_with(R"({"training": {"seq_length": 2048, "micro_batch_size": 2}})",
                              {{"/training/seq_length", "1024", "--seq"},
                               {"/training/recompute", "full", "--recompute"},
                               {"/training/seq_length", "512", "--seq"},
                               {"/training/kernels/norm", "\"naive\"", "--set"},
                               {"/parallel/layers_per_stage", "[32]", "--set"}});
  CAPTURE(test::problem_lines(read.problems));
  REQUIRE(read.ok());
  CHECK(read.run.training.seq_length == 512);
  CHECK(read.run.training.micro_batch_size == 2);
  CHECK(read.run.training.recompute.mode == RecomputeMode::full);
  CHECK(read.run.training.kernels.norm == NormKernel::naive);
  CHECK(read.run.training.global_batch_size == 16);
}

TEST_CASE("flags alone make a run") {
  const auto read = read_flags(
      {{"/model", "LLAMA-3.1-8B", "--model"}, {"/cluster", "dgx-h100", "--cluster"}, {"/num_gpus", "8", "--gpus"}});
  CAPTURE(test::problem_lines(read.problems));
  REQUIRE(read.ok());
  CHECK(read.run.parallel.data == 8);
  CHECK(read.run.model.layers() == 32);
}

TEST_CASE("a problem that a flag caused names the command line and the flag") {
  const auto read = read_with("{}", {{"/parallel/tensor", "3", "--tp"}, {"/training/loss", "mse", "--set"}});
  CHECK_THAT(test::problem_lines(read.problems),
             test::Contains("command line: /parallel/tensor: 3 does not divide num_attention_heads 32"));
  CHECK_THAT(test::problem_lines(read.problems), test::Contains("(--tp)"));
  CHECK_THAT(test::problem_lines(read.problems), test::Contains("command line: /training/loss: \"mse\" is not one of"));
  const auto unknown = read_with("{}", {{"/parallel/tenosr", "2", "--set"}});
  CHECK(test::problem_lines(unknown.problems) ==
        "command line: /parallel/tenosr: unknown field; did you mean \"tensor\"? (--set)\n");
  const auto inside = read_with("{}", {{"/training/offload/optimizer", "cpu", "--offload"}});
  CHECK_THAT(test::problem_lines(inside.problems), test::StartsWith("command line: /training/offload/optimizer: "));
  const auto in_file = read_with(R"({"training": {"global_batch_size": 10}})", {{"/num_gpus", "4", "--gpus"}});
  CHECK_THAT(test::problem_lines(in_file.problems), test::StartsWith("run.json: /training/global_batch_size: 10 "));
  const auto nothing = read_flags({{"/num_gpus", "8", "--gpus"}});
  CHECK_THAT(test::problem_lines(nothing.problems), test::Contains("command line: /model: is required"));
  CHECK_THAT(test::problem_lines(nothing.problems), test::Contains("command line: /cluster: is required"));
}

TEST_CASE("the flag --microbatches counts microbatches of the data that comes out") {
  const auto read = read_with(R"({"parallel": {"pipeline": 2}, "training": {"global_batch_size": 999,
      "micro_batch_size": 2}})",
                              {{"/microbatches", "12", "--microbatches"}, {"/parallel/tensor", "2", "--tp"}});
  CAPTURE(test::problem_lines(read.problems));
  REQUIRE(read.ok());
  CHECK(read.run.parallel.data == 2);
  CHECK(read.run.training.global_batch_size == 12 * 2 * 2);
  const auto batch_wins =
      read_with("{}", {{"/microbatches", "12", "--microbatches"}, {"/training/global_batch_size", "8", "--gbs"}});
  CHECK(batch_wins.run.training.global_batch_size == 8);
  const auto bad = read_with("{}", {{"/microbatches", "none", "--microbatches"}});
  CHECK_THAT(test::problem_lines(bad.problems), test::Contains("\"none\" is not a whole number"));
  const auto many = read_with(
      "{}", {{"/microbatches", "1000000000", "--microbatches"}, {"/training/micro_batch_size", "1000000", "--mbs"}});
  CHECK_THAT(test::problem_lines(many.problems), test::Contains("/training/global_batch_size"));
}

TEST_CASE("data of the file is dropped when a flag changes what it follows from") {
  const char* file = R"({"num_gpus": 16, "parallel": {"tensor": 2, "data": 8}})";
  const auto kept = read_with(file, {{"/training/seq_length", "1024", "--seq"}});
  CHECK(kept.run.parallel.data == 8);
  CHECK(kept.notes.empty());
  const auto dropped = read_with(file, {{"/parallel/tensor", "4", "--tp"}});
  CAPTURE(test::problem_lines(dropped.problems));
  REQUIRE(dropped.ok());
  CHECK(dropped.run.parallel.data == 4);
  REQUIRE(dropped.notes.size() == 1);
  CHECK(dropped.notes.front() == "parallel.data 8 of run.json is dropped, since --tp changes the layout; it becomes 4");
  const auto stated = read_with(file, {{"/parallel/tensor", "4", "--tp"}, {"/parallel/data", "8", "--dp"}});
  CHECK_THAT(test::problem_lines(stated.problems), test::Contains("/parallel/data: 8: tensor 4"));
}

TEST_CASE("a flag for one sharding takes the place of the file's other one") {
  const auto noted = [](const io::ReadRun& read, const char* what) {
    return std::any_of(read.notes.begin(), read.notes.end(),
                       [&](const std::string& note) { return note.find(what) != std::string::npos; });
  };
  const io::Override fsdp{"/parallel/fsdp", "full_shard", "--fsdp"};
  const io::Override zero{"/parallel/zero_stage", "1", "--zero"};
  const char* const megatron = R"({"parallel": {"zero_stage": 1}, "training": {"framework": "megatron"}})";
  const io::ReadRun to_fsdp = read_with(megatron, {fsdp});
  CHECK(to_fsdp.ok());
  CHECK(to_fsdp.run.parallel.fsdp == Fsdp::full_shard);
  CHECK(to_fsdp.run.parallel.zero_stage == 0);
  CHECK(noted(to_fsdp, "parallel.zero_stage 1 of"));
  const io::ReadRun to_zero =
      read_with(R"({"parallel": {"fsdp": "full_shard"}, "training": {"framework": "megatron"}})", {zero});
  CHECK(to_zero.ok());
  CHECK(to_zero.run.parallel.zero_stage == 1);
  CHECK(to_zero.run.parallel.fsdp == Fsdp::none);
  CHECK(noted(to_zero, "parallel.fsdp \"full_shard\" of"));
  // Two flags contradict each other, and so do two fields of the file; torch's fsdp has no stages to change to.
  CHECK_FALSE(read_with(megatron, {fsdp, zero}).ok());
  CHECK_FALSE(read_with(R"({"parallel": {"zero_stage": 1, "fsdp": "full_shard"}})", {}).ok());
  CHECK_FALSE(read_with(R"({"parallel": {"fsdp": "full_shard"}, "training": {"framework": "fsdp"}})", {zero}).ok());
  CHECK(read_with(megatron, {{"/parallel/fsdp", "null", "--fsdp"}}).run.parallel.zero_stage == 1);
}

TEST_CASE("a member of a named cluster or model changes a copy") {
  const auto read = read_with(R"({"num_gpus": 4})",
                              {{"/cluster/gpus_per_node", "4", "--set"}, {"/model/num_hidden_layers", "8", "--set"}});
  CAPTURE(test::problem_lines(read.problems));
  REQUIRE(read.ok());
  CHECK(read.run.cluster.gpus_per_node == 4);
  CHECK(read.run.model.layers() == 8);
  CHECK(read.run.model.name == "llama-3.1-8b");
  const auto missing = read_with(R"({"cluster": "dgx-h1000"})", {{"/cluster/gpus_per_node", "4", "--set"}});
  CHECK(missing.problems.size() == 1);
}

TEST_CASE("lists take an index") {
  const char* file = R"({"parallel": {"pipeline": 2, "layers_per_stage": [15, 16]}})";
  const auto read = read_with(file, {{"/parallel/layers_per_stage/0", "16", "--set"}});
  CHECK(read.ok());
  const auto beyond = read_with(file, {{"/parallel/layers_per_stage/7", "16", "--set"}});
  CHECK_THAT(test::problem_lines(beyond.problems), test::Contains("a list of 2 has no place \"7\""));
}

TEST_CASE("a way out is what the user would type, and only one that helps") {
  struct Row {
    const char* file;  ///< "": flags alone
    std::vector<io::Override> flags;
    const char* pointer;
    const char* way_out;
  };
  const io::Override model{"/model", "llama-3.1-8b", "--model"};
  const io::Override cluster{"/cluster", "dgx-h100", "--cluster"};
  const io::Override gpus{"/num_gpus", "8", "--gpus"};
  const char* const fsdp = R"({"training": {"framework": "fsdp"}})";
  const char* const stated = R"({"parallel": {"fsdp": "full_shard"}, "training": {"framework": "fsdp"}})";
  const Row rows[] = {
      {fsdp,
       {{"/parallel/zero_stage", "3", "--zero"}},
       "/parallel/zero_stage",
       "leave --zero out (fsdp \"full_shard\" shards all states, as ZeRO-3), or --framework deepspeed"},
      // null would fall back to full_shard, so that leaving --fsdp out is no way.
      {fsdp,
       {{"/parallel/fsdp", "null", "--fsdp"}, {"/parallel/zero_stage", "3", "--zero"}},
       "/parallel/zero_stage",
       "leave --zero out (fsdp \"full_shard\" shards all states, as ZeRO-3), or --framework deepspeed"},
      {stated,
       {{"/parallel/zero_stage", "3", "--zero"}},
       "/parallel/zero_stage",
       "leave --zero out (fsdp \"full_shard\" shards all states, as ZeRO-3), or --framework deepspeed --set "
       "parallel.fsdp=null"},
      {R"({"parallel": {"fsdp": "full_shard", "zero_stage": 1}})",
       {},
       "/parallel/zero_stage",
       "leave /parallel/zero_stage out (fsdp \"full_shard\" shards all states, as ZeRO-3), or leave /parallel/fsdp "
       "out"},
      {"",
       {model, cluster, gpus, {"/parallel/zero_stage", "2", "--zero"}, {"/parallel/pipeline", "2", "--pp"}},
       "/parallel/zero_stage",
       "--zero 1, or --fsdp full_shard --framework megatron without --zero (Megatron-FSDP)"},
      {R"({"parallel": {"tensor": 2}})",
       {{"/training/framework", "ddp", "--framework"}},
       "/training/framework",
       "--framework megatron (splits tensors, stages, sequences and experts), or leave --framework out"},
      {R"({"training": {"stack": "megatron-2021", "framework": "megatron"}})",
       {{"/training/framework", "ddp", "--framework"}},
       "/training/stack",
       "--framework megatron, or leave /training/stack out (the stacks of ddp: list stacks)"},
      {fsdp,
       {{"/training/offload/optimizer", "cpu", "--offload"}},
       "/training/offload",
       "--offload optimizer=cpu,parameters=cpu"},
      {R"({"parallel": {"pipeline": 4}})",
       {{"/parallel/schedule", "interleaved", "--schedule"}},
       "/parallel/schedule",
       "--vpp 2 (8 layers per stage allow 2, 4, 8), or --schedule 1f1b"},
  };
  for (const Row& row : rows) {
    const io::ReadRun read = *row.file == '\0' ? read_flags(row.flags) : read_with(row.file, row.flags);
    CAPTURE(row.file, row.way_out, test::problem_lines(read.problems));
    REQUIRE(read.problems.size() == 1);
    CHECK(read.problems.front().pointer == row.pointer);
    CHECK_THAT(read.problems.front().way_out, test::StartsWith(row.way_out));
  }
}

TEST_CASE("a flag that makes an object of the file's number is to blame for it") {
  const io::ReadRun read = read_with(R"({"parallel": {"tensor": 8}})", {{"/parallel/tensor/x", "1", "--set"}});
  REQUIRE(read.problems.size() == 1);
  CHECK(read.problems.front().file == "command line");
  CHECK_THAT(read.problems.front().message, test::Contains("(--set)"));
}

TEST_CASE("zero_stage 0 beside an fsdp that shards is said to change nothing") {
  const auto warns = [](const io::ReadRun& read) {
    CHECK(read.ok());
    return std::any_of(read.warnings.begin(), read.warnings.end(),
                       [](const Warning& w) { return w.code == "zero_stage_no_effect"; });
  };
  const io::Override zero{"/parallel/zero_stage", "0", "--zero"};
  CHECK(warns(read_with(R"({"training": {"framework": "fsdp"}})", {zero})));
  CHECK_FALSE(warns(read_with(R"({"parallel": {"fsdp": "no_shard"}})", {zero})));
  CHECK_FALSE(warns(read_with(R"({"training": {"framework": "ddp"}})", {zero})));
  CHECK_FALSE(warns(read_with(R"({"training": {"framework": "fsdp"}})", {})));
}

TEST_CASE("layers that a pipeline does not divide are shared out, fewest at the heavier ends") {
  struct Row {
    const char* model;
    const char* pipeline;
    const char* gpus;
    const char* list;
  };
  const Row rows[] = {
      {"llama-3.1-70b", "3", "24", "[27,27,26]"},  // the head first
      {"llama-3.1-70b", "6", "48", "[13,14,14,13,13,13]"},
      {"deepseek-v3", "16", "128", "[3,4,4,4,4,4,4,4,4,4,4,4,4,4,4,2]"},  // an MTP layer is a layer
  };
  for (const Row& row : rows) {
    const std::vector<io::Override> flags = {{"/model", row.model, "--model"},
                                             {"/cluster", "dgx-h100", "--cluster"},
                                             {"/num_gpus", row.gpus, "--gpus"},
                                             {"/parallel/pipeline", row.pipeline, "--pp"}};
    const io::ReadRun read = read_flags(flags);
    REQUIRE(read.problems.size() == 1);
    CHECK(read.problems.front().way_out == std::string("--set parallel.layers_per_stage=") + row.list);
    std::vector<io::Override> typed = flags;
    typed.push_back({"/parallel/layers_per_stage", row.list, "--set"});
    CHECK(read_flags(typed).ok());
  }
}
