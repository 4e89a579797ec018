// JSON with comments and trailing commas, and where each value stands in its text.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "shardplan/core/diagnostic.hpp"

namespace shardplan::io {

inline constexpr std::size_t max_json_bytes = std::size_t{16} << 20;
inline constexpr int max_json_depth = 64;

/// 1-based line and column (in characters, not bytes) of an offset.
struct TextPosition {
  int line = 0;
  int column = 0;
};

/// Where one value stands.
struct JsonPosition {
  TextPosition key;  ///< of an object member's key; of the value itself in arrays and at the top
  TextPosition value;
};

/// A parsed document. Cheap to move, copies share the document.
struct JsonText {
  std::string file;  ///< as the user named it, "<stdin>" for standard input
  std::shared_ptr<const nlohmann::json> value;
  std::map<std::string, JsonPosition, std::less<>> positions;  ///< by JSON pointer

  /// Position of the value at `pointer`, or of the nearest enclosing value that the text has.
  std::optional<JsonPosition> position(std::string_view pointer) const;
};

/// Parses JSON that may hold // and /* */ comments and trailing commas. Refuses, each with line and column: more than
/// 16 MiB, depth above 64, duplicate keys, invalid UTF-8, binary, NaN and Infinity.
Result<JsonText> parse_json(std::string text, std::string file);

/// Reads a file ("-": standard input) and parses it. Never reads more than one byte beyond the limit.
Result<JsonText> read_json(const std::string& path);

}  // namespace shardplan::io
