// What every command prints with --json, against the output schema, and the schema against what is wrong.
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "shardplan/plan/results.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"
#include "validator.hpp"

namespace {

using nlohmann::json;
using Line = std::vector<std::string>;

const std::string root = SHARDPLAN_SOURCE_DIR;
const std::string run = "configs/runs/llama-3.1-70b-128xh100.json";
const std::string experts = "configs/runs/deepseek-v3-2048xh800.json";
const std::string adapters = "configs/runs/llama-3.1-8b-lora-1x4090.json";

/// The words behind --show.
std::string every_result() {
  std::string words;
  for (const shardplan::plan::ResultField& field : shardplan::plan::result_fields()) {
    words += (words.empty() ? "" : ",") + std::string(field.word);
  }
  return words;
}

/// Command lines by the schema's name that their output has.
std::map<std::string, std::vector<Line>> lines() {
  std::map<std::string, std::vector<Line>> all = {
      {"estimate",
       {{"estimate", run, "--detail"},
        {"estimate", experts, "--detail"},
        {"estimate", run, "--measured", "step_s=40"},
        {"estimate", run, "--measured", "tokens_per_s_per_gpu=900", "--detail"},
        {"estimate", run, "--mbs", "8"},
        {"estimate", run, "--set", "cluster.price_per_gpu_hour=2.5"},
        {"estimate", run, "--set", "training.recompute={\"modules\":[\"core_attn\",\"mlp\"]}"},
        {"estimate", run, "--offload", "optimizer=cpu", "--framework", "megatron", "--set",
         "training.initialisation=full"},
        {"estimate", "--model", "gpt2", "--cluster", "workstation-1x4090", "--gpus", "1", "--framework", "ddp"}}},
      {"search",
       {{"search", run, "--top", "3"},
        {"search", run, "--pareto"},
        {"search", run, "--why-not", "tp=2,pp=3", "--sensitivity"},
        {"search", run, "--gpus", "8"},
        {"search", run, "--gpus", "64..256", "--objective", "gpus"},
        {"search", run, "--offload", "free", "--recompute", "none,full,full:4", "--framework", "free"},
        {"search", "--model", "llama-3.1-70b", "--cluster", "dgx-h100", "--gpus", "64", "--pp", "3,4"},
        {"search", experts, "--top", "2"}}},
      {"solve",
       {{"solve", "seq", run},
        {"solve", "gpus", run},
        {"solve", "mbs", run, "--constraint", "min_mfu=0.4"},
        {"solve", "layers", run},
        {"solve", "seq", run, "--gpus", "32", "--mbs", "64", "--attention", "eager"}}},
      {"explain",
       {{"explain", "bubble"},
        {"explain", "lora", adapters},
        {"explain", "model-states", "--let", "P=7e9"},
        {"explain", "--all"},
        {"estimate", run, "--explain"},
        {"estimate", adapters, "--explain", "activ"},
        {"estimate", run, "--explain", "activ@0"},
        {"solve", "seq", run, "--explain", "activ@0"},
        {"compare", run, "--tp", "4", "--explain", "mfu"},
        {"compare", run, adapters, "--explain", "mfu"},
        {"check", run, "--explain", "mfu"},
        {"search", run, "--tp", "8", "--pp", "4", "--mbs", "1", "--recompute", "none", "--explain", "mfu"}}},
      {"sweep",
       {{"sweep", run, "--vary", "tp=3,4,8"},
        {"sweep", run, "--vary", "tp=1..8*2", "--vary", "zero=0..3", "--vary", "mbs=1,2", "--keep", "tokens"},
        {"sweep", run, "--vary", "recompute=none,full,full:4", "--show", every_result()},
        {"sweep", run, "--vary", "dp=1..4", "--keep", "gpus"}}},
      {"compare",
       {{"compare", "tests/check/old.json", "tests/check/best.json"},
        {"compare", "tests/check/old.json", "tests/check/big.json", "tests/check/best.json", "--all"},
        {"compare", run, experts},
        {"compare", run, "--tp", "4"}}},
      {"check",
       {{"check", "tests/check"},
        {"check", run},
        {"check", "tests/check/old.json", "--tp", "4"},
        {"check", "tests/check/none.json"},
        {"check", "tests/check", "configs/runs", "--baseline", "tests/check"},
        {"check", "tests/check", "--baseline", run}}},
      {"schedule",
       {{"schedule", "--schedule", "zb-h1", "--pp", "4", "--microbatches", "8"},
        {"schedule", "--schedule", "dualpipe", "--pp", "4", "--microbatches", "8"},
        {"schedule", run}}},
      {"list", {{"list"}, {"list", "gpus", "--vendor", "amd"}}}};
  for (const char* const kind :
       {"models", "gpus", "clusters", "stacks", "schedules", "optimizers", "dtypes", "topics"}) {
    all["list"].push_back({"list", kind});
  }
  return all;
}

json answer(Line line) {
  line.insert(line.begin(), SHARDPLAN_BINARY);
  line.push_back("--json");
  const test::ProcessResult result = test::run_process(line, {}, root);
  CAPTURE(line, result.err);
  REQUIRE_FALSE(result.out.empty());
  return json::parse(result.out);
}

/// The same with at most three entries of each list: enough to alter, and quick to check.
json shortened(const json& value) {
  json out = value;
  if (out.is_array() && out.size() > 3) out.erase(out.begin() + 3, out.end());
  for (json& member : out) {
    if (member.is_structured()) member = shortened(member);
  }
  return out;
}

/// Calls visit(pointer) once for each member, list entries counted as one.
template <class Visit>
void each_place(const json& value, const json::json_pointer& at, const std::string& shape, std::set<std::string>& seen,
                const Visit& visit) {
  if (seen.insert(shape).second) visit(at);
  if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) each_place(value[i], at / i, shape + "/*", seen, visit);
  } else if (value.is_object()) {
    for (const auto& [key, member] : value.items()) each_place(member, at / key, shape + "/" + key, seen, visit);
  }
}

/// Members that may hold any JSON: the values of a field, a model's config.json as published, notes.
bool holds_anything(const std::string& pointer) {
  return pointer.find("/values") != std::string::npos || pointer.find("/run/model") != std::string::npos ||
         pointer.rfind("/notes") == pointer.size() - 6;
}

}  // namespace

TEST_CASE("every command's --json is valid against the output schema") {
  std::map<std::string, std::vector<Line>> all = lines();
  for (const auto& entry : std::filesystem::directory_iterator(root + "/configs/runs")) {
    all["estimate"].push_back({"estimate", entry.path().string()});
  }
  for (const auto& [name, commands] : all) {
    for (const Line& line : commands) {
      const json printed = answer(line);
      const std::string error = test::schema_of("output").error(printed);
      CAPTURE(line, error);
      CHECK(error.empty());
      CHECK(printed["schema"] == "shardplan/" + name + "/v1");
    }
  }
}

TEST_CASE("the output schema refuses an unknown member and a wrong type, wherever it stands") {
  for (const auto& [name, commands] : lines()) {
    std::set<std::string> objects;
    std::set<std::string> leaves;
    std::size_t altered = 0;
    for (const Line& line : commands) {
      const json printed = shortened(answer(line));
      CAPTURE(line, printed.dump());
      REQUIRE(test::schema_of("output").error(printed).empty());
      const std::string kind = printed.contains("kind") ? printed["kind"].get<std::string>() : "";
      const auto refused = [&](const json::json_pointer& at, const json& wrong) {
        json broken = printed;
        broken[at] = wrong;
        CAPTURE(at.to_string(), wrong.dump());
        CHECK_FALSE(test::schema_of("output").error(broken).empty());
        ++altered;
      };
      each_place(printed, json::json_pointer(), kind, objects, [&](const json::json_pointer& at) {
        const json& value = printed[at];
        if (value.is_object() && !holds_anything(at.to_string())) refused(at / "no_such_member", "x");
        if (holds_anything(at.to_string()) || value.is_null()) return;
        refused(at, value.is_array() ? json(0.5) : json::array({json::array()}));
      });
    }
    CAPTURE(name);
    CHECK(altered > 8);
  }
  CHECK_FALSE(test::schema_of("output").error({{"schema", "shardplan/estimate/v1"}}).empty());
  CHECK_FALSE(test::schema_of("output").error({{"schema", "shardplan/other/v1"}}).empty());
}

TEST_CASE("the output schema asks for every member that is always there") {
  const std::map<std::string, std::set<std::string>> may_be_absent = {
      {"estimate",
       {"measured", "layers", "embedding", "final_norm", "head", "backward_transient_bytes", "overheads", "timeline",
        "offload"}},
      {"explain", {"run"}},  // of cards; an address has none
      {"search", {"nearest", "stated", "sensitivity"}}};
  for (const auto& [name, commands] : lines()) {
    const auto found = may_be_absent.find(name);
    for (const Line& line : commands) {
      const json printed = shortened(answer(line));
      for (const auto& [key, value] : printed.items()) {
        json broken = printed;
        broken.erase(key);
        const bool optional = found != may_be_absent.end() && found->second.count(key) > 0;
        CAPTURE(line, key);
        CHECK(test::schema_of("output").error(broken).empty() == optional);
      }
    }
  }
}
