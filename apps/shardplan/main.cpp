// shardplan COMMAND [words] [flags]: finds the command, runs it, prints what it answers.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "command.hpp"
#include "command_line.hpp"
#include "help.hpp"
#include "output.hpp"
#include "output_style.hpp"
#include "problems.hpp"
#include "shardplan/version.hpp"
#include "system.hpp"
#include "terminal.hpp"

namespace shardplan::cli {
namespace {

void complain(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

/// Puts a result in its place; a full disk must not look like success.
int deliver(OutputFile& file, std::string_view text, int status) {
  const std::string failure = file.commit(text);
  if (!failure.empty()) complain(fmt::format("shardplan: {}\n", failure));
  return failure.empty() ? status : exit_input;
}

int reject(const Diagnostics& problems, const Arguments& arguments) {
  complain(render_problems(problems, error_style(arguments), is_terminal(Stream::error)));
  return exit_input;
}

/// A help that is not on a terminal is read in one of the usual width.
std::size_t help_width() {
  constexpr int usual = 80;
  return static_cast<std::size_t>(terminal_width(true, usual));
}

/// Opens what -o names, unless that is what the command is to read.
std::string open_output(OutputFile& file, const Arguments& arguments) {
  if (!arguments.has("output")) return {};
  const std::string path(*arguments.value("output"));
  std::vector<std::string> inputs = arguments.words;
  for (const std::string_view flag : {"model", "cluster", "spec"}) {
    if (const auto value = arguments.value(flag)) inputs.emplace_back(*value);
  }
  for (const std::string& input : inputs) {
    if (is_same_file(path, input)) return fmt::format("-o {}: that is an input, {}", path, input);
  }
  return file.open(path);
}

int run(std::span<const char* const> words) {
  OutputFile file;
  if (words.empty()) return deliver(file, short_help(help_width()), exit_ok);
  const std::string_view name = words.front();
  if (name == "--version") return deliver(file, "shardplan " SHARDPLAN_VERSION "\n", exit_ok);
  if (name == "--help" || name == "-h") return deliver(file, long_help(help_width()), exit_ok);
  const auto all = commands();
  const auto command = std::find_if(all.begin(), all.end(), [&](const Command& c) { return c.name == name; });
  if (command == all.end()) return reject(unknown_command(name), {});

  const ParsedLine line = parse_command_line(*command, words.subspan(1));
  if (line.help) return deliver(file, command_help(*command, help_width()), exit_ok);
  if (!line.problems.empty()) return reject(line.problems, line.arguments);
  const Result<OutputStyle> style = output_style(line.arguments, command->pictures);
  if (!style.ok()) return reject(style.problems, line.arguments);
  const std::string failure = open_output(file, line.arguments);
  if (!failure.empty()) return reject(usage_problem(failure).problems, line.arguments);

  const Outcome outcome = command->run(line.arguments, style.value);
  if (!outcome.problems.empty()) return reject(outcome.problems, line.arguments);
  int status = outcome.status;
  if (command->output_apart) {
    OutputFile standard_output;
    status = deliver(standard_output, outcome.result, status);
    if (outcome.file && line.arguments.has("output")) status = deliver(file, *outcome.file, status);
  } else {
    status = deliver(file, outcome.result, status);
  }
  complain(
      render_problems(outcome.rejected, error_style(line.arguments), is_terminal(Stream::error), Computed::others));
  complain(render_remarks(outcome.notes, outcome.warnings, error_style(line.arguments)));
  return status;
}

int report_bug(std::string_view what) {
  complain(fmt::format("shardplan " SHARDPLAN_VERSION " bug: {}; please report it with what you ran\n", what));
  return exit_internal;
}

}  // namespace
}  // namespace shardplan::cli

int main(int count, char** words) {
  shardplan::cli::end_on_closed_pipe();
  try {
    return shardplan::cli::run({words + std::min(count, 1), words + count});
  } catch (const std::exception& error) {
    return shardplan::cli::report_bug(error.what());
  } catch (...) {
    return shardplan::cli::report_bug("an unknown exception");
  }
}
