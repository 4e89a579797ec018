#include "shell_files.hpp"

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <string_view>
#include <vector>

#include "command.hpp"
#include "flag_words.hpp"

namespace shardplan::cli {
namespace {

template <class Visitor>
void each_flag(const Command& command, const Visitor& visit) {
  for (const std::span<const Flag> rows : command.flags) {
    for (const Flag& flag : rows) visit(flag);
  }
}

std::string joined(const std::vector<std::string>& words, std::string_view separator = " ") {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : std::string(separator)) + word;
  return text;
}

/// In single quotes for a POSIX shell and for fish; `quote` is what a quote inside becomes.
std::string single_quoted(std::string_view text, std::string_view quote = "'\\''") {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string(quote) : std::string(1, c);
  return out + "'";
}

/// Text of a zsh specification: what _arguments would take for its own.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("[]:\\").find(c) != std::string_view::npos) out += '\\';
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return out;
}

/// Completes names of files; `json`: of JSON files and folders.
constexpr std::string_view bash_files =
    "# bash completion of shardplan, generated from its flags.\n"
    "_shardplan_files() {\n"
    "  local IFS=$'\\n' found\n"
    "  compopt -o filenames 2>/dev/null\n"
    "  if [ \"${1-}\" = json ]; then\n"
    "    found=($(compgen -f -X '!*.json' -- \"$cur\") $(compgen -d -- \"$cur\"))\n"
    "  else\n"
    "    found=($(compgen -f -- \"$cur\"))\n"
    "  fi\n"
    "  COMPREPLY+=(\"${found[@]}\")\n"
    "}\n\n";

std::string bash_candidates(const WordList& list) {
  std::string code;
  if (!list.words.empty())
    code += fmt::format("COMPREPLY=($(compgen -W {} -- \"$cur\"))", single_quoted(joined(list.words)));
  if (list.files || list.any_file) {
    code += fmt::format("{}_shardplan_files{}", code.empty() ? "" : "; ", list.files ? " json" : "");
  }
  return code.empty() ? ":" : code;
}

/// `name`: of the flag or command whose words these are; zsh_helpers() defines a function for those that mix with
/// files.
std::string zsh_action(const WordList& list, std::string_view name) {
  if (list.any_file) return "_files";
  if (!list.files) return list.words.empty() ? std::string() : fmt::format("({})", zsh_text(joined(list.words)));
  return list.words.empty() ? std::string("_files -g \"*.json(-.)\"") : fmt::format("_shardplan_{}_words", name);
}

/// A function for each flag and command that takes names and files.
std::string zsh_helpers() {
  std::map<std::string, std::string> helpers;
  const auto add = [&](std::string_view name, const WordList& list) {
    if (list.words.empty() || !list.files) return;
    helpers[fmt::format("_shardplan_{}_words", name)] =
        fmt::format("  _alternative 'names:name:({})' 'files:file:_files -g \"*.json(-.)\"'\n", joined(list.words));
  };
  for (const Command& command : commands()) {
    add(command.name, words_of(command));
    each_flag(command, [&](const Flag& flag) { add(flag.name, words_of(flag, command)); });
  }
  std::string out;
  for (const auto& [name, body] : helpers) out += fmt::format("{}() {{\n{}}}\n\n", name, body);
  return out;
}

}  // namespace

std::string bash_completion() {
  std::string names_of_commands;
  std::string flags;
  std::string words;
  // Values are the same under every command but for --format.
  std::map<std::string, std::string> values;
  std::string formats;
  for (const Command& command : commands()) {
    names_of_commands += fmt::format("{}{}", names_of_commands.empty() ? "" : " ", command.name);
    std::string names = "--help";
    each_flag(command, [&](const Flag& flag) {
      names += fmt::format(" --{}", flag.name);
      if (flag.kind == ValueKind::none) return;
      if (flag.name == "format") {
        formats += fmt::format("        {}) {} ;;\n", command.name, bash_candidates(words_of(flag, command)));
        return;
      }
      std::string pattern = fmt::format("--{}", flag.name);
      if (flag.letter != 0) pattern += fmt::format("|-{}", flag.letter);
      values[pattern] = bash_candidates(words_of(flag, command));
    });
    flags += fmt::format("      {}) flags={} ;;\n", command.name, single_quoted(names));
    words += fmt::format("      {}) {} ;;\n", command.name, bash_candidates(words_of(command)));
  }
  std::string cases;
  for (const auto& [pattern, code] : values) cases += fmt::format("      {}) {}; return ;;\n", pattern, code);
  return std::string(bash_files) +
         "_shardplan() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]} flags=''\n"
         "  COMPREPLY=()\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n" +
         fmt::format("    COMPREPLY=($(compgen -W '{} --help --version' -- \"$cur\"))\n", names_of_commands) +
         "    return\n"
         "  fi\n"
         "  # --flag=value is three words\n"
         "  if [ \"$cur\" = '=' ]; then cur=''; elif [ \"$prev\" = '=' ]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
         "  case \"$prev\" in\n" +
         cases + "      --format)\n        case \"$command\" in\n" + formats +
         "        esac\n        return ;;\n"
         "  esac\n"
         "  if [ \"${cur#-}\" != \"$cur\" ]; then\n"
         "    case \"$command\" in\n" +
         flags +
         "    esac\n"
         "    COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\"))\n"
         "    return\n"
         "  fi\n"
         "  case \"$command\" in\n" +
         words +
         "  esac\n"
         "}\n"
         "complete -F _shardplan shardplan\n";
}

std::string zsh_completion() {
  std::string out =
      "#compdef shardplan\n"
      "# zsh completion of shardplan, generated from its flags.\n\n" +
      zsh_helpers() +
      "_shardplan() {\n"
      "  local context state state_descr line\n"
      "  typeset -A opt_args\n"
      "  local -a commands\n"
      "  commands=(\n";
  for (const Command& command : commands()) {
    out += fmt::format("    '{}:{}'\n", command.name, zsh_text(command.summary));
  }
  out +=
      "  )\n"
      "  _arguments -C '(- *)--help[help]' '(- *)--version[version]' '1:command:->command' '*::argument:->argument'\n"
      "  case $state in\n"
      "    command) _describe -t commands command commands ;;\n"
      "    argument)\n"
      "      case $words[1] in\n";
  for (const Command& command : commands()) {
    out += fmt::format("        {})\n          _arguments \\\n            '(- *)--help[help]' \\\n", command.name);
    each_flag(command, [&](const Flag& flag) {
      const bool repeats = flag.kind == ValueKind::any_field || flag.kind == ValueKind::axis;
      std::string spec = fmt::format("'{}--{}[{}]", repeats ? "*" : "", flag.name, zsh_text(flag.help));
      if (flag.letter != 0) {
        spec = fmt::format("'(-{0} --{1})'{{-{0},--{1}}}'[{2}]", flag.letter, flag.name, zsh_text(flag.help));
      }
      if (flag.kind != ValueKind::none) {
        spec += fmt::format(":{}:{}", zsh_text(flag.value), zsh_action(words_of(flag, command), flag.name));
      }
      out += fmt::format("            {}' \\\n", spec);
    });
    const WordList list = words_of(command);
    out +=
        fmt::format("            '*:{}:{}' ;;\n", list.words.empty() ? "file" : "word", zsh_action(list, command.name));
  }
  return out +
         "      esac ;;\n"
         "  esac\n"
         "}\n\n"
         "_shardplan \"$@\"\n";
}

std::string fish_completion() {
  std::string out =
      "# fish completion of shardplan, generated from its flags.\n"
      "complete -c shardplan -f\n"
      "complete -c shardplan -n __fish_use_subcommand -l help -d 'help'\n"
      "complete -c shardplan -n __fish_use_subcommand -l version -d 'version'\n";
  const auto fish = [](std::string_view text) { return single_quoted(text, "\\'"); };
  const auto files = [](const WordList& list) {
    if (list.any_file) return std::string("(__fish_complete_path)");
    std::string words = joined(list.words);
    if (list.files) words += (words.empty() ? "" : " ") + std::string("(__fish_complete_suffix .json)");
    return words;
  };
  for (const Command& command : commands()) {
    out += fmt::format("complete -c shardplan -n __fish_use_subcommand -a {} -d {}\n", command.name,
                       fish(command.summary));
    const std::string when = fmt::format("'__fish_seen_subcommand_from {}'", command.name);
    const WordList list = words_of(command);
    if (!list.words.empty() || list.files) {
      out += fmt::format("complete -c shardplan -n {} -a {}\n", when, fish(files(list)));
    }
    out += fmt::format("complete -c shardplan -n {} -l help -d 'help'\n", when);
    each_flag(command, [&](const Flag& flag) {
      out += fmt::format("complete -c shardplan -n {} -l {}", when, flag.name);
      if (flag.letter != 0) out += fmt::format(" -s {}", flag.letter);
      out += " -d " + fish(flag.help);
      if (flag.kind != ValueKind::none) {
        const std::string values = files(words_of(flag, command));
        out += " -x";
        if (!values.empty()) out += " -a " + fish(values);
      }
      out += "\n";
    });
  }
  return out;
}

}  // namespace shardplan::cli
