// JSON Schema (draft 7), piece by piece. Members are written in the order in which they are told.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "object_shape.hpp"
#include "shardplan/core/value_type.hpp"
#include "shardplan/io/catalog_source.hpp"

namespace shardplan::io::schema {

using Json = nlohmann::ordered_json;

/// What a schema is of, then the schema.
Json described(std::string_view about, Json schema);
/// null means "not stated" wherever a value may be left out.
Json or_null(Json schema);
Json reference_to(std::string_view definition);

/// A value of a type that has no syntax of its own; null is none.
Json value_schema(const ValueType& type, std::span<const std::string> words = {});
/// One of these words.
template <class Words>
Json word_schema(const Words& words) {
  Json list = Json::array();
  for (const auto& word : words) list.push_back(std::string(word));
  return {{"enum", std::move(list)}};
}
Json list_of(Json items);

/// An object that has these members and no other.
Json closed_object(Json properties, const std::vector<std::string>& required = {});
/// The object that a reader asked for.
Json shape_schema(const ObjectShape& shape);

/// A regular expression for names whose case does not count.
std::string any_case(std::span<const std::string_view> names);

/// A built-in entry by name or alias, a path, or the object itself.
Json reference_schema(CatalogKind kind, const CatalogSource& catalog, Json object, bool path = true);

}  // namespace shardplan::io::schema
