#include "schema_writer.hpp"

#include <algorithm>
#include <utility>

namespace shardplan::io::schema {

void SchemaWriter::add(std::string_view name, Json schema) {
  const std::string like = std::exchange(like_, {});
  if (!like.empty()) schema = reference_to(like);
  if (std::exchange(null_next_, false)) schema = or_null(std::move(schema));
  if (levels_.empty()) return documents_.push_back(std::move(schema));
  Level& level = levels_.back();
  if (name.empty()) {
    const bool known = std::find(level.entries.begin(), level.entries.end(), schema) != level.entries.end();
    if (level.expected.in_turn || !known) level.entries.push_back(std::move(schema));
    return;
  }
  const std::string key(name);
  if (const auto other = level.properties.find(key); other != level.properties.end()) {
    // Written in two ways: it is one of both.
    if (*other != schema) *other = {{"anyOf", Json::array({*other, std::move(schema)})}};
    return;
  }
  if (optional_ == 0) level.required.push_back(key);
  level.properties[key] = std::move(schema);
}

void SchemaWriter::integer(std::string_view name, std::int64_t /*value*/, Whole whole) {
  Json schema = {{"type", "integer"}};
  if (whole != Whole::any) schema["minimum"] = whole == Whole::from_1 ? 1 : 0;
  add(name, std::move(schema));
}

void SchemaWriter::real(std::string_view name, double /*value*/) {
  add(name, {{"type", Json::array({"number", "null"})}});
}

void SchemaWriter::count(std::string_view name, double /*value*/) { integer(name, 0, Whole::from_0); }

void SchemaWriter::boolean(std::string_view name, bool /*value*/) { add(name, {{"type", "boolean"}}); }

void SchemaWriter::text(std::string_view name, std::string_view /*value*/) { add(name, {{"type", "string"}}); }

void SchemaWriter::null(std::string_view name) { add(name, {{"type", "null"}}); }

void SchemaWriter::json(std::string_view name, std::string_view /*value*/) { add(name, Json::object()); }

void SchemaWriter::constant(std::string_view name, std::string_view value) {
  add(name, {{"const", std::string(value)}});
}

void SchemaWriter::word(std::string_view name, std::string_view /*value*/, std::span<const std::string_view> words) {
  add(name, word_schema(words));
}

void SchemaWriter::begin(std::string_view name, char /*bracket*/, Lines /*lines*/) {
  levels_.push_back({std::string(name), std::exchange(null_next_, false), std::exchange(like_, {}),
                     std::exchange(optional_, 0), std::exchange(expected_, {})});
}

void SchemaWriter::end(char bracket) {
  Level level = std::move(levels_.back());
  levels_.pop_back();
  optional_ = level.optional_outside;
  null_next_ = level.nullable;
  like_ = level.like;
  if (bracket == '}') return add(level.name, closed_object(std::move(level.properties), level.required));
  Json schema = {{"type", "array"}};
  if (level.expected.in_turn) {
    schema["minItems"] = level.entries.size();
    schema["items"] = std::move(level.entries);
    schema["additionalItems"] = false;
    return add(level.name, std::move(schema));
  }
  schema["items"] = Json::object();
  if (level.entries.size() == 1) schema["items"] = std::move(level.entries.front());
  if (level.entries.size() > 1) schema["items"]["oneOf"] = std::move(level.entries);
  if (level.expected.least > 0) schema["minItems"] = level.expected.least;
  if (level.expected.most > 0 || level.expected.none) schema["maxItems"] = level.expected.most;
  add(level.name, std::move(schema));
}

}  // namespace shardplan::io::schema
