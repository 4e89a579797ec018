// Every built-in text: found by name and alias, read without a problem, with a source.
#include "shardplan/catalog/catalog.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "shardplan/io/cluster_file.hpp"
#include "shardplan/io/gpu_file.hpp"
#include "shardplan/io/model_config.hpp"
#include "shardplan/io/stack_file.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "support/catch.hpp"

using namespace shardplan;
using catalog::builtin_catalog;
using io::CatalogKind;

namespace {

nlohmann::json entry_of(CatalogKind kind, std::string_view name) {
  const auto text = builtin_catalog().find(kind, name);
  REQUIRE(text.has_value());
  return nlohmann::json::parse(*text);
}

std::string first_problem(const Diagnostics& problems) {
  return problems.empty() ? "" : problems.front().pointer + ": " + problems.front().message;
}

std::string upper(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

std::vector<std::string> aliases_of(CatalogKind kind, const nlohmann::json& entry) {
  if (kind == CatalogKind::models) return io::model_aliases(entry);
  return entry.value("aliases", std::vector<std::string>());
}

}  // namespace

TEST_CASE("every kind has entries") {
  CHECK(builtin_catalog().names(CatalogKind::gpus).size() >= 50);
  CHECK(builtin_catalog().names(CatalogKind::clusters).size() >= 50);
  CHECK(builtin_catalog().names(CatalogKind::stacks).size() == 14);
  CHECK(catalog::run_names().size() >= 12);
}

TEST_CASE("names and aliases lead to their entry, whatever their case, and to one only") {
  for (const CatalogKind kind : {CatalogKind::models, CatalogKind::gpus, CatalogKind::clusters, CatalogKind::stacks}) {
    std::map<std::string, std::string> owner;
    for (const std::string_view name : builtin_catalog().names(kind)) {
      INFO(shardplan::name(kind) << " " << name);
      const auto text = builtin_catalog().find(kind, name);
      REQUIRE(text.has_value());
      std::vector<std::string> keys = aliases_of(kind, nlohmann::json::parse(*text));
      keys.emplace_back(name);
      for (const std::string& key : keys) {
        INFO(key);
        CHECK(owner.emplace(upper(key), name).second);
        const auto found = builtin_catalog().find(kind, upper(key));
        REQUIRE(found.has_value());
        CHECK(found->data() == text->data());
      }
    }
  }
}

TEST_CASE("what is not built in is not found") {
  for (const char* name : {"", "h100x", "H10", "zzz", "-", "a", "H100 "}) {
    CHECK_FALSE(builtin_catalog().find(CatalogKind::gpus, name).has_value());
  }
  CHECK_FALSE(catalog::find_run("no-such-run").has_value());
}

TEST_CASE("every GPU reads, with a source and a level of trust") {
  for (const std::string_view name : builtin_catalog().names(CatalogKind::gpus)) {
    INFO(name);
    const Result<Gpu> gpu = io::find_gpu(name, "test", "", builtin_catalog());
    INFO(first_problem(gpu.problems));
    REQUIRE(gpu.ok());
    CHECK(gpu.value.name == name);
    CHECK_FALSE(gpu.value.source.empty());
    CHECK(std::string("ABC").find(gpu.value.trust) != std::string::npos);
    CHECK(gpu.value.trust.size() == 1);
    CHECK_FALSE(gpu.value.vendor.empty());
    CHECK(gpu.value.memory_cuda_bytes > 10e9);
    CHECK(gpu.value.memory_cuda_bytes <= gpu.value.memory_reported_bytes);
    CHECK(gpu.value.memory_cuda_bytes > 0.94 * gpu.value.memory_reported_bytes);
    CHECK(std::max(gpu.value.peak(Precision::fp16), gpu.value.peak(Precision::bf16)) > 50e12);
  }
}

TEST_CASE("every cluster reads, names a built-in GPU and has a source") {
  for (const std::string_view name : builtin_catalog().names(CatalogKind::clusters)) {
    INFO(name);
    const Result<Cluster> cluster = io::find_cluster(name, "test", "", builtin_catalog());
    INFO(first_problem(cluster.problems));
    REQUIRE(cluster.ok());
    CHECK(cluster.value.name == name);
    CHECK_FALSE(cluster.value.source.empty());
    CHECK(cluster.value.intra_node.bandwidth >= cluster.value.inter_node.bandwidth);
    CHECK(cluster.value.host.memory_bytes > 0);
    CHECK(cluster.value.host.pcie_bandwidth > 0);
    if (cluster.value.gpu.link_bandwidth > 0) {
      CHECK(cluster.value.intra_node.bandwidth <= cluster.value.gpu.link_bandwidth);
    }
    CHECK(std::string("ABC").find(entry_of(CatalogKind::clusters, name).value("trust", "?")) != std::string::npos);
  }
}

TEST_CASE("every model reads") {
  for (const std::string_view name : builtin_catalog().names(CatalogKind::models)) {
    INFO(name);
    const Result<Model> model = io::read_model(entry_of(CatalogKind::models, name), name, "");
    INFO(first_problem(model.problems));
    CHECK(model.ok());
  }
}

TEST_CASE("the files of configs/ are what is built in") {
  const std::filesystem::path configs = std::filesystem::path(SHARDPLAN_SOURCE_DIR) / "configs";
  const auto files = [&](const char* folder) {
    std::set<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(configs / folder)) {
      if (file.path().extension() == ".json") names.insert(file.path().stem().string());
    }
    return names;
  };
  const auto names = [](CatalogKind kind) {
    const auto found = builtin_catalog().names(kind);
    return std::set<std::string>(found.begin(), found.end());
  };
  CHECK(names(CatalogKind::models) == files("models"));
  CHECK(names(CatalogKind::clusters) == files("clusters"));
  std::set<std::string> stacks = names(CatalogKind::stacks);
  for (const FrameworkFacts* const facts : framework_table) stacks.insert(std::string(facts->default_stack));
  CHECK(stacks == files("stacks"));
  const auto runs = catalog::run_names();
  CHECK(std::set<std::string>(runs.begin(), runs.end()) == files("runs"));
  for (const std::string_view run : runs) {
    std::ifstream file(configs / "runs" / (std::string(run) + ".json"));
    std::ostringstream text;
    text << file.rdbuf();
    CHECK(nlohmann::json::parse(text.str(), nullptr, true, true) ==
          nlohmann::json::parse(*catalog::find_run(run), nullptr, true, true));
  }
}

TEST_CASE("lists are in natural order") {
  const auto names = builtin_catalog().names(CatalogKind::gpus);
  const auto place = [&](std::string_view name) { return std::find(names.begin(), names.end(), name) - names.begin(); };
  CHECK(place("A10") < place("A100-SXM-80GB"));
  CHECK(place("H20-96GB") < place("H100-SXM-80GB"));
  CHECK(place("A100-SXM-80GB") < place("H100-SXM-80GB"));
}
