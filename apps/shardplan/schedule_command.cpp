// `shardplan schedule`: the timeline of a pipeline schedule.
#include <array>

#include "command.hpp"
#include "schedule_spec_command.hpp"

namespace shardplan::cli {
namespace {

constexpr std::array schedule_flags = {
    Flag{"spec", "", ValueKind::text, FlagGroup::command, "FILE|-", "a schedule with given times: p, m, F, B, W",
         "file times"},
};

Outcome run_schedule(const Arguments& arguments, const OutputStyle& style) {
  const std::optional<std::string_view> spec = arguments.value("spec");
  if (!spec) {
    return usage_problem("schedule needs --spec FILE",
                         R"(for example echo '{"schedule":"1f1b","p":4,"m":8,"F":1,"B":1,"W":1}' | )"
                         "shardplan schedule --spec - --json");
  }
  if (style.format != Format::json && arguments.has("format"))
    return usage_problem("schedule --spec answers in JSON only");
  return schedule_spec(std::string(*spec));
}

}  // namespace

Command schedule_command() {
  Command command;
  command.name = "schedule";
  command.purpose = Purpose::ask;
  command.arguments = "--spec FILE";
  command.summary = "A pipeline schedule with given times, simulated: makespan, bubble, what is in flight, every op.";
  command.examples = {"shardplan schedule --spec schedule.json --json",
                      R"(echo '{"schedule":"zb-h1","p":4,"m":8,"F":2,"B":2,"W":2}' | shardplan schedule --spec -)"};
  command.flags = {schedule_flags, output_flags()};
  command.most_words = 0;
  command.run = run_schedule;
  return command;
}

}  // namespace shardplan::cli
