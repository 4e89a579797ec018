#include "shardplan/io/schemas.hpp"

#include <array>

#include "schemas.hpp"

namespace shardplan::io {
namespace {

using schema::Json;

struct Kind {
  std::string_view name;
  std::string_view title;
  Json (*schema)(const CatalogSource& catalog);
};

constexpr std::array<Kind, 4> kinds = {{
    {"cluster", "shardplan cluster file", schema::cluster_schema},
    {"model", "shardplan model file", [](const CatalogSource&) { return schema::model_schema(); }},
    {"output", "shardplan output", schema::output_schema},
    {"run", "shardplan run file", schema::run_schema},
}};

}  // namespace

std::vector<std::string_view> schema_names() {
  std::vector<std::string_view> names;
  for (const Kind& kind : kinds) names.push_back(kind.name);
  return names;
}

std::optional<std::string> schema_text(std::string_view name, const CatalogSource& catalog) {
  for (const Kind& kind : kinds) {
    if (kind.name != name) continue;
    Json document = {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", std::string(kind.title)}};
    document.update(kind.schema(catalog));
    return document.dump(1) + "\n";
  }
  return std::nullopt;
}

}  // namespace shardplan::io
