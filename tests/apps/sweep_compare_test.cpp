// A point of a sweep and a side of a comparison are the estimate of that run.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/process.hpp"

namespace {

using nlohmann::json;

const std::string run = SHARDPLAN_SOURCE_DIR "/configs/runs/llama-3.1-70b-128xh100.json";

json answer(std::vector<std::string> words) {
  words.insert(words.begin(), SHARDPLAN_BINARY);
  words.emplace_back("--json");
  const test::ProcessResult result = test::run_process(words);
  CAPTURE(words, result.err);
  REQUIRE_FALSE(result.out.empty());
  return json::parse(result.out);
}

}  // namespace

TEST_CASE("each point is what estimate says with those flags") {
  const json sweep = answer({"sweep", run, "--vary", "tp=2,4,8", "--vary", "recompute=none,full", "--vary", "mbs=1,2"});
  CHECK(sweep["points"].size() == 12);
  for (const json& point : sweep["points"]) {
    const json& values = point["values"];
    const json whole = answer({"estimate", run, "--tp", values[0].dump(), "--recompute", values[1].get<std::string>(),
                               "--mbs", values[2].dump()});
    CAPTURE(point);
    CHECK(point["peak_bytes"] == whole["memory"]["peak_bytes"]);
    CHECK(point["step_s"] == whole["time"]["step_s"]);
    CHECK(point["mfu"] == whole["throughput"]["mfu"]);
    CHECK((point["status"] == "fits") == whole["memory"]["fits"].get<bool>());
  }
}

TEST_CASE("keep holds what it names") {
  const json tokens = answer({"sweep", run, "--vary", "seq=1024..8192*2", "--keep", "tokens", "--show", "gbs"});
  for (const json& point : tokens["points"]) {
    CHECK(point["values"][0].get<int>() * point["global_batch_size"].get<int>() == 4096 * 1024);
  }
  const json free = answer({"sweep", run, "--vary", "dp=1,2,4", "--show", "gpus"});
  for (const json& point : free["points"]) CHECK(point["num_gpus"] == 32 * point["values"][0].get<int>());
  const json held = answer({"sweep", run, "--vary", "dp=1,2,4", "--keep", "gpus", "--show", "gpus"});
  CHECK(held["points"][0]["status"] == "illegal");
  CHECK(held["points"][0]["rule"] == "world_product");
  CHECK(held["points"][2]["num_gpus"] == 128);
  const json odd = answer({"sweep", run, "--vary", "seq=3000,4096", "--keep", "tokens"});
  CHECK(odd["points"][0]["status"] == "illegal");
}

TEST_CASE("a comparison has each run's own numbers") {
  const json both = answer({"compare", run, "--tp", "4", "--vpp", "5", "--all"});
  const std::vector<json> wholes = {answer({"estimate", run}), answer({"estimate", run, "--tp", "4", "--vpp", "5"})};
  std::size_t paths = 0;
  for (const json& row : both["results"]) {
    const json::json_pointer path(row["path"].get<std::string>());
    for (std::size_t i = 0; i < 2; ++i) {
      CAPTURE(row, i);
      CHECK(row["values"][i] == wholes[i][path]);
    }
    ++paths;
  }
  CHECK(paths > 15);
  for (const json& row : both["inputs"]) {
    const json::json_pointer path(row["path"].get<std::string>());
    for (std::size_t i = 0; i < 2; ++i) {
      CAPTURE(row, i);
      CHECK(row["values"][i] == wholes[i]["run"][path]);
    }
  }
}
