// What the commands print with --json: the schema is drawn from the calls that write it.
#include <array>

#include "describe_outputs.hpp"
#include "schema_writer.hpp"
#include "schemas.hpp"
#include "shardplan/version.hpp"
#include "stack_members.hpp"

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

/// A software profile, whole: what only some stacks say apart.
Json stack_schema() {
  ObjectShape shape;
  Diagnostics ignored;
  ObjectReader reader(shape, ignored);
  Stack stack;
  read_stack_members(reader, stack);
  for (ObjectShape::Entry& entry : shape.entries) {
    entry.required = entry.name != "fsdp_version" && entry.name != "tensor_is_sequence_parallel";
  }
  return shape_schema(shape);
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
