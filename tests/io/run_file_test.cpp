// From a run file's text to a run: what is refused and how, where things are found, and back into JSON.
#include "shardplan/io/run_file.hpp"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "shardplan/catalog/catalog.hpp"
#include "support/catch.hpp"
#include "support/runs.hpp"

using namespace shardplan;

namespace {

io::ReadRun read_text(const std::string& text) {
  return io::read_run(io::run_input_from_json(text), catalog::builtin_catalog());
}

struct BadField {
  const char* snippet;
  const char* line;  ///< beginning of the one problem
};

}  // namespace

TEST_CASE("a field that cannot be read is one problem: pointer, value, rule") {
  const BadField rows[] = {
      {R"({"parallel": {"tensor": "8"}})", R"(/parallel/tensor: "8" is not a whole number from 1 to 1048576)"},
      {R"({"parallel": {"tensor": 0}})", "/parallel/tensor: 0 is not a whole number from 1"},
      {R"({"parallel": {"tensor": -8}})", "/parallel/tensor: -8 is not a whole number"},
      {R"({"parallel": {"tensor": 1.5}})", "/parallel/tensor: 1.5 is not a whole number"},
      {R"({"parallel": {"tensor": 2147483648}})",
       "/parallel/tensor: 2147483648 is not a whole number from 1 to 1048576"},
      {R"({"num_gpus": 1e30})", "/num_gpus: 1e+30 is not a whole number from 1 to 1048576"},
      {R"({"training": {"seq_length": 99999999999999999999999}})",
       "/training/seq_length: 9.999999999999999e+22 is not"},
      {R"({"training": {"global_batch_size": 9223372036854775807}})",
       "/training/global_batch_size: 9223372036854775807"},
      {R"({"training": {"micro_batch_size": true}})", "/training/micro_batch_size: true is not a whole number"},
      {R"({"parallel": {"sequence_parallel": 1}})", "/parallel/sequence_parallel: 1 is not true or false"},
      {R"({"parallel": {"zero_stage": 4}})", "/parallel/zero_stage: 4 is not a whole number from 0 to 3"},
      {R"({"parallel": {"fsdp": "full"}})",
       "/parallel/fsdp: \"full\" is not none, full_shard, shard_grad_op, no_shard or hybrid_shard"},
      {R"({"parallel": {"schedule": "2f2b"}})", "/parallel/schedule: \"2f2b\" is not naive, gpipe, 1f1b, "},
      {R"({"parallel": {"order": "tp-cp-dp-pp"}})",
       "/parallel/order: \"tp-cp-dp-pp\" does not name each of tp, cp, ep"},
      {R"({"parallel": {"order": "tp-tp-ep-dp-pp"}})", "/parallel/order: "},
      {R"({"parallel": {"layers_per_stage": 4}})", "/parallel/layers_per_stage: 4 is not a list"},
      {R"({"parallel": {"layers_per_stage": []}})", "/parallel/layers_per_stage: a list is not a list of layer counts"},
      {R"({"parallel": {"pipeline": 2, "layers_per_stage": [16, "16"]}})",
       "/parallel/layers_per_stage/1: \"16\" is not a whole number of layers"},
      {R"({"parallel": {"pipeline": 2, "layers_per_stage": [33, -1]}})", "/parallel/layers_per_stage/1: -1 is not"},
      {R"({"parallel": []})", "/parallel: a list is not an object"},
      {R"({"training": {"precision": "bf61"}})", "/training/precision: \"bf61\" is not fp32, tf32, fp16, bf16"},
      {R"({"training": {"dropout": 1.5}})", "/training/dropout: 1.5 is not a number from 0 to 1"},
      {R"({"training": {"dropout": 1}})", "/training/dropout: 1 drops everything"},
      {R"({"training": {"recompute": "attn"}})",
       "/training/recompute: \"attn\" is not one of none, selective, full, full:N, every:K"},
      {R"({"training": {"recompute": "full:0"}})", "/training/recompute: \"full:0\" is not one of"},
      {R"({"training": {"recompute": {"modules": []}}})", "/training/recompute/modules: is a list with at least one"},
      {R"({"training": {"recompute": {"modules": ["core_atn"]}}})",
       "/training/recompute/modules/0: \"core_atn\" is not core_attn, mlp, layernorm, moe_act, moe or mla_up_proj; did "
       "you mean \"core_attn\"?"},
      {R"({"training": {"loss": "mse"}})", "/training/loss: \"mse\" is not one of hf, hf-shift"},
      {R"({"training": {"loss": "chunked"}})", "/training/loss: \"chunked\" is not one of"},
      {R"({"training": {"loss": "chunked:0"}})",
       "/training/loss: \"chunked:0\": N of chunked:N is a whole number from 1"},
      {R"({"training": {"optimizer": "adamx"}})",
       "/training/optimizer: \"adamx\" is no optimizer; the nearest are adam, adamw"},
      {R"({"training": {"stack": "megatron-1999"}})", "/training/stack: \"megatron-1999\""},
      {R"({"training": {"stack": 5}})", "/training/stack: 5 is not a stack's name"},
      {R"({"training": {"moe": {"imbalance": 0.5}}})", "/training/moe/imbalance: 0.5 is not a number from 1"},
      {R"({"training": {"peft": true}})", "/training/peft: true is not an object"},
      {R"({"training": {"peft": {"method": "adalora"}}})",
       "/training/peft/method: \"adalora\" is not lora, qlora, dora"},
      {R"({"training": {"peft": {"adapter_dtype": "fp16"}}})",
       "/training/peft/adapter_dtype: \"fp16\" is not fp32 or bf16"},
      {R"({"training": {"peft": {"targets": ["q_proj", "r_proj"]}}})",
       "/training/peft/targets/1: \"r_proj\" is no matrix of llama-3.1-8b"},
      {R"({"training": {"peft": {"targets": [1]}}})", "/training/peft/targets: a list is not a list of matrix names"},
      {R"({"training": {"offload": {"activations": "nvme"}}})",
       "/training/offload/activations: \"nvme\" is not none or cpu"},
      {R"({"require": {"min_mfu": 38}})", "/require/min_mfu: 38 is not a number from 0 to 1"},
      {R"({"model": 70})", "/model: 70 is not a model's name, path or object"},
      {R"({"model": "lama-3.1-8b"})",
       "/model: \"lama-3.1-8b\" is neither built in nor a file; did you mean \"llama-3.1-8b\"?"},
      {R"({"cluster": "dgx-h1000"})",
       "/cluster: \"dgx-h1000\" is neither built in nor a file; did you mean \"dgx-h100\"?"},
      {R"({"model": null})", "/model: is required"},
      {R"({"cluster": null})", "/cluster: is required"},
      {R"({"num_gpus": null})", "/num_gpus: is required, or num_nodes in the cluster"},
      {R"({"trainin": {"seq_length": 512}})", "/trainin: unknown field; did you mean \"training\"?"},
      {R"({"training": {"learning_rate": 1}})", "/training/learning_rate: unknown field"},
      {R"({"training": {"overlap": {"grad": true}}})", "/training/overlap/grad: unknown field"},
      {R"({"parallel": {"zeropp": {"hpx": false}}})", "/parallel/zeropp/hpx: unknown field; did you mean \"hpz\"?"},
      {R"({"a/b~c": 1})", "/a~1b~0c: unknown field"},
      {R"({"defaults": 1})", "/defaults: 1 is not a list of JSON pointers"},
  };
  for (const BadField& row : rows) {
    const io::ReadRun read = test::read_snippet(row.snippet);
    const std::string lines = test::problem_lines(read.problems);
    CAPTURE(row.snippet, lines);
    CHECK_THAT(lines, test::StartsWith(std::string("run.json: ") + row.line));
    CHECK(read.problems.size() == 1);
    CHECK(read.problems.front().line >= 1);
  }
}

TEST_CASE("what is no object, no JSON or empty is one problem") {
  CHECK(test::problem_lines(read_text("[]").problems) == "run.json: : a list is not a run file, which is an object\n");
  CHECK(test::problem_lines(read_text("null").problems) == "run.json: : null is not a run file, which is an object\n");
  CHECK_THAT(test::problem_lines(read_text("{").problems), test::StartsWith("run.json: : JSON: the file ends inside"));
  CHECK(read_text("").problems.size() == 1);
  CHECK(read_text("{}").problems.size() == 3);
}

TEST_CASE("every problem of a file at once, in the order of the file, and none that only follows from another") {
  const io::ReadRun read = read_text(R"({
    "model": "llama-3.1-70b", "cluster": "dgx-h100", "num_gpus": 128,
    "parallel": { "tensor": 6, "pipeline": 3, "data": 7 },
    "training": { "seq_length": 0, "dropuot": 0.1,
      "global_batch_size": 1022, "precision": "bf61", "recompute": "attn" }
  })");
  std::vector<std::string> pointers;
  for (const Diagnostic& problem : read.problems) pointers.push_back(problem.pointer);
  CAPTURE(test::problem_lines(read.problems));
  CHECK(pointers == std::vector<std::string>{"/parallel/tensor", "/parallel/pipeline", "/training/seq_length",
                                             "/training/dropuot", "/training/precision", "/training/recompute"});
  CHECK(read.problems[0].line == 3);
  CHECK(read.problems[0].column == 29);
  CHECK(read.problems[3].line == 4);
  CHECK(read.problems[3].column == 36);
}

TEST_CASE("a misspelt field is taken for the one it looks like, so that the checks behind it run") {
  const io::ReadRun read = read_text(R"({"num_gpus": 128, "model": "llama-3.1-70b", "cluster": "dgx-h100",
      "parallel": {"tenosr": 8, "pipeline": 4, "data": 3}})");
  REQUIRE(read.problems.size() == 2);
  CHECK(read.problems[0].message == "unknown field; did you mean \"tensor\"?");
  CHECK(read.problems[1].message == "3: tensor 8 x pipeline 4 x context 1 x data 3 = 96 GPUs, but num_gpus is 128");
  CHECK(read.problems[1].way_out == "leave /parallel/data out (it becomes 4), or set /num_gpus to 96");
}

TEST_CASE("a flood of unknown fields ends in a count") {
  std::string text = "{\"model\": \"llama-3.1-8b\", \"cluster\": \"dgx-h100\", \"num_gpus\": 8";
  for (int i = 0; i < 100'000; ++i) text += ", \"zzz" + std::to_string(i) + "\": 1";
  const io::ReadRun read = read_text(text + "}");
  CHECK(read.problems.size() == 21);
  CHECK_THAT(test::problem_lines(read.problems), test::Contains("99980 more unknown fields"));
}

TEST_CASE("a flood of unknown fields or targets further inside ends too") {
  std::string members = "\"gpu\": \"h100\"";
  std::string targets = "\"zzz\"";
  for (int i = 0; i < 100'000; ++i) {
    members += ", \"zzz" + std::to_string(i) + "\": 1";
    targets += ", \"zzz\"";
  }
  const io::ReadRun cluster = read_text(R"({"model": "llama-3.1-8b", "num_gpus": 8, "cluster": {)" + members + "}}");
  CHECK(cluster.problems.size() == 21);
  const io::ReadRun peft = read_text(
      R"({"model": "llama-3.1-8b", "num_gpus": 8, "cluster": "dgx-h100", "training": {"peft": {"targets": [)" +
      targets + "]}}}");
  CHECK(peft.problems.size() == 20);
}

TEST_CASE("duplicate keys are reported together with the rest") {
  const io::ReadRun read = read_text(
      R"({"model": "llama-3.1-8b", "cluster": "dgx-h100", "num_gpus": 8, "num_gpus": 8, "parallel": {"tensor": 3}})");
  REQUIRE(read.problems.size() == 2);
  CHECK(read.problems[0].pointer == "/num_gpus");
  CHECK(read.problems[1].pointer == "/parallel/tensor");
}

TEST_CASE("numbers may be written as fractions and powers when they are whole") {
  const Run run = test::run_of(R"({"num_gpus": 8.0, "training": {"seq_length": 1e3, "global_batch_size": 0.8e1}})");
  CHECK(run.num_gpus == 8);
  CHECK(run.training.seq_length == 1000);
  CHECK(run.training.global_batch_size == 8);
}

TEST_CASE("null means default, $schema is accepted, require is read") {
  const Run run = test::run_of(R"({"$schema": "run.schema.json",
    "parallel": {"tensor": null, "fsdp": null, "order": null, "layers_per_stage": null},
    "training": {"seq_length": null, "fp8": null, "kernels": {"norm": null}, "peft": null, "offload": null,
                 "moe": {"capacity_factor": null}, "overlap": null, "stack": null},
    "require": {"fits": true, "min_mfu": 0.38, "max_gpu_hours_per_1e12_tokens": null}})");
  CHECK(run.parallel.tensor == 1);
  CHECK(run.require.fits == true);
  CHECK(run.require.min_mfu == 0.38);
  CHECK_FALSE(run.require.max_gpu_hours_per_1e12_tokens);
}

TEST_CASE("a cluster's num_nodes gives num_gpus") {
  const char* nodes = R"({"num_gpus": null, "cluster": {"name": "c", "gpu": "h100", "num_nodes": 2}})";
  CHECK(test::run_of(nodes).num_gpus == 16);
  io::RunInput input = io::run_input_from_json(test::run_text(nodes));
  input.overrides = {{"/num_gpus", "32", "--gpus"}};
  const io::ReadRun more = io::read_run(input, catalog::builtin_catalog());
  CHECK(more.ok());
  CHECK(more.run.num_gpus == 32);
  CHECK(more.notes.size() == 1);
  input.overrides = {{"/num_gpus", "8", "--gpus"}};
  CHECK(io::read_run(input, catalog::builtin_catalog()).notes.empty());
}

TEST_CASE("models and clusters are found by path: from the file's folder, or from where a flag is typed") {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / "shardplan_run_file_test";
  fs::create_directories(folder / "tiny");
  std::ofstream(folder / "tiny" / "config.json")
      << R"({"model_type": "transformer", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100})";
  std::ofstream(folder / "bad.json") << R"({"model_type": "transformer", "hidden_size": "x"})";
  std::ofstream(folder / "c.json") << R"({"name": "mine", "gpu": "h100", /* four */ "gpus_per_node": 4,})";
  std::ofstream(folder / "run.json") << R"({"model": "tiny", "cluster": "c.json", "num_gpus": 4})";

  Result<io::JsonText> text = io::read_json((folder / "run.json").string());
  REQUIRE(text.ok());
  io::RunInput input;
  input.text = text.value;
  const io::ReadRun read = io::read_run(input, catalog::builtin_catalog());
  CAPTURE(test::problem_lines(read.problems));
  REQUIRE(read.ok());
  CHECK(read.run.model.name == "tiny");
  CHECK(read.run.cluster.gpus_per_node == 4);
  CHECK(nlohmann::json::parse(read.run_json)["model"] == (folder / "tiny" / "config.json").string());

  input.overrides = {{"/model", "tiny", "--model"}};
  CHECK_THAT(test::problem_lines(io::read_run(input, catalog::builtin_catalog()).problems),
             test::StartsWith("command line: /model: \"tiny\" is neither built in nor a file"));
  input.overrides = {{"/model", (folder / "bad.json").string(), "--model"}};
  const io::ReadRun bad = io::read_run(input, catalog::builtin_catalog());
  REQUIRE_FALSE(bad.ok());
  CHECK(bad.problems.front().file == (folder / "bad.json").string());
  fs::remove_all(folder);
}

TEST_CASE("the resolved run reads back as the same run") {
  const char* snippets[] = {
      "{}",
      R"({"model": "llama-3.1-70b", "num_gpus": 128, "parallel": {"tensor": 8, "pipeline": 4, "zero_stage": 1},
          "training": {"global_batch_size": 1024, "dropout": 0.1, "loss": "chunked:8"}})",
      R"({"model": "mixtral-8x7b", "num_gpus": 16, "parallel": {"expert": 8, "pipeline": 2, "virtual_pipeline": 4},
          "training": {"moe": {"capacity_factor": 1.25, "imbalance": 1.5}, "recompute": {"modules": ["moe_act", "moe"]}}})",
      R"({"num_gpus": 1, "training": {"param_dtype": "bf16", "peft": {"rank": 8, "quant": "nf4", "targets": "all-linear"},
          "recompute": "every:2", "stack": "hf-4.48"}})",
      R"({"parallel": {"fsdp": "hybrid_shard", "shard_group": 4, "sequence_parallel": true, "order": "dp-tp-cp-ep-pp"},
          "training": {"offload": {"optimizer": "cpu", "parameters": "cpu", "activations": "cpu"}}, "require": {"min_mfu": 0.4}})",
      R"({"parallel": {"zero_stage": 3, "zeropp": {"hpz": true}}, "training": {"offload": {"optimizer": "nvme"}}})",
      R"({"parallel": {"pipeline": 2, "layers_per_stage": [15, 17]}})",
      R"({"parallel": {"fsdp": "none"}, "training": {"framework": "fsdp", "offload": {"activations": "none"}}})",
  };
  for (const char* snippet : snippets) {
    const io::ReadRun first = test::read_snippet(snippet);
    CAPTURE(snippet, test::problem_lines(first.problems));
    REQUIRE(first.ok());
    CAPTURE(first.run_json);
    const io::ReadRun second = read_text(first.run_json);
    CAPTURE(test::problem_lines(second.problems));
    REQUIRE(second.ok());
    CHECK(second.run_json == first.run_json);
  }
}

TEST_CASE("a resolved run follows a flag as the file did") {
  const io::ReadRun first = test::read_snippet(R"({"num_gpus": 16, "parallel": {"tensor": 2, "pipeline": 2}})");
  io::RunInput input = io::run_input_from_json(first.run_json);
  input.overrides = {{"/parallel/pipeline", "4", "--pp"}};
  const io::ReadRun second = io::read_run(input, catalog::builtin_catalog());
  CAPTURE(test::problem_lines(second.problems));
  REQUIRE(second.ok());
  CHECK(second.notes.empty());
  CHECK(second.run.parallel.data == 2);
  CHECK(second.run.training.global_batch_size == 2 * 16);
}

TEST_CASE("names are given without regard to case") {
  const Run run = test::run_of(R"({"model": "LLaMA-3.1-8B", "cluster": "DGX-H100"})");
  CHECK(run.model.name == "llama-3.1-8b");
}

TEST_CASE("a field of a named GPU can be set: the run has a copy of it") {
  shardplan::io::RunInput input = shardplan::io::run_input_from_json(test::run_text("{}"));
  input.overrides.push_back({"/cluster/gpu/memory_cuda_gib", "96", "--set"});
  const shardplan::io::ReadRun read = shardplan::io::read_run(input, shardplan::catalog::builtin_catalog());
  CHECK(test::problem_lines(read.problems).empty());
  CHECK(read.run.cluster.gpu.name == "H100-SXM-80GB");
  CHECK(read.run.cluster.gpu.memory_cuda_bytes == 96.0 * 1024 * 1024 * 1024);
}
