#include "help.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "shardplan/core/pointer.hpp"
#include "shardplan/report/text.hpp"

namespace shardplan::cli {
namespace {

/// The text in lines of the page's width, later ones indented.
std::string folded(const std::string& text, std::size_t width, std::size_t indent) {
  std::string lines;
  for (const report::Text& line : report::wrap(report::Text(text), width, indent)) lines += line.render({}) + "\n";
  return lines;
}

/// A command to paste: broken where the shell lets a line go on, but not between a flag and its value.
std::string folded_example(std::string_view example, std::size_t width) {
  std::string lines;
  std::string line = "  ";
  bool quoted = false;
  for (std::size_t at = 0; at < example.size();) {
    std::size_t end = at;
    for (; end < example.size() && (quoted || example[end] != ' '); ++end) quoted = quoted != (example[end] == '\'');
    const bool is_flag = example[at] == '-' && end < example.size() && example[end + 1] != '-';
    if (is_flag) end = std::min(example.find(' ', end + 1), example.size());
    const std::string_view word = example.substr(at, end - at);
    if (line.find_first_not_of(' ') != std::string::npos) {
      if (line.size() + 1 + word.size() + 2 > width) {
        lines += line + " \\\n";
        line = "     ";
      }
      line += ' ';
    }
    line += word;
    at = end + 1;
  }
  return lines + line + "\n";
}

std::string exit_statuses(std::string_view zero, std::string_view one, std::string_view two, std::string_view nothing,
                          std::size_t width) {
  std::string text = "Exit status\n" + folded(fmt::format("  0   {}", zero), width, 6);
  if (!one.empty()) text += folded(fmt::format("  1   {}", one), width, 6);
  return text + folded(fmt::format("  2   {}", two), width, 6) +
         (nothing.empty() ? std::string()
                          : folded(fmt::format("  3   {}", nothing), width, 6) +
                                folded("  130 interrupted; the best so far is printed", width, 6)) +
         "  70  an internal error\n";
}

/// "-q, --quiet", "--tp N"
std::string left_side(const Flag& flag) {
  return fmt::format("{}--{}{}{}", flag.letter == 0 ? "" : fmt::format("-{}, ", flag.letter), flag.name,
                     flag.value.empty() ? "" : " ", flag.value);
}

/// Columns of a command's flags.
struct FlagColumns {
  std::size_t left = 0;
  std::size_t middle = 0;  ///< 0: the field follows the help in brackets
  std::size_t width = 0;
};

FlagColumns flag_columns(const Command& command, std::size_t width) {
  FlagColumns columns;
  columns.width = width;
  for (const std::span<const Flag> rows : command.flags) {
    for (const Flag& flag : rows) {
      columns.left = std::max(columns.left, left_side(flag).size());
      columns.middle = std::max(columns.middle, flag.pointer.size());
    }
  }
  constexpr std::size_t least_help = 60;
  if (columns.left + columns.middle + 6 + least_help > width) columns.middle = 0;
  return columns;
}

std::string flag_line(const Flag& flag, const FlagColumns& columns) {
  const bool has_field = !flag.pointer.empty() || flag.kind == ValueKind::any_field;
  std::string line = fmt::format("  {:<{}}  ", left_side(flag), columns.left);
  std::size_t indent = line.size();
  if (columns.middle > 0 && has_field) {  // a group that sets no field of the run needs no column for it
    line += fmt::format("{:<{}}  ", dotted(flag.pointer), columns.middle);
    indent = line.size();
  }
  line += flag.help;
  if (columns.middle == 0 && !flag.pointer.empty()) line += fmt::format(" ({})", dotted(flag.pointer));
  return folded(line, columns.width, indent);
}

/// --format with what a command draws besides.
std::string format_line(const Flag& flag, const Command& command, const FlagColumns& columns) {
  std::string help = "text, json, markdown, csv";
  for (const std::string_view picture : command.pictures) help += fmt::format(", {}", picture);
  const std::size_t comma = help.rfind(", ");
  help.replace(comma, 2, " or ");
  Flag shown = flag;
  shown.help = help;
  return flag_line(shown, columns);
}

}  // namespace

std::string short_help(std::size_t width) {
  std::string text = folded(
      "Memory, communication, bubble, step time and MFU of an LLM training run, before a GPU is taken.", width, 0);
  text += '\n';
  for (const Command& command : commands()) {
    if (!command.examples.empty()) text += folded_example(command.examples.front(), width);
  }
  text += '\n';
  constexpr std::array<std::pair<Purpose, std::string_view>, 3> heads = {
      {{Purpose::ask, "Ask"}, {Purpose::verify, "Verify"}, {Purpose::learn, "Learn"}}};
  for (const auto& [purpose, head] : heads) {
    std::string line;
    for (const Command& command : commands()) {
      if (command.purpose != purpose) continue;
      // A command that is nothing without its word is shown with it.
      const bool needs_word = command.most_words > 0 && command.arguments.front() != '[';
      line += fmt::format("  {}{}{}", command.name, needs_word ? " " : "", needs_word ? command.arguments : "");
    }
    if (!line.empty()) text += folded(fmt::format("{:<6}{}", head, line), width, 8);
  }
  return text + "\n" +
         folded("shardplan COMMAND --help shows a command's flags, with the run-file field that each one sets", width,
                0);
}

std::string long_help(std::size_t width) {
  std::string text = short_help(width) + "\nCommands\n";
  for (const Command& command : commands()) {
    text += folded(fmt::format("  {:<10} {}", command.name, command.summary), width, 13);
  }
  text += "\n  --version  the version\n  --help     this text\n\n";
  return text + exit_statuses(
                    "it fits (estimate), or what was asked is printed",
                    "it does not fit; the result is printed all the same",
                    "the input or the command line is wrong; but for check, that reports the other files, nothing is "
                    "printed on standard output",
                    "search and solve: nothing fits", width);
}

std::string command_help(const Command& command, std::size_t width) {
  std::string text = folded(std::string(command.summary), width, 0) + "\n";
  for (const std::string_view example : command.examples) text += folded_example(example, width);
  text += "\n" + folded(fmt::format("Usage: shardplan {} {} [flags]", command.name, command.arguments), width, 7);

  const FlagColumns columns = flag_columns(command, width);
  for (std::size_t group = 0; group < names_of<FlagGroup>.size(); ++group) {
    bool headed = false;
    for (const std::span<const Flag> rows : command.flags) {
      for (const Flag& flag : rows) {
        if (static_cast<std::size_t>(flag.group) != group) continue;
        if (!headed) text += fmt::format("\n{}\n", names_of<FlagGroup>[group]);
        headed = true;
        text += flag.name == "format" ? format_line(flag, command, columns) : flag_line(flag, columns);
      }
    }
  }
  text += "  -h, --help\n\n";
  return text + exit_statuses(command.exit_zero, command.exit_one, command.exit_two, command.exit_nothing, width);
}

}  // namespace shardplan::cli
