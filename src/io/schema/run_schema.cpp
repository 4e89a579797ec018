// Run files: the rows of the field table, the syntaxes that no row has, and the rules between fields that a schema can
// say.
#include <algorithm>

#include "schemas.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/physics/optimizers.hpp"

namespace shardplan::io::schema {
namespace {

using plan::Field;
using plan::FieldRow;
using plan::row_of;
using Kind = ValueType::Kind;

Json either(Json ways) { return {{"anyOf", std::move(ways)}}; }

Json matching(std::string pattern) { return {{"type", "string"}, {"pattern", std::move(pattern)}}; }

Json bounded(std::string_view type, double from, double to) {
  return {{"type", std::string(type)},
          {"minimum", static_cast<std::int64_t>(from)},
          {"maximum", static_cast<std::int64_t>(to)}};
}

/// Names of optimizers, and those that frameworks have for them: - and _ are the same.
Json optimizer_schema() {
  std::vector<std::string_view> names;
  for (const Optimizer& optimizer : optimizers()) names.push_back(optimizer.name);
  Json spelled = word_schema(names);
  for (const OptimizerAlias& alias : optimizer_aliases()) names.push_back(alias.name);
  std::string pattern;
  for (const char c : any_case(names)) pattern += c == '-' ? std::string("[-_]") : std::string(1, c);
  return either({std::move(spelled), matching(std::move(pattern))});
}

Json recompute_schema() {
  Json modules = list_of(word_schema(recompute_module_names));
  modules["minItems"] = 1;
  Json listed = closed_object({{"modules", std::move(modules)}}, {"modules"});
  return either({word_schema(row_of(Field::recompute).value.type.words), matching("^(full|every):0*[1-9][0-9]{0,6}$"),
                 described("Megatron-Core's modules", std::move(listed))});
}

Json loss_schema() {
  std::vector<std::string_view> words(names_of<LossKind>.begin(), names_of<LossKind>.end());
  words.erase(std::remove(words.begin(), words.end(), name(LossKind::chunked)), words.end());  // needs its number
  return either({word_schema(words), matching("^chunked:0*[1-9][0-9]{0,6}$")});
}

Json layers_schema() {
  return {{"type", "array"}, {"minItems", 1}, {"items", bounded("integer", 0, plan::largest_degree)}};
}

Json order_schema() {
  std::string axes;
  for (const std::string_view axis : names_of<Axis>) axes += (axes.empty() ? "" : "|") + std::string(axis);
  // Each of them once: no axis with the same behind it.
  return matching("^(?!.*(" + axes + ").*\\1)(" + axes + ")(-(" + axes + ")){4}$");
}

/// A field with a syntax of its own.
Json own_syntax(Field field, const CatalogSource& catalog) {
  const Json text = {{"type", "string"}};
  switch (field) {
    case Field::stack: return reference_schema(CatalogKind::stacks, catalog, nullptr, false);
    case Field::optimizer: return optimizer_schema();
    case Field::recompute: return recompute_schema();
    case Field::loss: return loss_schema();
    case Field::layers_per_stage: return layers_schema();
    case Field::order: return order_schema();
    case Field::peft_targets: return either({text, list_of(text)});
    default: return Json::object();
  }
}

std::string token(std::string_view pointer) { return std::string(pointer.substr(pointer.rfind('/') + 1)); }

/// The object at a pointer, with the objects in it.
Json section_schema(const plan::FieldSection& section, const CatalogSource& catalog) {
  if (section.pointer == "/require") return described(section.about, requirements_schema());
  const std::string inside = std::string(section.pointer) + "/";
  Json properties = Json::object();
  for (const FieldRow& row : plan::field_rows()) {
    if (row.pointer.substr(0, inside.size()) != inside) continue;
    const std::string_view rest = row.pointer.substr(inside.size());
    const std::string member(rest.substr(0, rest.find('/')));
    if (properties.contains(member)) continue;
    const auto sections = plan::field_sections();
    const auto inner = std::find_if(sections.begin(), sections.end(),
                                    [&](const plan::FieldSection& each) { return each.pointer == inside + member; });
    properties[member] =
        inner != sections.end() ? or_null(section_schema(*inner, catalog)) : field_schema(row, catalog);
  }
  return described(section.about, closed_object(std::move(properties)));
}

/// For `if`: the run states these fields of a section. What is null is not stated.
Json states(const std::string& section, const Json& fields) {
  Json required = Json::array();
  for (const auto& [field, schema] : fields.items()) required.push_back(field);
  return {{"properties", {{section, {{"type", "object"}, {"properties", fields}, {"required", required}}}}},
          {"required", Json::array({section})}};
}

Json enumerated(Json values) { return {{"enum", std::move(values)}}; }

/// For `then`: the run states nothing else of `parallel`.
Json parallel_is(Json fields) { return {{"properties", {{"parallel", {{"properties", std::move(fields)}}}}}}; }

Json rule(Json condition, Json consequence) { return {{"if", std::move(condition)}, {"then", std::move(consequence)}}; }

/// The frameworks of which something holds.
template <class Holds>
Json frameworks_where(Holds&& holds) {
  Json words = Json::array();
  for (const FrameworkFacts* const facts : framework_table) {
    if (holds(*facts)) words.push_back(name(facts->framework));
  }
  return words;
}

/// Rules of the frameworks, schedules and shardings that hold whatever the model is.
Json rules_between_fields() {
  const auto framework_is = [](Json words) {
    return states("training", {{"framework", enumerated(std::move(words))}});
  };
  const Json one = enumerated({1, nullptr});
  Json interleaved = parallel_is({{"virtual_pipeline", {{"type", "integer"}, {"minimum", 2}}}});
  interleaved["properties"]["parallel"]["required"] = Json::array({"virtual_pipeline"});
  return Json::array(
      {rule(framework_is(frameworks_where([](const FrameworkFacts& f) { return f.data_only; })),
            parallel_is({{"tensor", one}, {"pipeline", one}, {"context", one}, {"expert", one}})),
       rule(framework_is(frameworks_where([](const FrameworkFacts& f) { return f.zero.highest == 1; })),
            parallel_is({{"zero_stage", enumerated({0, 1, nullptr})}})),
       rule(framework_is(frameworks_where([](const FrameworkFacts& f) { return f.zero.highest == 0; })),
            parallel_is({{"zero_stage", enumerated({0, nullptr})}})),
       rule(states("parallel", {{"zero_stage", enumerated({2, 3})}, {"tensor", {{"minimum", 2}, {"type", "integer"}}}}),
            states("training", {{"framework", {{"type", "string"}}}})),
       rule(states("parallel", {{"schedule", enumerated(Json::array({"interleaved"}))}}), std::move(interleaved)),
       rule(states("parallel", {{"zero_stage", enumerated({1, 2, 3})}}),
            parallel_is({{"fsdp", enumerated(Json::array({"none", nullptr}))}}))});
}

/// The GPUs are counted here, by the cluster, or by the file that the cluster is.
Json counted_gpus() {
  Json here = {{"required", Json::array({"num_gpus"})}};
  here["properties"]["num_gpus"] = {{"type", "integer"}};
  Json by_nodes;
  by_nodes["properties"]["cluster"] = {{"type", "object"}, {"required", Json::array({"num_nodes"})}};
  Json elsewhere;
  elsewhere["properties"]["cluster"] = matching("/|\\.json$");
  return either({std::move(here), std::move(by_nodes), std::move(elsewhere)});
}

}  // namespace

Json field_schema(const FieldRow& row, const CatalogSource& catalog) {
  const ValueType& type = row.value.type;
  if (row.value.get != nullptr) return described(row.about, or_null(value_schema(type)));
  if (type.kind == Kind::object) {
    const auto sections = plan::field_sections();
    const auto section = std::find_if(sections.begin(), sections.end(),
                                      [&](const plan::FieldSection& each) { return each.pointer == row.pointer; });
    return or_null(section_schema(*section, catalog));
  }
  return described(row.about, or_null(own_syntax(row.field, catalog)));
}

Json requirements_schema() {
  Json properties = Json::object();
  for (const plan::RequirementRow& row : plan::requirement_rows()) {
    properties[std::string(name(row.requirement))] = described(row.about, or_null(value_schema(row.value.type)));
  }
  return closed_object(std::move(properties));
}

Json run_schema(const CatalogSource& catalog) {
  const auto model = reference_schema(CatalogKind::models, catalog, model_schema());
  const auto cluster = reference_schema(CatalogKind::clusters, catalog, cluster_schema(catalog));
  Json definitions = {
      {"model_reference", described("A built-in model (`shardplan list models`), a path or a config.json.", model)},
      {"cluster_reference",
       described("A built-in cluster (`shardplan list clusters`), a path or an object.", cluster)}};
  Json properties = {{"$schema", {{"type", "string"}}},
                     {"model", reference_to("model_reference")},
                     {"cluster", reference_to("cluster_reference")},
                     {"num_gpus", field_schema(row_of(Field::num_gpus), catalog)}};
  for (const plan::FieldSection& section : plan::field_sections()) {
    if (section.pointer.rfind('/') != 0) continue;
    definitions[token(section.pointer)] = section_schema(section, catalog);
    properties[token(section.pointer)] = or_null(reference_to(token(section.pointer)));
  }
  properties["defaults"] = described("pointers of members that were not stated, as the resolved run has them",
                                     or_null(list_of({{"type", "string"}})));
  Json schema = described("A training run: model, cluster, layout, options, requirements (docs/run.md).",
                          closed_object(std::move(properties), {"model", "cluster"}));
  schema["allOf"] = rules_between_fields();
  schema["allOf"].push_back(counted_gpus());
  schema["definitions"] = std::move(definitions);
  return schema;
}

Json resolved_run_schema(const Json& run) {
  Json schema = run;
  schema.erase("definitions");
  schema.erase("description");
  schema["required"] = Json::array({"model", "cluster", "num_gpus", "parallel", "training", "defaults"});
  return schema;
}

}  // namespace shardplan::io::schema
