// shardplan(1), from the same rows as --help.
#include <fmt/format.h>

#include <array>

#include "command.hpp"
#include "shardplan/version.hpp"
#include "shell_files.hpp"

namespace shardplan::cli {
namespace {

/// Text of a man page: backslashes, hyphens that are minus signs, and a point or quote at a line's start.
std::string roff(std::string_view text) {
  std::string out;
  if (!text.empty() && (text.front() == '.' || text.front() == '\'')) out += "\\&";
  for (const char c : text) {
    switch (c) {
      case '\\': out += "\\e"; break;
      case '-': out += "\\-"; break;
      default: out += c;
    }
  }
  return out;
}

std::string flag_entry(const Flag& flag) {
  std::string names = flag.letter == 0 ? "" : fmt::format("\\fB\\-{}\\fR, ", flag.letter);
  names += fmt::format("\\fB\\-\\-{}\\fR", roff(flag.name));
  if (!flag.value.empty()) names += fmt::format(" \\fI{}\\fR", roff(flag.value));
  std::string field;
  if (!flag.pointer.empty()) field = fmt::format(" (\\fI{}\\fR)", roff(flag.pointer));
  return fmt::format(".TP\n{}\n{}{}\n", names, roff(flag.help), field);
}

template <class Rows>
std::string flag_entries(const Rows& rows) {
  std::string out;
  for (const Flag& flag : rows) out += flag_entry(flag);
  return out;
}

bool is_shared(std::span<const Flag> rows) {
  return rows.data() == run_flags().data() || rows.data() == output_flags().data();
}

std::string command_section(const Command& command) {
  std::string out =
      fmt::format(".SS \"shardplan {} {}\"\n{}\n", command.name, roff(command.arguments), roff(command.summary));
  for (const std::span<const Flag> rows : command.flags) {
    if (!is_shared(rows)) out += flag_entries(rows);
  }
  for (const std::string_view example : command.examples) {
    out += fmt::format(".PP\n.nf\n.RS\n{}\n.RE\n.fi\n", roff(example));
  }
  if (!command.pictures.empty()) {
    std::string words;
    for (const std::string_view word : command.pictures) words += fmt::format("{}{}", words.empty() ? "" : ", ", word);
    out += fmt::format(".PP\n\\fB\\-\\-format\\fR also takes {}.\n", roff(words));
  }
  out += fmt::format(".PP\nExit status 0: {}.", roff(command.exit_zero));
  if (!command.exit_one.empty()) out += fmt::format(" 1: {}.", roff(command.exit_one));
  out += fmt::format(" 2: {}.", roff(command.exit_two));
  return out + "\n";
}

struct Variable {
  std::string_view name;
  std::string_view meaning;
};
constexpr std::array<Variable, 4> environment = {
    {{"NO_COLOR", "Set and not empty: no colour, unless --color always asks for it."},
     {"COLUMNS", "Width of text pages; else that of the terminal, else 100."},
     {"LC_ALL, LC_CTYPE, LANG", "Characters beyond ASCII are printed where these name UTF-8."},
     {"TERM, COLORTERM", "Heat maps have colours where these name 256 colours."}}};

}  // namespace

std::string man_page() {
  std::string out =
      ".\\\" Generated from the program's flags.\n"
      ".TH SHARDPLAN 1 \"\" \"shardplan " SHARDPLAN_VERSION
      "\" \"User Commands\"\n"
      ".SH NAME\nshardplan \\- memory, communication, bubble, step time and MFU of an LLM training run\n"
      ".SH SYNOPSIS\n";
  bool first = true;
  for (const Command& command : commands()) {
    out += fmt::format("{}\\fBshardplan {}\\fR \\fI{}\\fR [flags]\n", first ? "" : ".br\n", command.name,
                       roff(command.arguments));
    first = false;
  }
  out +=
      ".SH DESCRIPTION\n"
      "What a training run needs and how fast it is, before a GPU is taken. A run is a JSON file, flags, or both; "
      "flags "
      "win over the file. Results go to standard output, everything else to standard error.\n"
      ".SH COMMANDS\n";
  for (const Command& command : commands()) out += command_section(command);
  out += ".SH \"FLAGS OF A RUN\"\nEach overrides the field of the run file that is named behind it.\n" +
         flag_entries(run_flags());
  out += ".SH \"FLAGS OF THE OUTPUT\"\n" + flag_entries(output_flags());
  out +=
      ".SH \"EXIT STATUS\"\n"
      ".TP\n\\fB0\\fR\nIt fits, every check holds, or what was asked is printed.\n"
      ".TP\n\\fB1\\fR\nIt does not fit, or a check fails; the result is printed all the same.\n"
      ".TP\n\\fB2\\fR\nThe input or the command line is wrong.\n"
      ".TP\n\\fB3\\fR\nA search or solve found nothing that fits.\n"
      ".TP\n\\fB70\\fR\nAn internal error.\n"
      ".SH ENVIRONMENT\n";
  for (const Variable& variable : environment) {
    out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(variable.name), roff(variable.meaning));
  }
  return out +
         ".SH FILES\n"
         ".TP\n\\fI/usr/share/shardplan/schema\\fR\nJSON Schemas of run, cluster and model files and of the output.\n"
         ".TP\n\\fI/usr/share/shardplan/runs\\fR\nExample runs.\n";
}

}  // namespace shardplan::cli
