// What a wrong flag gets: the name that was meant, the names that there are, or what it needs.
#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "shardplan/catalog/catalog.hpp"
#include "shardplan/core/runtime.hpp"
#include "shardplan/io/gpu_file.hpp"
#include "shardplan/physics/optimizers.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"

namespace {

using Words = std::vector<std::string>;

const std::string root = SHARDPLAN_SOURCE_DIR;
const std::string run = "configs/runs/llama-3.1-70b-128xh100.json";
const std::string fsdp = "configs/runs/llama-3.1-8b-8xh100-fsdp2.json";
const std::string adapters = "configs/runs/llama-3.1-8b-lora-1x4090.json";

test::ProcessResult program(Words words) {
  words.insert(words.begin(), SHARDPLAN_BINARY);
  return test::run_process(words, {}, root);
}

/// The problem's lines; the command prints no result.
std::string problem_of(Words words) {
  const test::ProcessResult result = program(words);
  CAPTURE(words, result.out, result.err);
  CHECK(result.status == 2);
  CHECK((result.out.empty() || words.front() == "check"));  // check reports what it could not read
  return result.err;
}

}  // namespace

TEST_CASE("an unknown field names the fields that there are, in every section") {
  struct Row {
    const char* field;
    const char* says;
  };
  const Row rows[] = {{"/xyzzy", "the fields here are model, cluster, num_gpus, parallel, training and require"},
                      {"parallel.xyzzy", "the fields here are tensor, pipeline,"},
                      {"parallel.zeropp.xyzzy", "the fields here are hpz, qwz and qgz"},
                      {"training.xyzzy", "the fields here are seq_length,"},
                      {"training.fp8.xyzzy", "the fields here are recipe and param_gather"},
                      {"training.kernels.xyzzy", "the fields here are norm,"},
                      {"training.moe.xyzzy", "the fields here are capacity_factor and imbalance"},
                      {"training.offload.xyzzy", "the fields here are optimizer,"},
                      {"training.overlap.xyzzy", "the fields here are grad_reduce,"},
                      {"require.xyzzy", "the fields here are fits,"},
                      {"cluster.xyzzy", "the fields here are gpu,"},
                      {"cluster.host.xyzzy", "the fields here are memory_gib,"},
                      {"cluster.inter_node.xyzzy", "the fields here are type,"},
                      {"cluster.efficiency.xyzzy", "the fields here are gemm, attention, collectives and source"},
                      {"xyzzy.plugh", "it stands in model, cluster, num_gpus, parallel, training or require"}};
  for (const Row& row : rows) {
    CAPTURE(row.field);
    CHECK_THAT(problem_of({"estimate", run, "--set", std::string(row.field) + "=1"}), test::Contains(row.says));
  }
  for (const auto& [table, entry, says] :
       {std::tuple{"gemm", R"({"m":1,"n":1,"k":1,"seconds":1,"xyzzy":1})", "fields here are m, n, k"},
        {"attention", R"({"batch":1,"heads":1,"seq_length":9,"head_dim":9,"seconds":1,"xyzzy":1})", "are batch, heads"},
        {"collectives", R"({"op":"all_reduce","group_size":2,"message_bytes":9,"seconds":1,"xyzzy":1})", "are op, "}}) {
    const std::string value = std::string("cluster.efficiency={\"") + table + "\":[" + entry + "]}";
    CHECK_THAT(problem_of({"estimate", run, "--set", value}), test::Contains(says));
  }
}

TEST_CASE("a field in the wrong place is told the right one, a near one its name") {
  for (const auto& [typed, meant] : {std::pair{"training.tensor", "did you mean /parallel/tensor?"},
                                     {"parallel.seq_length", "did you mean /training/seq_length?"},
                                     {"training.rank", "did you mean /training/peft/rank?"},
                                     {"seq_len", "did you mean training.seq_length?"},
                                     {"zero_stage", "did you mean parallel.zero_stage?"},
                                     {"parallel.tensr", "did you mean \"tensor\"?"}}) {
    CAPTURE(typed);
    CHECK_THAT(problem_of({"estimate", run, "--set", std::string(typed) + "=1"}), test::Contains(meant));
  }
}

TEST_CASE("a fabric that stands under another name is told it") {
  for (const auto& [typed, meant] : {std::pair{"slingshot", "roce"},
                                     {"Slingshot-11", "roce"},
                                     {"spectrum-x", "roce"},
                                     {"NDR", "infiniband"},
                                     {"OPA", "omni-path"},
                                     {"tcp", "ethernet"},
                                     {"SRD", "efa"}}) {
    const std::string error = problem_of({"estimate", run, "--set", std::string("cluster.inter_node.type=") + typed});
    CAPTURE(typed);
    CHECK_THAT(error, test::Contains(std::string("did you mean \"") + meant + "\"?"));
  }
  const std::string other = problem_of({"estimate", run, "--set", "cluster.inter_node.type=xyzzy"});
  CHECK_THAT(other, test::Contains("infiniband, roce, efa, omni-path or ethernet"));
  CHECK_THAT(other, test::Contains("roce stands for other RDMA fabrics"));
}

TEST_CASE("an unknown optimizer gets three names that list optimizers has") {
  for (const char* const typed : {"adam8bit", "adam_w", "muonn", "xyzzy", "bnb8"}) {
    const std::string error = problem_of({"estimate", run, "--optimizer", typed});
    CAPTURE(typed, error);
    const std::string lead = "the nearest are ";
    const std::size_t at = error.find(lead);
    REQUIRE(at != std::string::npos);
    std::string names = error.substr(at + lead.size(), error.find(" (--optimizer)") - at - lead.size());
    names.replace(names.find(" and "), 5, ", ");
    std::size_t count = 0;
    for (std::size_t begin = 0; begin < names.size(); ++count) {
      const std::size_t end = std::min(names.find(", ", begin), names.size());
      const std::string name = names.substr(begin, end - begin);
      const shardplan::Optimizer* const found = shardplan::find_optimizer(name);
      CAPTURE(name);
      REQUIRE(found != nullptr);
      CHECK(found->name == name);
      begin = end + 2;
    }
    CHECK(count == 3);
    CHECK_THAT(error, test::Contains("shardplan list optimizers"));
  }
  CHECK_THAT(problem_of({"estimate", run, "--optimizer", "adam8bit"}), test::Contains("nearest are adamw-8bit,"));
}

TEST_CASE("a part of the adapters does not switch them on") {
  const std::vector<Words> parts = {{"--quant", "nf4"},
                                    {"--quant", "none"},
                                    {"--lora-alpha", "32"},
                                    {"--lora-targets", "all-linear"},
                                    {"--set", "training.peft.dropout=0.1"},
                                    {"--set", "training.peft.double_quant=false"}};
  for (const Words& part : parts) {
    CAPTURE(part);
    for (const char* const command : {"estimate", "check", "search"}) {
      const std::string error = problem_of({command, fsdp, part[0], part[1]});
      CHECK_THAT(error, test::Contains("the run has no adapters"));
      CHECK_THAT(error, test::Contains("--lora-rank 16"));
    }
    const std::string target = part[0] == "--lora-targets" ? "training.peft.method=lora" : "training.peft.rank=8";
    CHECK(program({"estimate", fsdp, part[0], part[1], "--set", target}).status == 0);
    CHECK(program({"estimate", adapters, part[0], part[1]}).status != 2);
  }
  CHECK(program({"estimate", fsdp, "--lora-rank", "8"}).status == 0);
  CHECK_THAT(problem_of({"sweep", fsdp, "--vary", "quant=none,nf4"}), test::Contains("the run has no adapters"));
}

TEST_CASE("a flag that changes nothing says so, and one that does is silent") {
  struct Row {
    Words words;
    const char* says;
  };
  const Row rows[] = {{{fsdp, "--schedule", "zb-h1"}, "--schedule changes nothing: there is no pipeline"},
                      {{fsdp, "--set", "training.fp8.recipe=mxfp8"}, "changes nothing: the precision is not fp8"},
                      {{fsdp, "--set", "parallel.context_comm=a2a"}, "changes nothing: sequences are not split"},
                      {{fsdp, "--set", "training.overlap.tp=true"}, "changes nothing: there is no tensor"},
                      {{run, "--set", "parallel.fsdp_version=1"}, "changes nothing: the run has no FSDP"},
                      {{run, "--schedule", "zb-h1"}, nullptr},
                      {{run, "--set", "training.fp8.recipe=mxfp8", "--precision", "fp8"}, nullptr},
                      {{fsdp, "--set", "parallel.fsdp_version=1"}, nullptr},
                      {{fsdp}, nullptr}};
  for (const Row& row : rows) {
    Words words = row.words;
    words.insert(words.begin(), "estimate");
    const test::ProcessResult result = program(words);
    CAPTURE(words, result.err);
    if (row.says != nullptr) {
      CHECK_THAT(result.err, test::Contains(row.says));
    } else {
      CHECK(result.err.find("changes nothing") == std::string::npos);
    }
  }
}

TEST_CASE("what is added to --offload is said whole") {
  const auto offload = [](const Words& flags) {
    Words words = {"estimate", fsdp};
    words.insert(words.end(), flags.begin(), flags.end());
    return problem_of(words);
  };
  CHECK_THAT(offload({"--offload", "optimizer=cpu"}), test::Contains("    --offload optimizer=cpu,parameters=cpu, or"));
  CHECK_THAT(offload({"--offload", "parameters=cpu"}),
             test::Contains("    --offload parameters=cpu,optimizer=cpu, or"));
  CHECK_THAT(offload({"--offload", "optimizer=cpu,activations=cpu"}),
             test::Contains("    --offload optimizer=cpu,activations=cpu,parameters=cpu, or"));
  CHECK_THAT(offload({"--set", "training.offload.optimizer=cpu"}),
             test::Contains("    --offload parameters=cpu beside --set training.offload.optimizer=cpu, or"));
}

TEST_CASE("a vendor's own runtime is named, for every built-in card") {
  const shardplan::io::CatalogSource& catalog = shardplan::catalog::builtin_catalog();
  const auto names = catalog.names(shardplan::io::CatalogKind::gpus);
  for (const auto& gpu : names) {
    const auto found = shardplan::io::find_gpu(gpu, "", "", catalog);
    REQUIRE(found.ok());
    CAPTURE(gpu, found.value.vendor);
    CHECK((shardplan::runtime_of(found.value.vendor).name == "CUDA") == (found.value.vendor == "NVIDIA"));
    CHECK(shardplan::runtime_of(found.value.vendor).name != "the driver");
    if (!found.value.memory_is_estimated) continue;
    const std::string cluster = "cluster={\"gpu\":\"" + std::string(gpu) + "\"}";
    const test::ProcessResult result =
        program({"estimate", "--model", "gpt2", "--gpus", "1", "--precision", "fp32", "--set", cluster});
    CAPTURE(result.err);
    if (result.status == 2) continue;  // no rate for fp32
    const std::string runtime(shardplan::runtime_of(found.value.vendor).name);
    CHECK_THAT(result.err, test::Contains("the memory that " + runtime + " reports on " + found.value.name));
    CHECK_THAT(result.out, test::Contains(shardplan::runtime_of(found.value.vendor).context.data()));
  }
  CHECK(names.size() > 40);
}

TEST_CASE("sizes of data are bytes: --units has no place there") {
  for (const Words& words : {Words{"estimate", run, "--json"},
                             {"list", "gpus", "--json"},
                             {"check", run, "--format", "sarif"},
                             {"schedule", run, "--format", "trace"}}) {
    Words line = words;
    line.insert(line.end(), {"--units", "gb"});
    CHECK_THAT(problem_of(line), test::Contains("--units has no place in"));
  }
  CHECK(program({"estimate", run, "--units", "gb"}).status == 0);
  CHECK(program({"estimate", run, "--units", "gb", "--format", "markdown"}).status == 0);
}

TEST_CASE("a step of very many microbatches has hints, and says what was left out") {
  const test::ProcessResult result = program({"estimate", run, "--microbatches", "500000", "--seq", "128"});
  CAPTURE(result.out, result.err);
  CHECK_THAT(result.out, test::Contains("Next  --"));
  CHECK_THAT(result.err, test::Contains("more changes were not tried: a step of 500,000 microbatches"));
  CHECK(program({"estimate", run}).err.find("not tried") == std::string::npos);
}
