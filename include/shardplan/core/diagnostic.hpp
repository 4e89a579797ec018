// What is wrong with an input, as data: collected, never thrown.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace shardplan {

/// One problem of an input. Printed as `file: /json/pointer: value rule` and, indented below, the way out.
struct Diagnostic {
  std::string file;     ///< path as the user gave it, "<stdin>", or "command line"
  std::string pointer;  ///< RFC 6901 JSON pointer of the field; empty when the problem is the file itself
  std::string message;  ///< the value and the rule that it breaks, one line
  std::string way_out;  ///< what would be legal; empty when there is no single way
  int line = 0;         ///< 1-based position in the file; 0 when unknown
  int column = 0;
};

using Diagnostics = std::vector<Diagnostic>;

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
