// A point of a sweep and a side of a comparison are the estimate of that run.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
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

std::string text(std::vector<std::string> words) {
  words.insert(words.begin(), SHARDPLAN_BINARY);
  const test::ProcessResult result = test::run_process(words);
  CAPTURE(words, result.err);
  REQUIRE_FALSE(result.out.empty());
  return result.out;
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

TEST_CASE("a field varied by its flag's name is what the flag says") {
  const json plain = answer({"estimate", run});
  const json without = answer({"estimate", run, "--no-sp"});
  REQUIRE(plain["memory"]["peak_bytes"] != without["memory"]["peak_bytes"]);
  const json sweep = answer({"sweep", run, "--vary", "no-sp=true,false"});
  CHECK(sweep["points"][0]["peak_bytes"] == without["memory"]["peak_bytes"]);
  CHECK(sweep["points"][1]["peak_bytes"] == plain["memory"]["peak_bytes"]);
  CHECK(sweep["points"][0]["values"][0] == false);  // of the field that "vary" names
  CHECK_THAT(text({"sweep", run, "--vary", "no-sp=true,false"}), test::Contains("no-sp"));
  CHECK(answer({"estimate", run, "--set", "no-sp=true"})["memory"] == without["memory"]);
  const json offload = answer({"sweep", run, "--vary", "offload=null,optimizer=cpu", "--show", "host"});
  CHECK(offload["points"][1]["peak_bytes"] ==
        answer({"estimate", run, "--offload", "optimizer=cpu"})["memory"]["peak_bytes"]);
}

TEST_CASE("a sweep of a long list is the same on any number of threads") {
  const json sweep = answer({"sweep", run, "--vary", "gbs=4..8000+4"});
  REQUIRE(sweep["points"].size() == 2000);
  for (std::size_t i = 0; i < 2000; i += 333) {
    const json& point = sweep["points"][i];
    CHECK(point["values"][0] == 4 * (i + 1));
    CHECK(point["step_s"] == answer({"estimate", run, "--gbs", std::to_string(4 * (i + 1))})["time"]["step_s"]);
  }
}

TEST_CASE("a varied dp decides the GPUs, and compares by the GPU") {
  const std::string table = text({"sweep", run, "--vary", "dp=2,4"});
  CHECK_THAT(table, test::Contains("GPUs"));
  CHECK_THAT(table.substr(0, table.find('\n')), test::Contains("tokens/s/GPU"));
  const test::ProcessResult both =
      test::run_process({SHARDPLAN_BINARY, "sweep", run, "--vary", "dp=2,4", "--gpus", "64"});
  CHECK(both.status == 2);
  CHECK_THAT(both.err, test::Contains("--gpus and --vary dp both decide"));
  const json kept = answer({"sweep", run, "--vary", "dp=2,4", "--gpus", "64", "--keep", "gpus", "--show", "gpus"});
  CHECK(kept["points"][0]["num_gpus"] == 64);
  CHECK(kept["points"][1]["status"] == "illegal");
}

TEST_CASE("nothing is best where nothing that is shown differs, or may be better") {
  for (const char* const show : {"price", "gpus", "dp,gbs", "host", "model.parameters"}) {
    CAPTURE(show);
    const std::string table = text({"sweep", run, "--vary", "tp=4,8", "--show", show});
    CHECK_THAT(table.substr(0, table.find('\n')), test::Contains("SWEEP  tp 4, 8 | 2 of 2 fit"));
    CHECK(table.find("<-") == std::string::npos);
  }
  CHECK_THAT(text({"sweep", run, "--vary", "tp=4,8", "--show", "host,mfu"}), test::Contains("BEST  tp 4: MFU"));
}

TEST_CASE("need is what the card must hold, reserved what the allocator does") {
  const json point = answer({"sweep", run, "--vary", "tp=8", "--show", "need,reserved"})["points"][0];
  const json memory = answer({"estimate", run})["memory"];
  CHECK(point["reserved_bytes"] == memory["reserved_bytes"]);
  CHECK(point["need_bytes"] ==
        memory["capacity_bytes"].get<std::int64_t>() - memory["headroom_bytes"].get<std::int64_t>());
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

TEST_CASE("runs of other sizes or models compare by the GPU, with both named") {
  const std::string doubled = text({"compare", run, "--gpus", "256", "--gbs", "2048"});
  CHECK_THAT(doubled.substr(0, doubled.find('\n')),
             test::Contains("llama-3.1-70b-128xh100.json (128 GPUs) is 0.1% faster per GPU than") &&
                 test::Contains("(256 GPUs) and needs 3.2 GiB more"));
  CHECK(doubled.find("the reason") == std::string::npos);
  const std::string configs = SHARDPLAN_SOURCE_DIR "/configs/runs/";
  const std::string other =
      text({"compare", configs + "llama-3.1-8b-8xh100-fsdp2.json", configs + "mixtral-8x7b-64xh100.json"});
  CHECK_THAT(other.substr(0, other.find('\n')), test::Contains("(8 GPUs, llama-3.1-8b) is"));
  CHECK_THAT(other.substr(0, other.find('\n')), test::Contains("faster per GPU than"));
  CHECK_THAT(other, test::Contains("H100-SXM-80GB"));  // of dgx-h100, beside the other run's own
  CHECK(other.find("the reason") == std::string::npos);
}

TEST_CASE("rows that differ are not counted as equal, and equal runs are the same") {
  CHECK_THAT(text({"compare", run, "--tp", "4"}), test::Contains("from the layout: --all"));
  const std::string same = text({"compare", run, run, run});
  CHECK_THAT(same.substr(0, same.find('\n')), test::Contains("are the same run: it fits"));
}

TEST_CASE("a run from standard input has what each field does alone") {
  const test::ProcessResult piped = test::run_process({SHARDPLAN_BINARY, "compare", run, "-"},
                                                      test::read_file(SHARDPLAN_SOURCE_DIR "/tests/check/best.json"));
  CHECK_THAT(piped.out, test::Contains("alone: "));
}

TEST_CASE("a stated memory of a built-in card takes effect") {
  const json own = answer({"estimate", run})["memory"];
  const json half = answer({"estimate", run, "--set", "cluster.gpu.memory_gb=40"})["memory"];
  CHECK(half["capacity_bytes"].get<double>() == Approx(own["capacity_bytes"].get<double>() / 2).epsilon(1e-6));
  CHECK(answer({"estimate", run, "--set", "cluster.gpu.memory_gb=80"})["memory"]["capacity_bytes"] ==
        own["capacity_bytes"]);
  const json sweep = answer({"sweep", run, "--vary", "cluster.gpu.memory_gb=20,80", "--show", "capacity"});
  CHECK(sweep["points"][0]["status"] == "does_not_fit");
  CHECK(sweep["points"][1]["capacity_bytes"] == own["capacity_bytes"]);
  const json usable = answer(
      {"estimate", run, "--set", "cluster.gpu.memory_gb=40", "--set", "cluster.gpu.memory_cuda_gib=50"})["memory"];
  CHECK(usable["capacity_bytes"].get<double>() == 50.0 * (1 << 30));
}

TEST_CASE("a picture has its own file, and shows what is below zero") {
  const test::TemporaryFolder temporary;
  const std::string folder = temporary.path();
  const std::string picture = folder + "/free.svg";
  const auto sweep = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {SHARDPLAN_BINARY, "sweep",  run,      "--vary", "seq=4096..65536*2",
                                      "--keep",         "tokens", "--show", "free"};
    words.insert(words.end(), more.begin(), more.end());
    return test::run_process(words);
  };
  CHECK(sweep({"--plot", folder + "/free.png"}).status == 2);
  CHECK(sweep({"--plot", picture, "-o", picture}).status == 2);
  CHECK_FALSE(std::filesystem::exists(picture));
  CHECK(sweep({"--plot", picture}).status == 0);
  const std::string svg = test::read_file(picture);
  std::set<std::string> heights;
  for (std::size_t at = svg.find("cy=\""); at != std::string::npos; at = svg.find("cy=\"", at + 1)) {
    heights.insert(svg.substr(at, svg.find('"', at + 4) - at));
  }
  CHECK(heights.size() == 5);  // two of the points are below zero
}
