// JSON Schema validation for tests.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/schemas.hpp"
#include "support/process.hpp"

namespace test {

/// One schema, parsed once.
class SchemaFile {
 public:
  explicit SchemaFile(const std::string& text) : document_(nlohmann::json::parse(text)) {
    const valijson::adapters::NlohmannJsonAdapter adapter(document_);
    valijson::SchemaParser parser;
    parser.populateSchema(adapter, schema_);
  }

  const nlohmann::json& document() const { return document_; }

  /// "" where the value is valid, else the first error.
  std::string error(const nlohmann::json& value) const {
    valijson::Validator validator;
    valijson::ValidationResults results;
    const valijson::adapters::NlohmannJsonAdapter adapter(value);
    if (validator.validate(schema_, adapter, &results)) return {};
    valijson::ValidationResults::Error error;
    std::string text;
    while (results.popError(error)) {
      text += "\n";
      for (const std::string& part : error.context) text += part;
      text += ": " + error.description;
    }
    return text.empty() ? "invalid" : text;
  }

 private:
  nlohmann::json document_;
  valijson::Schema schema_;
};

/// The schema of a kind.
inline const SchemaFile& schema_of(const std::string& kind) {
  static std::map<std::string, SchemaFile> files;
  const auto found = files.find(kind);
  if (found != files.end()) return found->second;
  std::string text = shardplan::io::schema_text(kind, shardplan::catalog::builtin_catalog()).value_or("");
  return files.emplace(std::piecewise_construct, std::forward_as_tuple(kind), std::forward_as_tuple(std::move(text)))
      .first->second;
}

}  // namespace test
