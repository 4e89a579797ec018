// Model and cluster files. A cluster's reader says what it asks for; the generic model type has a table.
#include "families/family.hpp"
#include "file_members.hpp"
#include "schemas.hpp"

namespace shardplan::io::schema {
namespace {

using Kind = ValueType::Kind;

/// What the Hub does not have.
Json own_members() {
  const Json text = {{"type", "string"}};
  return described("What the Hub does not have.",
                   closed_object({{"name", described("for reports", or_null(text))},
                                  {"aliases", list_of(text)},
                                  {"source", described("where it is from", or_null(text))},
                                  {"trust", described("A, B or C", or_null(text))}}));
}

Json generic_field(const GenericField& field) {
  if (field.name == "$schema") return {{"type", "string"}};
  if (field.name == "model_type") return {{"const", std::string(transformer_family().model_type)}};
  Json schema = field.type.kind == Kind::list ? or_null(list_of(word_schema(field.type.words)))
                                              : or_null(value_schema(field.type));
  return field.about.empty() ? schema : described(field.about, std::move(schema));
}

Json generic_model() {
  Json properties = Json::object();
  for (const GenericField& field : transformer_fields()) {
    properties[std::string(field.name)] = field.type.kind == Kind::object ? own_members() : generic_field(field);
  }
  Json schema = {{"properties", std::move(properties)},
                 {"additionalProperties", false},
                 {"required", Json::array({"hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"})}};
  return schema;
}

/// Fields that every family reads under these names; null is "not stated" only where the reader has a default.
Json published_model(const Json& model_types) {
  const auto positive = [](std::int64_t most) { return Json{{"type", "integer"}, {"minimum", 1}, {"maximum", most}}; };
  Json properties = {{"model_type", model_types},
                     {"shardplan", own_members()},
                     {"hidden_size", positive(limits::hidden)},
                     {"num_hidden_layers", positive(limits::layers)},
                     {"vocab_size", positive(limits::vocab)},
                     {"num_attention_heads", positive(limits::heads)},
                     {"tie_word_embeddings", or_null({{"type", "boolean"}})}};
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"anyOf",
           Json::array({{{"required", Json::array({"model_type"})}}, {{"required", Json::array({"architectures"})}}})}};
}

}  // namespace

Json model_schema() {
  const std::string generic(transformer_family().model_type);
  Json if_generic = {{"required", Json::array({"model_type"})}};
  if_generic["properties"]["model_type"] = {{"const", generic}};
  const Json model_types = word_schema(family_names());
  Json schema = {{"type", "object"},
                 {"if", std::move(if_generic)},
                 {"then", generic_model()},
                 {"else", published_model(model_types)}};
  schema["properties"]["model_type"] = model_types;
  return described("A Hugging Face config.json as published, or the generic model_type \"transformer\".",
                   std::move(schema));
}

Json gpu_schema() {
  ObjectShape shape;
  Diagnostics ignored;
  ObjectReader reader(shape, ignored);
  Gpu gpu;
  read_gpu_members(reader, gpu);
  Json schema = shape_schema(shape);
  schema["properties"]["compute_capability"]["pattern"] = "^[0-9]{1,2}\\.[0-9]$";
  return described("A GPU: the fields of `shardplan list gpus --json`.", std::move(schema));
}

Json cluster_schema(const CatalogSource& catalog) {
  ObjectShape shape;
  Diagnostics ignored;
  ObjectReader reader(shape, ignored);
  Cluster cluster;
  read_cluster_members(reader, catalog, cluster);
  Json schema = shape_schema(shape);
  schema["properties"]["gpu"] = described("A built-in GPU (`shardplan list gpus`) or its fields.",
                                          reference_schema(CatalogKind::gpus, catalog, gpu_schema(), false));
  return described("Nodes, links and hosts around a GPU.", std::move(schema));
}

}  // namespace shardplan::io::schema
