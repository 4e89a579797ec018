// Words into arguments: order, switches, repeated flags, unknown flags.
#include "command_line.hpp"

#include <string>
#include <vector>

#include "output_style.hpp"
#include "support/catch.hpp"

namespace {

using shardplan::cli::Command;
using shardplan::cli::parse_command_line;
using shardplan::cli::ParsedLine;

Command example_command() {
  Command command;
  command.name = "estimate";
  command.arguments = "[RUN.json]";
  command.flags = {shardplan::cli::run_flags(), shardplan::cli::output_flags()};
  command.most_words = 1;
  return command;
}

ParsedLine parse(std::vector<const char*> words) { return parse_command_line(example_command(), words); }

/// "tp=8 set=/a=1"
std::string given(const ParsedLine& line) {
  std::string text;
  for (const auto& flag : line.arguments.flags) {
    text.append(text.empty() ? "" : " ").append(flag.flag->name).append("=").append(flag.value);
  }
  return text;
}

}  // namespace

TEST_CASE("flags keep the order and the values of the command line") {
  const ParsedLine line = parse(
      {"--tp", "8", "run.json", "--set", "/a=b", "--pp=4", "--no-sp", "--set", "/c=[1, 2]", "-q", "-o", "out.txt"});
  CHECK(line.problems.empty());
  CHECK(given(line) == "tp=8 set=/a=b pp=4 no-sp=false set=/c=[1, 2] quiet=true output=out.txt");
  CHECK(line.arguments.words == std::vector<std::string>{"run.json"});
  CHECK(line.arguments.value("tp") == "8");
  CHECK_FALSE(line.arguments.has("dp"));
}

TEST_CASE("a dash is a word, a negative number a value") {
  const ParsedLine line = parse({"-", "--model", "-", "--tp", "-1", "--dp", ""});
  CHECK(line.problems.empty());
  CHECK(line.arguments.words == std::vector<std::string>{"-"});
  CHECK(given(line) == "model=- tp=-1 dp=");
}

TEST_CASE("the flag --help is seen among other flags") {
  CHECK(parse({"run.json", "--tp", "8", "--help"}).help);
  CHECK(parse({"-h"}).help);
  CHECK_FALSE(parse({"run.json"}).help);
}

TEST_CASE("every unknown flag is reported with the one that was meant") {
  struct Row {
    const char* typed;
    const char* meant;
  };
  const Row row = GENERATE(values<Row>({{"--tensor-parallel", "--tp"},
                                        {"--tensor-model-parallel-size", "--tp"},
                                        {"--micro-batch-size", "--mbs"},
                                        {"--global_batch_size", "--gbs"},
                                        {"--seq-length", "--seq"},
                                        {"--num-gpus", "--gpus"},
                                        {"--zero-stage", "--zero"},
                                        {"--recompte", "--recompute"},
                                        {"--colour", "--color"},
                                        {"--out", "-o"}}));
  CAPTURE(row.typed);
  const ParsedLine line = parse({row.typed, "3", "--xyzzy"});
  REQUIRE(line.problems.size() == 2);
  CHECK_THAT(line.problems[0].message,
             test::StartsWith("unknown flag " + std::string(row.typed) + "; did you mean " + row.meant + "?"));
  CHECK_THAT(line.problems[1].message, test::StartsWith("unknown flag --xyzzy        (shardplan estimate --help)"));
}

TEST_CASE("a missing value, a value too many and a word too many are problems") {
  CHECK_THAT(parse({"--tp"}).problems.at(0).message, test::StartsWith("--tp needs a value: --tp N"));
  CHECK_THAT(parse({"--tp", "--pp", "4"}).problems.at(0).message, test::StartsWith("--tp needs a value: --tp N"));
  CHECK_THAT(parse({"-o"}).problems.at(0).message, test::StartsWith("-o needs a value: -o FILE"));
  CHECK_THAT(parse({"--no-sp=x"}).problems.at(0).message, test::StartsWith("--no-sp takes no value"));
  CHECK_THAT(parse({"a.json", "b.json"}).problems.at(0).message,
             test::StartsWith("estimate takes one [RUN.json], not also \"b.json\""));
}

TEST_CASE("a flag whose value can count once is not given twice") {
  CHECK_THAT(parse({"--tp", "8", "--tp", "4"}).problems.at(0).message,
             test::StartsWith("--tp is given twice, as \"8\" and \"4\"; only one can count"));
  CHECK_THAT(parse({"-o", "a", "--output", "b"}).problems.at(0).message, test::StartsWith("-o is given twice"));
  CHECK(parse({"-q", "-q", "--offload", "optimizer=cpu", "--offload", "parameters=cpu"}).problems.empty());
}

TEST_CASE("what contradicts in the output flags is a problem, and so is what would go unheard") {
  struct Row {
    std::vector<const char*> words;
    const char* message;  ///< "": legal
  };
  const Row rows[] = {
      {{"--json", "--format", "csv"}, "--json and --format csv contradict each other"},
      {{"--json", "--format", "json"}, ""},
      {{"-q", "--json"}, "-q prints the first line of the text; json has none"},
      {{"-q", "--format", "csv"}, "-q prints the first line of the text; csv has none"},
      {{"-q", "--format", "markdown"}, ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.message);
    const auto style = shardplan::cli::output_style(parse(row.words).arguments);
    CHECK(style.ok() == (*row.message == '\0'));
    if (!style.ok()) CHECK(style.problems.front().message == row.message);
  }
}
