// The schemas say what the reader does: they accept what it accepts, refuse what it refuses, and know its words.
#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "property/random_run.hpp"
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/core/run.hpp"
#include "shardplan/io/cluster_file.hpp"
#include "shardplan/io/json_text.hpp"
#include "shardplan/io/model_config.hpp"
#include "shardplan/io/run_file.hpp"
#include "shardplan/physics/optimizers.hpp"
#include "shardplan/plan/field_table.hpp"
#include "shardplan/plan/requirements.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"
#include "validator.hpp"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using shardplan::name;

const std::string root = SHARDPLAN_SOURCE_DIR;

std::vector<fs::path> files_of(const std::string& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(root + "/" + folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

json parsed(const fs::path& file) {
  const auto text = shardplan::io::parse_json(test::read_file(file.string()), file.string());
  REQUIRE(text.ok());
  return *text.value.value;
}

/// The schema of the member at a JSON pointer of a run file.
const json* member_schema(const json& schema, const std::string& pointer) {
  const json* node = &schema;
  for (const std::string& token : shardplan::io::pointer_tokens(pointer)) {
    const json* next = nullptr;
    const std::vector<const json*> candidates = [&] {
      std::vector<const json*> all = {node};
      for (const char* const key : {"anyOf"}) {
        if (node->contains(key)) {
          for (const json& each : (*node)[key]) all.push_back(&each);
        }
      }
      return all;
    }();
    for (const json* candidate : candidates) {
      if (candidate->contains("$ref")) {
        const std::string reference = (*candidate)["$ref"].get<std::string>();
        candidate = &schema["definitions"][reference.substr(reference.rfind('/') + 1)];
      }
      if (candidate->contains("properties") && (*candidate)["properties"].contains(token)) {
        next = &(*candidate)["properties"][token];
      }
    }
    if (next == nullptr) return nullptr;
    node = next;
  }
  return node;
}

/// A whole run with one field set.
json run_with(const std::string& pointer, const json& value) {
  json run = {{"model", "llama-3.1-8b"}, {"cluster", "dgx-h100"}, {"num_gpus", 8}};
  run[json::json_pointer(pointer)] = value;
  return run;
}

}  // namespace

TEST_CASE("the schemas accept every file under configs/") {
  std::size_t count = 0;
  for (const auto& [folder, kind] : {std::pair{"runs", "run"}, {"clusters", "cluster"}, {"models", "model"}}) {
    for (const fs::path& file : files_of(std::string("configs/") + folder)) {
      CAPTURE(file.string());
      CHECK(test::schema_of(kind).error(parsed(file)).empty());
      ++count;
    }
  }
  CHECK(count > 200);
}

TEST_CASE("a cluster may hold each built-in GPU as an object") {
  const shardplan::io::CatalogSource& catalog = shardplan::catalog::builtin_catalog();
  const auto names = catalog.names(shardplan::io::CatalogKind::gpus);
  for (const auto& gpu : names) {
    CAPTURE(gpu);
    const auto text = catalog.find(shardplan::io::CatalogKind::gpus, gpu);
    REQUIRE(text);
    const std::string error = test::schema_of("cluster").error({{"gpu", json::parse(*text)}});
    CAPTURE(error);
    CHECK(error.empty());
  }
  CHECK(names.size() > 40);
}

TEST_CASE("the run schema refuses each malformed input") {
  // Rules that hold between numbers, or between a file and what it names: no schema can say them, the reader does.
  const std::set<std::string> beyond_schemas = {
      "batch-not-divided.json",        "context-does-not-divide.json",
      "experts-of-a-dense-model.json", "half-a-node.json",
      "heads-not-divided.json",        "interleaved-microbatches.json",
      "layers-not-divided.json",       "missing-model-file.json",
      "position-table-too-short.json", "sequence-parallel-does-not-divide.json",
      "stages-do-not-sum.json",        "too-few-stages.json",
      "unknown-target.json",           "world-mismatch.json"};
  std::size_t refused = 0;
  for (const fs::path& file : files_of("tests/malformed/inputs")) {
    const auto text = shardplan::io::parse_json(test::read_file(file.string()), file.string());
    CAPTURE(file.filename().string());
    if (!text.ok()) {  // no JSON: nothing for a schema
      ++refused;
      continue;
    }
    const bool valid = test::schema_of("run").error(*text.value.value).empty();
    CHECK(valid == (beyond_schemas.count(file.filename().string()) > 0));
    shardplan::io::RunInput input;
    input.text = text.value;
    CHECK_FALSE(shardplan::io::read_run(input, shardplan::catalog::builtin_catalog()).ok());
    refused += valid ? 0 : 1;
  }
  CHECK(refused > 70);
}

TEST_CASE("legal runs are valid") {
  test::Random random(20240917);
  std::size_t legal = 0;
  for (int i = 0; i < 400; ++i) {
    const json run = test::random_run(random);
    const auto read =
        shardplan::io::read_run(shardplan::io::run_input_from_json(run.dump()), shardplan::catalog::builtin_catalog());
    if (!read.ok()) continue;
    ++legal;
    const std::string error = test::schema_of("run").error(run);
    CAPTURE(run.dump(), error);
    CHECK(error.empty());
    // As resolved, too.
    const std::string resolved = test::schema_of("run").error(json::parse(read.run_json));
    CAPTURE(read.run_json, resolved);
    CHECK(resolved.empty());
  }
  CHECK(legal > 100);
}

TEST_CASE("what is null is not stated, to the reader and to the schema") {
  const auto accepted = [](const json& run) {
    CAPTURE(run.dump());
    const std::string error = test::schema_of("run").error(run);
    CAPTURE(error);
    CHECK(error.empty());
    const auto read =
        shardplan::io::read_run(shardplan::io::run_input_from_json(run.dump()), shardplan::catalog::builtin_catalog());
    CHECK(read.ok());
  };
  json nothing = run_with("/parallel", nullptr);
  for (const char* const section : {"/parallel", "/training", "/require", "/defaults"}) {
    accepted(run_with(section, nullptr));
    nothing[json::json_pointer(section)] = nullptr;
  }
  accepted(nothing);
  for (const std::string_view pointer : shardplan::names_of<shardplan::plan::Field>) {
    if (pointer == "/model" || pointer == "/cluster" || pointer == "/num_gpus") continue;
    accepted(run_with(std::string(pointer), nullptr));
  }
}

TEST_CASE("the run schema has every field of the reader, and no other") {
  const json& schema = test::schema_of("run").document();
  for (const std::string_view pointer : shardplan::names_of<shardplan::plan::Field>) {
    CAPTURE(pointer);
    CHECK(member_schema(schema, std::string(pointer)) != nullptr);
  }
  for (const std::string_view member : shardplan::names_of<shardplan::plan::Requirement>) {
    CAPTURE(member);
    CHECK(member_schema(schema, "/require/" + std::string(member)) != nullptr);
  }
  for (const char* const section :
       {"/parallel", "/parallel/zeropp", "/training", "/training/fp8", "/training/kernels", "/training/moe",
        "/training/peft", "/training/offload", "/training/overlap", "/require"}) {
    const std::string inner = std::string(section) + "/no_such_field";
    CAPTURE(section);
    CHECK_FALSE(test::schema_of("run").error(run_with(inner, 1)).empty());
  }
}

TEST_CASE("the run schema knows the reader's words") {
  const auto check = [](const std::string& pointer, const auto& names, const std::set<std::string>& beside = {}) {
    for (const std::string_view each : names) {
      if (beside.count(std::string(each)) > 0) continue;
      CAPTURE(pointer, each);
      json run = run_with(pointer, std::string(each));
      if (each == "interleaved") run["parallel"]["virtual_pipeline"] = 2;
      CHECK(test::schema_of("run").error(run).empty());
    }
    CAPTURE(pointer);
    CHECK_FALSE(test::schema_of("run").error(run_with(pointer, "no-such-word")).empty());
  };
  using namespace shardplan;
  check("/parallel/fsdp", names_of<Fsdp>);
  check("/parallel/grad_sync", names_of<GradSync>);
  check("/parallel/context_comm", names_of<ContextComm>);
  check("/parallel/schedule", names_of<ScheduleKind>);
  check("/training/precision", names_of<Precision>);
  check("/training/fp8/recipe", names_of<Fp8Recipe>);
  check("/training/framework", names_of<Framework>);
  check("/training/optimizer_impl", names_of<OptimizerImpl>);
  check("/training/attention", names_of<AttentionKernel>);
  check("/training/loss", names_of<LossKind>, {"chunked"});
  check("/training/param_dtype", names_of<DType>);
  check("/training/peft/method", names_of<PeftMethod>, {"none"});
  check("/training/peft/quant", names_of<Quantization>);
  check("/training/kernels/sp_input", names_of<SequenceParallelInput>);
  check("/training/kernels/softmax", names_of<SoftmaxKernel>);
  check("/training/stack", catalog::builtin_catalog().names(io::CatalogKind::stacks));
  check("/model", catalog::builtin_catalog().names(io::CatalogKind::models));
  check("/cluster", catalog::builtin_catalog().names(io::CatalogKind::clusters));
  std::vector<std::string_view> names;
  for (const Optimizer& optimizer : optimizers()) names.push_back(optimizer.name);
  for (const OptimizerAlias& alias : optimizer_aliases()) names.push_back(alias.name);
  check("/training/optimizer", names);
  CHECK(test::schema_of("run").error(run_with("/training/optimizer", "AdamW_Torch_Fused")).empty());
  CHECK(test::schema_of("run").error(run_with("/model", "LLaMA-3.1-8B")).empty());
  CHECK(test::schema_of("run").error(run_with("/training/recompute", {{"modules", {"core_attn"}}})).empty());
  for (const std::string_view type : io::supported_model_types()) {
    CAPTURE(type);
    if (type == "transformer") continue;
    CHECK(test::schema_of("model").error({{"model_type", std::string(type)}, {"hidden_size", 64}}).empty());
  }
}

TEST_CASE("schema prints the schemas that are tested here") {
  for (const std::string kind : {"run", "cluster", "model", "output"}) {
    const test::ProcessResult result = test::run_process({SHARDPLAN_BINARY, "schema", kind});
    CAPTURE(kind, result.err);
    CHECK(result.status == 0);
    CHECK(json::parse(result.out) == test::schema_of(kind).document());
  }
}

TEST_CASE("the schemas have the ends of every number") {
  const json& schema = test::schema_of("run").document();
  std::size_t numbers = 0;
  for (const shardplan::plan::FieldRow& row : shardplan::plan::field_rows()) {
    const shardplan::ValueType& type = row.value.type;
    const bool integer = type.kind == shardplan::ValueType::Kind::integer;
    if (!integer && type.kind != shardplan::ValueType::Kind::number) continue;
    ++numbers;
    CAPTURE(row.pointer);
    const double low = type.range.from.value_or(type.range.above.value_or(0));
    const std::string pointer(row.pointer);
    // Beside fields that other rules of the schema look at a value may be refused for their sake.
    CHECK(test::schema_of("run").error(run_with(pointer, type.range.to + 1)).size() > 0);
    CHECK(test::schema_of("run").error(run_with(pointer, low - 1)).size() > 0);
    const json* const member = member_schema(schema, pointer);
    REQUIRE(member != nullptr);
    CHECK((*member)["maximum"].get<double>() == type.range.to);
    CHECK((*member)[type.range.above ? "exclusiveMinimum" : "minimum"].get<double>() == low);
  }
  CHECK(numbers > 20);
}

namespace {

/// Calls visit(pointer, schema) for every number of an object's schema and of the objects in it.
template <class Visit>
void each_number(const json& schema, const std::string& pointer, const Visit& visit) {
  for (const auto& [name, member] : schema["properties"].items()) {
    const json type = member.value("type", json());
    const bool number =
        type.dump().find("number") != std::string::npos || type.dump().find("integer") != std::string::npos;
    if (number && member.contains("maximum")) visit(pointer + "/" + name, member);
    if (member.contains("properties")) each_number(member, pointer + "/" + name, visit);
  }
}

}  // namespace

TEST_CASE("the cluster schema's numbers end where the reader's do") {
  const shardplan::io::CatalogSource& catalog = shardplan::catalog::builtin_catalog();
  const auto gpu = json::parse(*catalog.find(shardplan::io::CatalogKind::gpus, "h100"));
  const json& schema = test::schema_of("cluster").document();
  const json& of_gpu = schema["properties"]["gpu"]["anyOf"].back();
  std::size_t count = 0;
  const auto agree = [&](const std::string& pointer, const json& value) {
    json cluster = {{"gpu", gpu}};
    cluster[json::json_pointer(pointer)] = value;
    const bool read = shardplan::io::read_cluster(cluster, "cluster.json", "", catalog).ok();
    CAPTURE(pointer, value.dump(), test::schema_of("cluster").error(cluster));
    CHECK(read == test::schema_of("cluster").error(cluster).empty());
    return read;
  };
  const auto ends = [&](const std::string& pointer, const json& member) {
    ++count;
    const double most = member["maximum"].get<double>();
    CHECK(agree(pointer, member["maximum"]));
    CHECK_FALSE(agree(pointer, 2 * most + 1));
    const json least = member.contains("minimum") ? member["minimum"] : member["exclusiveMinimum"];
    CHECK(agree(pointer, least) == member.contains("minimum"));
    CHECK_FALSE(agree(pointer, least.get<double>() - 1));
    CHECK_FALSE(agree(pointer, "a word"));
  };
  each_number(schema, "", ends);
  each_number(of_gpu, "/gpu", ends);
  CHECK(count > 40);
  CHECK_FALSE(agree("/inter_node/type", "token-ring"));
  CHECK_FALSE(agree("/no_such_member", 1));
  CHECK_FALSE(agree("/gpu/no_such_member", 1));
}
