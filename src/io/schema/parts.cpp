#include "parts.hpp"

#include <cmath>

namespace shardplan::io::schema {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

Json number_json(double value) {
  const auto whole = static_cast<std::int64_t>(value);
  return value == static_cast<double>(whole) ? Json(whole) : Json(value);
}

void add_range(Json& schema, const NumberRange& range) {
  if (range.from) schema["minimum"] = number_json(*range.from);
  if (range.above) schema["exclusiveMinimum"] = number_json(*range.above);
  schema["maximum"] = number_json(range.to);
}

/// What files say beside what is read.
Json remark_schema(std::string_view name) {
  if (name == "$schema") return {{"type", "string"}};
  if (name == "aliases") return list_of({{"type", "string"}});
  if (name == "source") return described("where from", or_null({{"type", "string"}}));
  if (name == "trust") return described("A, B or C", or_null({{"type", "string"}}));
  if (name == "tdp_w") return or_null({{"type", "number"}});
  return Json::object();
}

Json entry_schema(const ObjectShape::Entry& entry) {
  Json schema;
  switch (entry.form) {
    case ObjectShape::Form::anything: return remark_schema(entry.name);
    case ObjectShape::Form::value: schema = value_schema(entry.type, entry.words); break;
    case ObjectShape::Form::object: schema = shape_schema(entry.inner.front()); break;
    case ObjectShape::Form::list: schema = list_of(shape_schema(entry.inner.front())); break;
  }
  if (!entry.required) schema = or_null(std::move(schema));
  return entry.about.empty() ? schema : described(entry.about, std::move(schema));
}

}  // namespace

Json described(std::string_view about, Json schema) {
  Json out = {{"description", std::string(about)}};
  out.update(schema);
  return out;
}

Json or_null(Json schema) {
  if (const auto words = schema.find("enum"); words != schema.end()) {
    words->push_back(nullptr);
    return schema;
  }
  if (const auto type = schema.find("type"); type != schema.end()) {
    if (type->is_string()) *type = Json::array({*type, "null"});  // a list of types has it
    return schema;
  }
  Json out = Json::object();
  if (const auto about = schema.find("description"); about != schema.end()) {
    out["description"] = *about;
    schema.erase("description");
  }
  out["anyOf"] = Json::array({std::move(schema), {{"type", "null"}}});
  return out;
}

Json reference_to(std::string_view definition) { return {{"$ref", "#/definitions/" + std::string(definition)}}; }

Json value_schema(const ValueType& type, std::span<const std::string> words) {
  Json schema = Json::object();
  switch (type.kind) {
    case ValueType::Kind::boolean: return {{"type", "boolean"}};
    case ValueType::Kind::word: return words.empty() ? word_schema(type.words) : word_schema(words);
    case ValueType::Kind::integer: schema["type"] = "integer"; break;
    case ValueType::Kind::number: schema["type"] = "number"; break;
    case ValueType::Kind::rate: return {{"type", "number"}, {"minimum", 0}, {"exclusiveMaximum", 1}};
    default: return {{"type", "string"}};
  }
  add_range(schema, type.range);
  return schema;
}

Json list_of(Json items) { return {{"type", "array"}, {"items", std::move(items)}}; }

Json closed_object(Json properties, const std::vector<std::string>& required) {
  Json schema = {{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = required;
  return schema;
}

Json shape_schema(const ObjectShape& shape) {
  Json properties = Json::object();
  std::vector<std::string> required;
  for (const ObjectShape::Entry& entry : shape.entries) {
    properties[entry.name] = entry_schema(entry);
    if (entry.required) required.push_back(entry.name);
  }
  return closed_object(std::move(properties), required);
}

std::string any_case(std::span<const std::string_view> names) {
  std::string pattern = "^(";
  for (const std::string_view name : names) {
    if (pattern.size() > 2) pattern += '|';
    for (const char c : name) {
      if (is_letter(c)) {
        const char low = static_cast<char>(c | 0x20);
        const char high = static_cast<char>(c & ~0x20);
        pattern.append({'[', low, high, ']'});
      } else {
        if (c == '.' || c == '+') pattern += '\\';
        pattern += c;
      }
    }
  }
  return pattern + ")$";
}

Json reference_schema(CatalogKind kind, const CatalogSource& catalog, Json object, bool path) {
  std::vector<std::string_view> names = catalog.names(kind);
  Json ways = Json::array({word_schema(names)});
  const std::vector<std::string_view> aliases = catalog.aliases(kind);
  names.insert(names.end(), aliases.begin(), aliases.end());
  ways.push_back({{"type", "string"}, {"pattern", any_case(names)}});
  if (path) {
    ways.push_back({{"type", "string"},
                    {"pattern", "/|\\.json$|^-$"},
                    {"description", "a path, relative to the file; a folder or a file without .json needs a /"}});
  }
  if (!object.is_null()) ways.push_back(std::move(object));
  return {{"anyOf", std::move(ways)}};
}

}  // namespace shardplan::io::schema
