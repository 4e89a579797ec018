// Parameter counts of the built-in models and of one model of every other family, to the last parameter.
#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "model_support.hpp"
#include "shardplan/physics/parameters.hpp"

using namespace shardplan;

namespace {

std::vector<std::string> built_in_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(SHARDPLAN_SOURCE_DIR) + "/configs/models")) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::int64_t sum(const ParametersByPart& part) {
  return part.embedding + part.attention + part.mlp + part.experts + part.router + part.norm + part.head;
}

}  // namespace

TEST_CASE("built-in models hold exactly the published number of parameters") {
  const nlohmann::json rows = test::json_file("tests/evidence/model_parameters.json");
  REQUIRE(rows.size() >= 130);
  for (const nlohmann::json& row : rows) {
    const auto name = row.at("model").get<std::string>();
    const Model model = test::model_of(test::json_file("configs/models/" + name + ".json"));
    const ModelCounts counts = count_parameters(model);
    INFO(name << ", " << row.at("source").get<std::string>());
    CHECK(counts.parameters == row.at("parameters").get<std::int64_t>());
    if (row.contains("active_parameters")) {
      CHECK(counts.active_parameters == row.at("active_parameters").get<std::int64_t>());
    }
    CHECK(sum(counts.by_part) == counts.parameters);
  }
}

TEST_CASE("one model of each further family holds exactly the published number of parameters") {
  const nlohmann::json rows = test::json_file("tests/evidence/model_families.json").at("models");
  REQUIRE(rows.size() >= 35);
  for (const nlohmann::json& row : rows) {
    INFO(row.at("model").get<std::string>());
    CHECK(count_parameters(test::model_of(row.at("config"))).parameters == row.at("parameters").get<std::int64_t>());
  }
}

TEST_CASE("every built-in model is readable, has a source and no name twice") {
  const std::vector<std::string> names = built_in_names();
  REQUIRE(names.size() >= 100);
  std::set<std::string> taken(names.begin(), names.end());
  for (const std::string& name : names) {
    const nlohmann::json config = test::json_file("configs/models/" + name + ".json");
    INFO(name);
    const Model model = test::model_of(config);
    CHECK(model.layers() > 0);
    CHECK(model.kinds.size() <= 32);
    CHECK((model.max_position_embeddings > 0 || model.position == Position::alibi));
    CHECK_FALSE(config.at("shardplan").at("source").get<std::string>().empty());
    for (const std::string& alias : io::model_aliases(config)) {
      INFO(alias);
      CHECK(taken.insert(alias).second);
    }
  }
}
