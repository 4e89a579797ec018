#include "output_style.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "shardplan/io/suggest.hpp"
#include "terminal.hpp"

namespace shardplan::cli {
namespace {

/// The index of the value of `--name` in `legal`; 0, the default, where the flag is absent. Another value is a problem.
template <std::size_t N>
std::size_t choice(const Arguments& arguments, std::string_view name, const std::array<std::string_view, N>& legal,
                   Diagnostics& problems) {
  const std::optional<std::string_view> value = arguments.value(name);
  if (!value) return 0;
  for (std::size_t i = 0; i < N; ++i) {
    if (legal[i] == *value) return i;
  }
  const std::vector<std::string_view> words(legal.begin(), legal.end());
  problems.push_back(
      {std::string(command_line_file), "",
       fmt::format("--{}: \"{}\" is not {}{}", name, *value, io::list_of(words), io::did_you_mean(*value, words)), "",
       0, 0});
  return 0;
}

constexpr std::array<std::string_view, 3> color_words = {"auto", "always", "never"};

bool result_is_a_file(const Arguments& arguments) {
  const std::optional<std::string_view> path = arguments.value("output");
  return path && *path != "-" && !path->empty();
}

}  // namespace

Result<OutputStyle> output_style(const Arguments& arguments) {
  Result<OutputStyle> result;
  OutputStyle& style = result.value;
  style.format = static_cast<Format>(choice(arguments, "format", names_of<Format>, result.problems));
  // --json is --format json: the later of the two holds.
  for (const GivenFlag& given : arguments.flags) {
    if (given.flag->name == "json") style.format = Format::json;
    if (given.flag->name == "format") style.format = parse_name<Format>(given.value).value_or(Format::text);
  }
  style.page.units = choice(arguments, "units", std::array<std::string_view, 2>{"gib", "gb"}, result.problems) == 1
                         ? report::Units::gb
                         : report::Units::gib;
  const auto color = static_cast<ColorChoice>(choice(arguments, "color", color_words, result.problems));
  const bool to_file = result_is_a_file(arguments);
  style.page.color = to_file ? color == ColorChoice::always : wants_color(color, STDOUT_FILENO);
  style.page.ascii = arguments.has("ascii") || !locale_is_utf8();
  style.page.width = terminal_width(!to_file);
  style.quiet = arguments.has("quiet");
  style.detail = arguments.has("detail");
  return result;
}

report::Style error_style(const Arguments& arguments) {
  Diagnostics ignored;
  report::Style style;
  style.color = wants_color(static_cast<ColorChoice>(choice(arguments, "color", color_words, ignored)), STDERR_FILENO);
  style.ascii = arguments.has("ascii") || !locale_is_utf8();
  return style;
}

}  // namespace shardplan::cli
