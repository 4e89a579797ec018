// What search and solve print is what estimate says of the same run.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "command.hpp"
#include "command_line.hpp"
#include "support/catch.hpp"
#include "support/estimated.hpp"
#include "support/process.hpp"

using nlohmann::json;
using namespace shardplan;

namespace {

/// The words of a shell line without anything to expand: quotes group.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false, any = false;
  for (const char c : line) {
    if (c == '\'') {
      quoted = !quoted;
      any = true;
    } else if (!quoted && (c == ' ' || c == '\n')) {
      if (any) words.push_back(word);
      word.clear();
      any = false;
    } else {
      word += c;
      any = true;
    }
  }
  if (any) words.push_back(word);
  return words;
}

cli::Outcome run_line(const std::string& line) {
  std::vector<std::string> words = words_of(line);
  const auto all = cli::commands();
  const auto command =
      std::find_if(all.begin(), all.end(), [&](const cli::Command& c) { return c.name == words.front(); });
  REQUIRE(command != all.end());
  std::vector<const char*> rest;
  for (std::size_t i = 1; i < words.size(); ++i) rest.push_back(words[i].c_str());
  const cli::ParsedLine parsed = cli::parse_command_line(*command, rest);
  REQUIRE(parsed.problems.empty());
  cli::OutputStyle style;
  if (parsed.arguments.has("json")) style.format = cli::Format::json;
  return command->run(parsed.arguments, style);
}

std::string config(const std::string& name) { return SHARDPLAN_SOURCE_DIR "/configs/runs/" + name + ".json"; }

json file_json(const std::string& path) {
  std::ifstream in(path);
  return json::parse(in, nullptr, true, true);
}

/// The search lines of this test: each finds something.
const std::vector<std::string>& lines() {
  static const std::vector<std::string> all = {
      "search " + config("llama-3.1-70b-128xh100") + " --top 4",
      "search " + config("llama-3.1-70b-128xh100") + " --schedule 1f1b,interleaved --fsdp null --top 3 --pareto",
      "search " + config("llama-3.1-70b-128xh100") + " --tp 4,8 --fsdp full_shard --schedule 1f1b --top 3",
      "search " + config("llama-3.1-70b-128xh100") + " --tp 4 --cp 1 --mbs 2 --schedule 1f1b --top 3",
      "search " + config("llama-3.1-8b-128xh100-fsdp2") + " --top 3",
      "search " + config("llama-3.1-8b-128xh100-fsdp2") + " --tp 2 --dp 64 --recompute none --top 3",
      "search " + config("mixtral-8x7b-64xh100") + " --top 3",
      "search " + config("opt-13b-zero-offload-1xv100") + " --top 3",
      "search " + config("llama-3.1-8b-lora-1x4090") + " --top 3",
      "search " + config("llama-2-7b-qlora-2x3090-fsdp") + " --top 3",
      "search --model llama-3.1-8b --cluster dgx-h100 --gpus 8,16 --gbs 64 --top 3 --recompute none,full:4,full",
      "search --model deepseek-v2-lite --cluster dgx-h100 --gpus 16 --gbs 512 --framework megatron --top 3"};
  return all;
}

}  // namespace

TEST_CASE("an entry of a search, put over the run file, has the entry's numbers to the last bit") {
  for (const std::string& line : lines()) {
    INFO(line);
    const cli::Outcome outcome = run_line(line + " --json");
    REQUIRE(outcome.problems.empty());
    REQUIRE(outcome.status == 0);
    const json result = json::parse(outcome.result);
    CHECK(result["schema"] == "shardplan/search/v1");
    const json& space = result["space"];
    CHECK(space["estimated"].get<std::int64_t>() + space["cut_by_bound"].get<std::int64_t>() == space["layouts"]);
    CHECK(space["fit"].get<std::int64_t>() + space["does_not_fit"].get<std::int64_t>() +
              space["misses_requirement"].get<std::int64_t>() ==
          space["estimated"]);
    REQUIRE_FALSE(result["best"].empty());
    const std::vector<std::string> words = words_of(line);
    const bool of_file = words[1][0] == '/';
    json run = of_file ? file_json(words[1]) : json::object();
    if (!of_file) {
      for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
        if (words[i] == "--model") run["model"] = words[i + 1];
        if (words[i] == "--cluster") run["cluster"] = words[i + 1];
        if (words[i] == "--gbs") run["training"]["global_batch_size"] = std::stoi(words[i + 1]);
        if (words[i] == "--framework") run["training"]["framework"] = words[i + 1];
      }
    }
    for (const char* const list : {"best", "pareto"}) {
      for (const json& entry : result[list]) {
        json changed = run;
        changed["num_gpus"] = entry["num_gpus"];
        for (const char* const section : {"parallel", "training"}) {
          for (const auto& [key, value] : entry[section].items()) changed[section][key] = value;
        }
        INFO(changed.dump());
        const io::ReadRun read = test::read_run(changed.dump());
        INFO(test::problems_of(read));
        REQUIRE(read.ok());
        Estimate estimate;
        shardplan::estimate(read.run, estimate);
        CHECK(entry["peak_bytes"] == estimate.peak_bytes);
        CHECK(entry["reserved_bytes"] == estimate.reserved_bytes);
        CHECK(entry["headroom_bytes"] == estimate.headroom_bytes);
        CHECK(entry["step_s"].get<double>() == estimate.time.step_s);
        CHECK(entry["mfu"].get<double>() == estimate.throughput.mfu);
        CHECK(entry["tokens_per_s_per_gpu"].get<double>() == estimate.throughput.tokens_per_s_per_gpu);
        CHECK(entry["bubble_fraction"].get<double>() == estimate.pipeline.bubble_fraction);
      }
    }
  }
}

TEST_CASE("the winner's run file and the line to use give the winner's numbers") {
  std::vector<std::string> all = lines();
  const std::string small = "search --model llama-3.1-8b --cluster dgx-h100 --gpus 8 --gbs 64 ";
  const std::string large = "search " + config("llama-3.1-70b-128xh100") + " ";
  // Values that the line fixes are in the line to use, whatever the file or a default says of them.
  for (const char* flags : {"--recompute full", "--zero 3", "--pp 2 --schedule gpipe", "--tp 2 --no-sp",
                            "--offload optimizer=cpu", "--set training.offload.activations=cpu",
                            "--framework fsdp --fsdp hybrid_shard", "--set training.overlap.grad_reduce=false"}) {
    all.push_back(small + flags);
  }
  for (const char* flags : {"--recompute full --mbs 2", "--fsdp full_shard", "--cp 2", "--attention eager", "--zero 0",
                            "--tp 8 --pp 8", "--tp 8 --no-sp --pp 4"}) {
    all.push_back(large + flags);
  }
  for (const std::string& line : all) {
    INFO(line);
    const json result = json::parse(run_line(line + " --json").result);
    REQUIRE_FALSE(result["best"].empty());
    const json& best = result["best"][0];
    const cli::Outcome outcome = run_line(line);
    REQUIRE(outcome.file);
    const Estimate of_file = test::estimate_of(*outcome.file);
    CHECK(of_file.time.step_s == best["step_s"].get<double>());
    CHECK(of_file.peak_bytes == best["peak_bytes"].get<std::int64_t>());

    const std::size_t use = outcome.result.find("Use it  shardplan ");
    REQUIRE(use != std::string::npos);
    std::string typed = outcome.result.substr(use + std::string("Use it  shardplan ").size());
    INFO(typed);
    const cli::Outcome again = run_line(typed + " --json");
    for (const Diagnostic& problem : again.problems) UNSCOPED_INFO(problem.pointer + ": " + problem.message);
    REQUIRE(again.problems.empty());
    const json estimate = json::parse(again.result);
    CHECK(estimate["time"]["step_s"] == best["step_s"]);
    CHECK(estimate["memory"]["peak_bytes"] == best["peak_bytes"]);
  }
}

TEST_CASE("where no layout is legal the flag, its rule and the nearest legal values are named") {
  const std::string base = "search --model llama-3.1-8b --cluster dgx-h100 --gbs 512 --framework ";
  struct Row {
    const char* flags;
    std::vector<const char*> says;
  };
  const Row rows[] = {
      {"megatron --gpus 64 --dp 3", {"--dp 3: 3 does not divide 64 GPUs; legal: 1,2,4,8"}},
      {"megatron --gpus 96 --dp 3", {"--dp 3: 3 does not divide global_batch_size 512; legal: 1,2,4,8"}},
      {"megatron --gpus 64 --ep 2",
       {"--ep 2: the model has no experts; legal: 1", "expert parallelism of a model without experts"}},
      {"megatron --gpus 64 --tp 3", {"--tp 3: 3 does not divide num_attention_heads 32"}},
      {"megatron --gpus 64 --mbs 3", {"--mbs 3: 512 is not a multiple of micro_batch_size 3", "legal: 1,2,4,8"}},
      {"megatron --gpus 64 --zero 2", {"--zero 2: megatron has zero_stage 0 and 1", "legal: 0,1"}},
      {"deepspeed --gpus 64 --fsdp full_shard", {"--fsdp full_shard: deepspeed does not shard by fsdp; leave it out"}},
      {"megatron --gpus 12", {"--gpus 12: 12 is above one node", "legal: 8,16"}},
      {"megatron --gpus 64 --dp 3 --ep 2", {"--ep 2: the model has no experts", "--dp 3: 3 does not divide 64 GPUs"}},
      {"megatron --gpus 64 --tp 8 --pp 8 --dp 2",
       {"--tp 8: tensor 8 x pipeline 8 x context 1 x data 2 = 128 GPUs, but num_gpus is 64", "--dp 2: no legal"}}};
  for (const Row& row : rows) {
    CAPTURE(row.flags);
    const cli::Outcome outcome = run_line(base + row.flags);
    CHECK(outcome.status == cli::exit_nothing_fits);
    for (const char* const says : row.says) CHECK_THAT(outcome.result, test::Contains(says));
    CHECK_THAT(outcome.result, !test::Contains("_missing"));
  }
}

TEST_CASE("a search does not depend on the number of threads") {
  const std::string line = lines().front() + " --json --threads ";
  json one = json::parse(run_line(line + "1").result), three = json::parse(run_line(line + "3").result);
  for (json* const result : {&one, &three}) {
    for (const char* const changing : {"wall_s", "threads", "layouts_per_s_per_core"}) result->erase(changing);
  }
  CHECK(one == three);
}

TEST_CASE("solve's value holds and its next does not") {
  const std::vector<std::pair<std::string, std::string>> asked = {
      {"seq", config("llama-3.1-70b-128xh100")},       {"mbs", config("llama-3.1-8b-lora-1x4090")},
      {"layers", config("llama-3.1-8b-8xh100-fsdp2")}, {"lora-rank", config("llama-3.1-8b-lora-1x4090")},
      {"gpus", config("llama-3.1-8b-128xh100-fsdp2")}, {"seq", config("mixtral-8x7b-64xh100")}};
  for (const auto& [field, path] : asked) {
    INFO(field << " " << path);
    const cli::Outcome outcome = run_line("solve " + field + " " + path + " --json");
    REQUIRE(outcome.problems.empty());
    REQUIRE(outcome.status == 0);
    const json result = json::parse(outcome.result);
    CHECK(result["schema"] == "shardplan/solve/v1");
    CHECK(result["estimate"]["schema"] == "shardplan/estimate/v1");
    CHECK(result["estimate"]["memory"]["fits"] == true);
    const std::string text = file_json(path).dump();
    const std::string pointer = result["field"];
    const auto at = [&](const json& value) {
      const io::ReadRun read = test::read_run(text, {{pointer, value.dump()}});
      REQUIRE(read.ok());
      Estimate estimate;
      shardplan::estimate(read.run, estimate);
      return estimate;
    };
    CHECK(at(result["value"]).time.step_s == result["estimate"]["time"]["step_s"].get<double>());
    if (result["next"].is_null()) continue;
    const Estimate next = at(result["next"]["value"]);
    CHECK_FALSE(result["next"]["why"].get<std::string>().empty());
    CHECK(result["next"]["over_bytes"].get<std::int64_t>() == std::max<std::int64_t>(0, -next.headroom_bytes));
  }
}

TEST_CASE("what solve would answer after a change is its answer after it") {
  const std::vector<std::string> lines = {"solve gpus --model llama-3.1-70b --cluster dgx-h100",
                                          "solve gpus --model llama-3.1-70b --cluster dgx-h100 --zero 3",
                                          "solve seq " + config("gpt-175b-64xa100"),
                                          "solve mbs " + config("mpt-30b-32xh100-fsdp")};
  for (const std::string& line : lines) {
    INFO(line);
    const json result = json::parse(run_line(line + " --json").result);
    REQUIRE_FALSE(result["otherwise"].empty());
    CHECK(result["value"].is_null() == (result["otherwise"][0]["flags"] != "--recompute none"));
    for (const json& other : result["otherwise"]) {
      const cli::Outcome again = run_line(line + " " + other["flags"].get<std::string>() + " --json");
      INFO(other.dump());
      CHECK(json::parse(again.result)["value"] == other["value"]);
    }
  }
}

TEST_CASE("what search -o writes is the winner's run file, and its result goes to standard output") {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/best.json";
  const test::ProcessResult result = test::run_process(
      {SHARDPLAN_BINARY, "search", config("llama-3.1-70b-128xh100"), "--tp", "8", "--cp", "1", "-q", "-o", path});
  CHECK(result.status == 0);
  CHECK(result.out.rfind("BEST  ", 0) == 0);
  const test::ProcessResult estimate = test::run_process({SHARDPLAN_BINARY, "estimate", path, "-q"});
  CHECK(estimate.status == 0);
  CHECK(estimate.out.rfind("FITS", 0) == 0);
}
