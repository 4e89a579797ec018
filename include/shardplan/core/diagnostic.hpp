// What is wrong with an input, as data: collected, never thrown.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardplan {

/// A way out of a problem: fields that, set to these values together, make it legal. `words` say what it means, or are
/// the whole of it where there is nothing to set ("nearest: 96, 104").
struct WayOut {
  struct Setting {
    std::string pointer;  ///< RFC 6901 JSON pointer of the run file
    std::string value;    ///< JSON text; "null" leaves the field out
  };

  std::vector<Setting> settings = {};
  std::string words = {};
};

/// One problem of an input. Printed as `file: /json/pointer: value rule` and, indented below, the way out.
struct Diagnostic {
  std::string file;     ///< path as the user gave it, "<stdin>", or "command line"
  std::string pointer;  ///< RFC 6901 JSON pointer of the field; empty when the problem is the file itself
  std::string message;  ///< the value and the rule that it breaks, one line
  std::string way_out;  ///< what would be legal; empty when there is no single way
  int line = 0;         ///< 1-based position in the file; 0 when unknown
  int column = 0;
  std::vector<WayOut> ways = {};  ///< what `way_out` says, as data; empty where it is words only
};

using Diagnostics = std::vector<Diagnostic>;

/// `Diagnostic::file` of a problem of the command line itself: the line then reads `shardplan: message`.
inline constexpr std::string_view command_line_file = "shardplan";

inline Diagnostic usage_diagnostic(std::string message, std::string way_out = {}) {
  return {std::string(command_line_file), "", std::move(message), std::move(way_out), 0, 0};
}

/// Something that is legal but that the user should know. Codes are listed in docs/warnings.md.
struct Warning {
  std::string code;
  std::string path;  ///< JSON pointer of the field that causes it
  std::string message;
};

using Warnings = std::vector<Warning>;

/// A value, or every problem that kept it from being one.
template <class T>
struct Result {
  T value{};
  Diagnostics problems;

  bool ok() const noexcept { return problems.empty(); }
};

}  // namespace shardplan
