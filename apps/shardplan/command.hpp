// A command: what it is called, which flags it takes, what it answers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flags.hpp"
#include "shardplan/core/diagnostic.hpp"
#include "shardplan/report/style.hpp"

namespace shardplan::cli {

/// Exit statuses that scripts rely on.
enum ExitStatus : int {
  exit_ok = 0,            ///< it fits, every check holds
  exit_no = 1,            ///< it does not fit, or a check fails
  exit_input = 2,         ///< the input or the command line is wrong; nothing was printed on standard output
  exit_nothing_fits = 3,  ///< a search or solve found nothing
  exit_internal = 70,     ///< a bug
  exit_interrupted = 130,
};

/// A flag as it stood on the command line.
struct GivenFlag {
  const Flag* flag = nullptr;
  std::string value;  ///< of a switch its row's fixed value
};

/// The words behind the command's name.
struct Arguments {
  std::vector<std::string> words;  ///< not flags: RUN.json, a kind, a topic
  std::vector<GivenFlag> flags;    ///< in command-line order

  /// The last value given for a long flag name (without dashes), or nothing.
  std::optional<std::string_view> value(std::string_view name) const;
  bool has(std::string_view name) const { return value(name).has_value(); }
};

enum class Format : std::uint8_t { text, json, markdown, csv };
}  // namespace shardplan::cli

namespace shardplan {
template <>
inline constexpr std::array<std::string_view, 4> names_of<cli::Format> = {"text", "json", "markdown", "csv"};
}  // namespace shardplan

namespace shardplan::cli {

/// How a result is to look: flags, environment and terminal taken together.
struct OutputStyle {
  Format format = Format::text;
  report::Style page;             ///< width, colour, characters, unit of sizes
  bool quiet = false;             ///< the first line only
  bool detail = false;            ///< operators and communication too
  std::string_view picture = {};  ///< of the command's `pictures`, when --format names one
};

/// What a command answers. Either `problems` or `result` is filled.
struct Outcome {
  int status = exit_ok;
  std::string result;                   ///< for standard output or -o
  Warnings warnings;                    ///< for standard error, after the result
  std::vector<std::string> notes = {};  ///< likewise
  Diagnostics problems;                 ///< for standard error, instead of a result; the exit status is then exit_input
  Diagnostics rejected = {};            ///< of single inputs among several, for standard error after the result
  std::optional<std::string> file = {};  ///< what -o writes, of a command whose result goes to standard output anyway
};

/// What a command is for: the short help is ordered by it.
enum class Purpose : std::uint8_t { ask, verify, learn };

/// One of the words that may follow `shardplan`.
struct Command {
  std::string_view name;
  Purpose purpose = Purpose::ask;
  std::string_view arguments;  ///< in the usage line, e.g. "[RUN.json]"
  std::string_view summary;    ///< one line
  std::vector<std::string_view> examples;
  std::vector<std::span<const Flag>> flags;         ///< in the order of --help
  std::span<const std::string_view> pictures = {};  ///< what --format takes besides text, json, markdown and csv
  std::string_view exit_zero = "what was asked is printed";
  std::string_view exit_one = {};  ///< empty: the command has no such answer
  std::string_view exit_two = "the input or the command line is wrong; nothing is printed on standard output";
  std::string_view exit_nothing = {};  ///< of exit_nothing_fits; empty: likewise
  bool output_apart = false;           ///< -o takes Outcome::file and not the result
  std::size_t most_words = 1;          ///< how many arguments that are not flags it takes
  Outcome (*run)(const Arguments& arguments, const OutputStyle& style) = nullptr;
};

/// Every command, in the order of the help.
std::span<const Command> commands();

/// One function a command; each is in a file of its own.
Command estimate_command();
Command check_command();
Command compare_command();
Command search_command();
Command solve_command();
Command schedule_command();
Command explain_command();
Command schema_command();
Command sweep_command();
Command list_command();

/// The topics of `explain`, for `list topics` too.
Outcome print_topics(const OutputStyle& style);

/// An Outcome that is one problem of the command line itself.
Outcome usage_problem(std::string message, std::string way_out = {});

}  // namespace shardplan::cli
