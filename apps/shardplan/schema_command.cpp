// `shardplan schema`: the JSON Schemas, for editors and other programs.
#include <fmt/format.h>

#include "command.hpp"
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/schemas.hpp"
#include "shardplan/io/suggest.hpp"

namespace shardplan::cli {
namespace {

Outcome run_schema(const Arguments& arguments, const OutputStyle& style) {
  if (style.format == Format::markdown || style.format == Format::csv) {
    return usage_problem(fmt::format("--format {}: a schema is JSON", name(style.format)));
  }
  if (style.quiet) return usage_problem("-q: a schema has no first line that answers for the others");
  const std::vector<std::string_view> names = io::schema_names();
  if (arguments.words.empty()) {
    return usage_problem(fmt::format("schema takes the name of one: {}", io::list_of(names)),
                         "for example shardplan schema run -o run.schema.json");
  }
  const std::string& wanted = arguments.words.front();
  std::optional<std::string> text = io::schema_text(wanted, catalog::builtin_catalog());
  if (!text) {
    return usage_problem(
        fmt::format("schema: \"{}\" is not {}{}", wanted, io::list_of(names), io::did_you_mean(wanted, names)));
  }
  Outcome outcome;
  outcome.result = std::move(*text);
  return outcome;
}

}  // namespace

Command schema_command() {
  Command command;
  command.name = "schema";
  command.purpose = Purpose::learn;
  command.arguments = "run|cluster|model|output";
  command.summary = "The JSON Schemas of the files and of the output, for editors and other programs.";
  command.examples = {"shardplan schema run -o run.schema.json", "shardplan schema output"};
  command.flags = {output_flags()};
  command.most_words = 1;
  command.run = run_schema;
  return command;
}

}  // namespace shardplan::cli
