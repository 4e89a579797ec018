#include "terminal.hpp"

#include <cstdlib>
#include <string>
#include <string_view>

#include "shardplan/core/number_text.hpp"

namespace shardplan::cli {
namespace {

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

bool wants_color(ColorChoice choice, Stream stream) {
  if (choice != ColorChoice::automatic) return choice == ColorChoice::always;
  return is_terminal(stream) && environment("NO_COLOR").empty() && environment("TERM") != "dumb";
}

bool has_palette() {
  return environment("TERM").find("256color") != std::string_view::npos || !environment("COLORTERM").empty();
}

bool locale_is_utf8() {
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    std::string value(environment(name));
    if (value.empty()) continue;
    for (char& letter : value) {
      if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    }
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

int terminal_width(bool on_stdout, int otherwise) {
  const int width = number_of<int>(environment("COLUMNS")).value_or(0);
  if (width > 0) return width;
  return on_stdout ? terminal_columns().value_or(otherwise) : otherwise;
}

}  // namespace shardplan::cli
