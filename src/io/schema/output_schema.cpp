// What the commands print with --json: the schema is drawn from the calls that write it.
#include <array>

#include "describe_outputs.hpp"
#include "schema_writer.hpp"
#include "schemas.hpp"
#include "shardplan/version.hpp"

namespace shardplan::io::schema {
namespace {

constexpr std::array<std::string_view, 9> listed_kinds = {"kinds",     "models",     "gpus",   "clusters", "stacks",
                                                          "schedules", "optimizers", "dtypes", "topics"};

/// `list`: a document a kind.
void describe_list(JsonWriter& out, std::string_view kind) {
  out.begin_object();
  out.constant("schema", "shardplan/list/v1");
  out.text("version", SHARDPLAN_VERSION);
  out.constant("kind", kind);
  out.begin_array("items");
  describe_list_item(out, kind);
  out.end_array();
  out.end_object();
}

/// A software profile, whole.
Json stack_schema() {
  const Json text = {{"type", "string"}};
  const Json number_or_flag = {{"type", "object"}, {"additionalProperties", {{"type", {"number", "boolean"}}}}};
  Json properties = Json::object();
  std::vector<std::string> required;
  const auto add = [&](const char* name, Json schema, bool always = true) {
    properties[name] = std::move(schema);
    if (always) required.emplace_back(name);
  };
  for (const char* const name : {"name", "framework", "description", "loss", "flash", "source"}) add(name, text);
  add("kernels", reference_to("training/properties/kernels"));
  add("optimizer_impl", reference_to("training/properties/optimizer_impl"));
  for (const char* const name : {"compile", "autocast"}) add(name, {{"type", "boolean"}});
  add("overlap", reference_to("training/properties/overlap"));
  for (const char* const name : {"memory", "timing"}) add(name, number_or_flag);
  add("fsdp_version", {{"type", "integer"}, {"minimum", 1}}, false);
  add("tensor_is_sequence_parallel", {{"type", "boolean"}}, false);
  return closed_object(std::move(properties), required);
}

}  // namespace

Json output_schema(const CatalogSource& catalog) {
  const Json run = run_schema(catalog);
  Json definitions = run["definitions"];
  definitions["resolved_run"] = resolved_run_schema(run);
  definitions["gpus"] = gpu_schema();
  definitions["clusters"] = cluster_schema(catalog);
  definitions["stacks"] = stack_schema();

  SchemaWriter estimate;
  describe_estimate(estimate);
  definitions["estimate"] = estimate.documents().front();
  SchemaWriter others;
  for (const auto& describe : {describe_check, describe_sweep, describe_compare, describe_search, describe_solve,
                               describe_explain, describe_schedule}) {
    describe(others);
  }
  for (const std::string_view kind : listed_kinds) describe_list(others, kind);
  Json kinds = Json::array({reference_to("estimate")});
  for (const Json& document : others.documents()) kinds.push_back(document);
  return described("What this version's commands print with --json; later versions may add members.",
                   {{"oneOf", std::move(kinds)}, {"definitions", std::move(definitions)}});
}

}  // namespace shardplan::io::schema
