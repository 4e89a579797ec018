#include "command.hpp"

#include <utility>
#include <vector>

namespace shardplan::cli {

std::optional<std::string_view> Arguments::value(std::string_view name) const {
  for (auto given = flags.rbegin(); given != flags.rend(); ++given) {
    if (given->flag->name == name) return given->value;
  }
  return std::nullopt;
}

std::span<const Command> commands() {
  static const std::vector<Command> all = {estimate_command(), search_command(),  solve_command(),
                                           sweep_command(),    compare_command(), schedule_command(),
                                           check_command(),    list_command(),    schema_command()};
  return all;
}

Outcome usage_problem(std::string message, std::string way_out) {
  Outcome outcome;
  outcome.status = exit_input;
  outcome.problems.push_back({std::string(command_line_file), "", std::move(message), std::move(way_out), 0, 0});
  return outcome;
}

}  // namespace shardplan::cli
