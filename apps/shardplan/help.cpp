#include "help.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace shardplan::cli {
namespace {

constexpr std::string_view exit_statuses =
    "Exit status\n"
    "  0   it fits, every check holds\n"
    "  1   it does not fit, or a check fails; the result is printed all the same\n"
    "  2   the input or the command line is wrong; nothing is printed on standard output\n"
    "  70  an internal error\n";

/// "-q, --quiet", "--tp N"
std::string left_side(const Flag& flag) {
  return fmt::format("{}--{}{}{}", flag.letter == 0 ? "" : fmt::format("-{}, ", flag.letter), flag.name,
                     flag.value.empty() ? "" : " ", flag.value);
}

/// "/parallel/tensor" as "parallel.tensor"
std::string dotted(std::string_view pointer) {
  std::string path(pointer.substr(pointer.empty() ? 0 : 1));
  std::replace(path.begin(), path.end(), '/', '.');
  return path;
}

}  // namespace

std::string short_help() {
  std::string text =
      "Memory, communication, bubble, step time and MFU of an LLM training run, before a GPU is taken.\n\n";
  for (const Command& command : commands()) {
    if (!command.examples.empty()) text += fmt::format("  {}\n", command.examples.front());
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
    if (!line.empty()) text += fmt::format("{:<6}{}\n", head, line);
  }
  return text + "\nshardplan COMMAND --help shows a command's flags, with the run-file field that each one sets\n";
}

std::string long_help() {
  std::string text = short_help() + "\nCommands\n";
  for (const Command& command : commands()) text += fmt::format("  {:<10} {}\n", command.name, command.summary);
  text += "\n  --version  the version\n  --help     this text\n\n";
  return text.append(exit_statuses);
}

std::string command_help(const Command& command) {
  std::string text = fmt::format("{}\n\n", command.summary);
  for (const std::string_view example : command.examples) text += fmt::format("  {}\n", example);
  text += fmt::format("\nUsage: shardplan {} {} [flags]\n", command.name, command.arguments);

  std::size_t left = 0;
  std::size_t middle = 0;
  for (const std::span<const Flag> rows : command.flags) {
    for (const Flag& flag : rows) {
      left = std::max(left, left_side(flag).size());
      middle = std::max(middle, flag.pointer.size());
    }
  }
  for (std::size_t group = 0; group < names_of<FlagGroup>.size(); ++group) {
    bool headed = false;
    for (const std::span<const Flag> rows : command.flags) {
      for (const Flag& flag : rows) {
        if (static_cast<std::size_t>(flag.group) != group) continue;
        if (!headed) text += fmt::format("\n{}\n", names_of<FlagGroup>[group]);
        headed = true;
        // A group that sets no field of the run needs no column for it.
        text +=
            flag.pointer.empty() && flag.kind != ValueKind::any_field
                ? fmt::format("  {:<{}}  {}\n", left_side(flag), left, flag.help)
                : fmt::format("  {:<{}}  {:<{}}  {}\n", left_side(flag), left, dotted(flag.pointer), middle, flag.help);
      }
    }
  }
  text += "  -h, --help\n\n";
  return text.append(exit_statuses);
}

}  // namespace shardplan::cli
