#include "command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "shardplan/io/suggest.hpp"

namespace shardplan::cli {
namespace {

/// The flag's name as people type it: `-o` where it has a letter.
std::string shown(const Flag& flag) {
  return flag.letter == 0 ? fmt::format("--{}", flag.name) : fmt::format("-{}", flag.letter);
}

std::string option_names(const Flag& flag) {
  return flag.letter == 0 ? fmt::format("--{}", flag.name) : fmt::format("-{},--{}", flag.letter, flag.name);
}

/// Every flag of a command.
std::vector<const Flag*> flags_of(const Command& command) {
  std::vector<const Flag*> flags;
  for (const std::span<const Flag> rows : command.flags) {
    for (const Flag& row : rows) flags.push_back(&row);
  }
  return flags;
}

/// What is wrong with the value that a flag has, or has not.
std::string value_problem(const Flag& flag) {
  const std::string name = shown(flag);
  if (flag.kind == ValueKind::none) return fmt::format("{} takes no value", name);
  return fmt::format("{} needs a value: {} {}", name, name, flag.value);
}

/// CLI11 says "--tp: 1 required TEXT missing"; this says what the flag wants.
std::string in_own_words(const Command& command, const std::string& message) {
  for (const Flag* const flag : flags_of(command)) {
    if (message.rfind(fmt::format("--{}:", flag->name), 0) == 0 || message.rfind(shown(*flag) + ":", 0) == 0) {
      return value_problem(*flag);
    }
  }
  return message;
}

/// Whether a flag says something each time that it is given: switches do no harm, --set and --offload add up.
bool may_repeat(const Flag& flag) {
  return flag.kind == ValueKind::none || flag.kind == ValueKind::any_field || flag.kind == ValueKind::pairs ||
         flag.kind == ValueKind::assignment || flag.kind == ValueKind::axis;
}

std::string see_help(const Command& command) { return fmt::format("        (shardplan {} --help)", command.name); }

/// "estimate, search and compare have it": the commands with a flag of this very name; empty: none has.
std::string owners_of(std::string_view typed) {
  while (!typed.empty() && typed.front() == '-') typed.remove_prefix(1);
  typed = typed.substr(0, typed.find('='));
  std::vector<std::string_view> owners;
  for (const Command& command : commands()) {
    for (const Flag* const flag : flags_of(command)) {
      if (flag->name == typed) owners.push_back(command.name);
    }
  }
  std::string text;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == owners.size() ? " and " : ", ", owners[i]);
  }
  return text.empty() ? text : text + (owners.size() == 1 ? " has it" : " have it");
}

}  // namespace

std::string suggest_flag(const Command& command, std::string_view typed) {
  while (!typed.empty() && typed.front() == '-') typed.remove_prefix(1);
  typed = typed.substr(0, typed.find('='));
  std::vector<std::string_view> words;
  std::map<std::string_view, const Flag*> owner;
  const auto add = [&](std::string_view word, const Flag* flag) {
    if (!word.empty() && owner.emplace(word, flag).second) words.push_back(word);
  };
  const std::vector<const Flag*> flags = flags_of(command);
  for (const Flag* const flag : flags) add(flag->name, flag);
  for (const Flag* const flag : flags) {
    for (std::string_view rest = flag->also; !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      add(rest.substr(0, end), flag);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    add(flag->pointer.substr(flag->pointer.rfind('/') + 1), flag);
  }
  const std::string_view nearest = io::closest(typed, words);
  return nearest.empty() ? std::string() : shown(*owner.at(nearest));
}

Diagnostics unknown_command(std::string_view typed) {
  constexpr std::string_view see = "        (shardplan --help)";
  std::string message;
  if (typed.substr(0, 1) == "-" && typed.size() > 1) {
    message = fmt::format("{} before a command; the command comes first: shardplan estimate {}{}", typed, typed, see);
  } else if (std::ifstream(std::string(typed)).good()) {
    message = fmt::format("unknown command \"{}\"; did you mean shardplan estimate {}?{}", typed, typed, see);
  } else {
    std::vector<std::string_view> names;
    for (const Command& command : commands()) names.push_back(command.name);
    message = fmt::format("unknown command \"{}\"{}{}", typed, io::did_you_mean(typed, names), see);
  }
  return usage_problem(std::move(message)).problems;
}

namespace {

void complain(ParsedLine& parsed, std::string message) {
  parsed.problems.push_back({std::string(command_line_file), "", std::move(message), "", 0, 0});
}

/// A word that is no known flag: an argument, or a flag that the command does not have.
void add_word(const Command& command, const std::string& word, ParsedLine& parsed) {
  if (word.size() < 2 || word.front() != '-') return parsed.arguments.words.push_back(word);
  const std::string typed = word.substr(0, word.find('='));
  if (const std::string owners = owners_of(word); !owners.empty()) {
    return complain(parsed, fmt::format("{} is no flag of {}; {}{}", typed, command.name, owners, see_help(command)));
  }
  const std::string nearest = suggest_flag(command, word);
  complain(parsed, fmt::format("unknown flag {}{}{}", typed,
                               nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest), see_help(command)));
}

void add_flag(const Command& command, const Flag& flag, const std::string& typed, ParsedLine& parsed) {
  const bool is_switch = flag.kind == ValueKind::none;
  // CLI11 takes the next flag for a value, and a value for a switch.
  const bool misread = is_switch ? typed != "true" : typed.rfind("--", 0) == 0;
  if (misread) complain(parsed, value_problem(flag) + see_help(command));
  if (!may_repeat(flag) && parsed.arguments.has(flag.name)) {
    complain(parsed, fmt::format("{} is given twice, as \"{}\" and \"{}\"; only one can count{}", shown(flag),
                                 *parsed.arguments.value(flag.name), typed, see_help(command)));
  }
  const bool nothing = flag.kind == ValueKind::optional_text && typed == "true";  // CLI11's word for it
  parsed.arguments.flags.push_back({&flag, is_switch ? std::string(flag.fixed) : nothing ? "" : typed});
}

}  // namespace

ParsedLine parse_command_line(const Command& command, std::span<const char* const> words) {
  ParsedLine parsed;
  CLI::App app;
  app.set_help_flag();  // --help is generated from our rows
  app.allow_extras();   // unknown flags and plain words are sorted out below
  std::map<const CLI::Option*, const Flag*> rows;
  for (const Flag* const flag : flags_of(command)) {
    const bool is_switch = flag->kind == ValueKind::none;
    CLI::Option* const option = is_switch ? app.add_flag(option_names(*flag)) : app.add_option(option_names(*flag));
    if (!is_switch) option->expected(flag->kind == ValueKind::optional_text ? 0 : 1, 1);
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    rows.emplace(option, flag);
  }
  const CLI::Option* const help = app.add_flag("-h,--help");

  // What follows "--" is no flag, whatever it looks like.
  const auto end = std::find(words.begin(), words.end(), std::string_view("--"));
  try {
    // CLI11 takes the words last first.
    app.parse(std::vector<std::string>(std::make_reverse_iterator(end), words.rend()));
  } catch (const CLI::ParseError& error) {
    complain(parsed, in_own_words(command, error.what()) + see_help(command));
    return parsed;
  }
  parsed.help = help->count() > 0;

  for (const std::string& word : app.remaining()) add_word(command, word, parsed);
  for (auto word = end == words.end() ? end : end + 1; word != words.end(); ++word) {
    parsed.arguments.words.emplace_back(*word);
  }
  if (parsed.problems.empty() && parsed.arguments.words.size() > command.most_words) {
    complain(parsed,
             fmt::format("{} takes {}, not also \"{}\"{}", command.name,
                         command.most_words == 0 ? std::string("only flags") : fmt::format("one {}", command.arguments),
                         parsed.arguments.words[command.most_words], see_help(command)));
  }

  std::map<const CLI::Option*, std::size_t> taken;
  for (const CLI::Option* const option : app.parse_order()) {
    const auto row = rows.find(option);
    if (row == rows.end()) continue;
    add_flag(command, *row->second, option->results().at(taken[option]++), parsed);
  }
  return parsed;
}

}  // namespace shardplan::cli
