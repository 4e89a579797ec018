#include "output_style.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "shardplan/io/suggest.hpp"
#include "terminal.hpp"

namespace shardplan::cli {
namespace {

/// The index of the value of `--name` in `legal`; 0, the default, where the flag is absent. Another value is a problem.
std::size_t choice(const Arguments& arguments, std::string_view name, std::span<const std::string_view> legal,
                   Diagnostics& problems) {
  const std::optional<std::string_view> value = arguments.value(name);
  if (!value) return 0;
  for (std::size_t i = 0; i < legal.size(); ++i) {
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

/// Flags that say opposite things, or of which one leaves nothing to the other.
void check_together(const Arguments& arguments, Diagnostics& problems) {
  const auto complain = [&](std::string message) {
    problems.push_back({std::string(command_line_file), "", std::move(message), "", 0, 0});
  };
  const std::string_view format = arguments.value("format").value_or(arguments.has("json") ? "json" : "text");
  if (arguments.has("json") && format != "json") {
    complain(fmt::format("--json and --format {} contradict each other", format));
  }
  // One unit for programs: a file that says bytes must not mean something else when a flag was given.
  if (arguments.has("units") && (format == "json" || format == "sarif" || format == "trace")) {
    complain(fmt::format("--units has no place in {}: its sizes are bytes", format));
  }
  if (!arguments.has("quiet")) return;
  if (format != "text" && format != "markdown") {
    complain(fmt::format("-q prints the first line of the text; {} has none", format));
  }
  if (arguments.has("detail")) complain("-q prints the first line only, --detail more: give one of them");
  if (arguments.has("measured")) complain("-q prints the first line only, where --measured has no place");
}

bool result_is_a_file(const Arguments& arguments) {
  const std::optional<std::string_view> path = arguments.value("output");
  return path && *path != "-" && !path->empty();
}

}  // namespace

Result<OutputStyle> output_style(const Arguments& arguments, std::span<const std::string_view> pictures) {
  Result<OutputStyle> result;
  OutputStyle& style = result.value;
  std::vector<std::string_view> formats(names_of<Format>.begin(), names_of<Format>.end());
  formats.insert(formats.end(), pictures.begin(), pictures.end());
  choice(arguments, "format", formats, result.problems);
  check_together(arguments, result.problems);
  for (const GivenFlag& given : arguments.flags) {
    if (given.flag->name != "json" && given.flag->name != "format") continue;
    const bool json = given.flag->name == "json";
    style.format = json ? Format::json : parse_name<Format>(given.value).value_or(Format::text);
    const auto picture = std::find(pictures.begin(), pictures.end(), std::string_view(given.value));
    style.picture = json || picture == pictures.end() ? std::string_view() : *picture;
  }
  style.page.units = choice(arguments, "units", std::array<std::string_view, 2>{"gib", "gb"}, result.problems) == 1
                         ? report::Units::gb
                         : report::Units::gib;
  const auto color = static_cast<ColorChoice>(choice(arguments, "color", color_words, result.problems));
  const bool to_file = result_is_a_file(arguments);
  style.page.color = to_file ? color == ColorChoice::always : wants_color(color, Stream::output);
  style.page.palette = style.page.color && has_palette();
  style.page.ascii = arguments.has("ascii") || !locale_is_utf8();
  style.page.width = terminal_width(!to_file);
  style.quiet = arguments.has("quiet");
  style.detail = arguments.has("detail");
  return result;
}

report::Style error_style(const Arguments& arguments) {
  Diagnostics ignored;
  report::Style style;
  style.color = wants_color(static_cast<ColorChoice>(choice(arguments, "color", color_words, ignored)), Stream::error);
  style.ascii = arguments.has("ascii") || !locale_is_utf8();
  return style;
}

}  // namespace shardplan::cli
