// JSON with comments and trailing commas, and where each value stands in its text.
#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/core/diagnostic.hpp"

namespace shardplan::io {

inline constexpr std::size_t max_json_bytes = std::size_t{16} << 20;
inline constexpr int max_json_depth = 64;
inline constexpr std::size_t max_json_values = 500'000;

/// A parsed document. Copies share it.
struct JsonText {
  std::string file;  ///< as the user named it, "<stdin>" for standard input
  std::shared_ptr<const nlohmann::json> value;
  std::shared_ptr<const std::string> text;  ///< comments and trailing commas blanked, every offset as in the file
};

/// 1-based line and column of one value; the column counts characters.
struct JsonPosition {
  int line = 0;
  int column = 0;
  int key_line = 0;  ///< of the member's key; as line and column in arrays and at the top
  int key_column = 0;
};

/// Where the value at a JSON pointer stands, or the nearest value around it that the text has.
JsonPosition position_of(const JsonText& document, std::string_view pointer);

/// The number at a JSON pointer as the file writes it.
std::string text_at(const JsonText& document, std::string_view pointer);

/// Whether the document has a value at a JSON pointer that is not null.
bool states(const JsonText& document, std::string_view pointer);

/// Fills line and column of the problems of this document that have none: at the key for an unknown field, else at the
/// value. One pass over the text however many problems there are.
void locate(const JsonText& document, Diagnostics& problems);

/// What besides JSON a text may say. python: NaN and Infinity as Python's json module writes them into published
/// config.json files; they become empty objects, which no field that is read accepts.
enum class JsonDialect : unsigned char { strict, python };

/// Parses JSON that may hold // and /* */ comments and trailing commas. Refuses with line and column what is not JSON,
/// invalid UTF-8, NaN and Infinity, numbers beyond a double's range, duplicate keys (all of them), depth above 64 and
/// more than 500,000 values; and texts above 16 MiB.
Result<JsonText> parse_json(std::string text, std::string file, JsonDialect dialect = JsonDialect::strict);

/// Reads a file ("-": standard input) and parses it. Reads at most one byte beyond the limit.
Result<JsonText> read_json(const std::string& path, JsonDialect dialect = JsonDialect::strict);

/// A pointer's token as RFC 6901 escapes it ("/" as "~1", "~" as "~0").
std::string escape_token(std::string_view token);

/// The tokens of a JSON pointer, unescaped.
std::vector<std::string> pointer_tokens(std::string_view pointer);

}  // namespace shardplan::io
