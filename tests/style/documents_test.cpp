// What the documents show is what the program prints: every fenced block of README.md and docs/ that starts with
// "$ shardplan ..." is run in the source folder and compared with standard output (with both streams where the line
// ends in "2>&1"). scripts/regenerate.sh rewrites them. Every run file that they show is read, every command that a
// sentence names is run.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/process.hpp"

namespace {

const std::string source = SHARDPLAN_SOURCE_DIR;
const std::string example = "configs/runs/llama-3.1-70b-128xh100.json";
const std::string other = "configs/runs/llama-2-70b-128xa100.json";

std::vector<std::string> documents() {
  std::vector<std::string> files = {source + "/README.md"};
  for (const auto& entry : std::filesystem::directory_iterator(source + "/docs")) {
    if (entry.path().extension() == ".md") files.push_back(entry.path().string());
  }
  std::sort(files.begin() + 1, files.end());
  for (const char* const name : {"/CONTRIBUTING.md", "/CHANGELOG.md"}) files.push_back(source + name);
  return files;
}

std::vector<std::string> words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> result;
  for (std::string word; in >> word;) result.push_back(word);
  return result;
}

/// The document with each block's output as the program prints it now.
std::string refreshed(const std::string& text, std::vector<std::string>& commands) {
  std::istringstream in(text);
  std::string result;
  std::string line;
  while (std::getline(in, line)) {
    result += line + "\n";
    if (line.rfind("```", 0) != 0 || line == "```") continue;
    std::string first;
    if (!std::getline(in, first)) break;
    result += first + "\n";
    bool shown = first.rfind("$ shardplan ", 0) == 0;
    if (shown) {
      commands.push_back(first);
      std::vector<std::string> arguments = words(first.substr(2));
      arguments.front() = SHARDPLAN_BINARY;
      const bool both = arguments.back() == "2>&1";
      if (both) arguments.pop_back();
      const test::ProcessResult ran = test::run_process(arguments, {}, source);
      result += both ? ran.out + ran.err : ran.out;
    }
    while (first != "```" && std::getline(in, line)) {
      if (!shown || line == "```") result += line + "\n";
      if (line == "```") break;
    }
  }
  return result;
}

/// `shardplan ...` in sentences and tables, with files and words in the place of RUN.json, TOPIC ..; commands alone and
/// forms with alternatives are names.
std::vector<std::vector<std::string>> inline_commands(const std::string& text) {
  const std::map<std::string, std::string> stands_for = {
      {"RUN.json", example}, {"A.json", example},        {"a.json", example},
      {"B.json", other},     {"runs/", "configs/runs"},  {"runs/*.json", "configs/runs/*.json"},
      {"TOPIC", "bubble"},   {"FIELD", "seq"},           {"KIND", "gpus"},
      {"COMMAND", "check"},  {"TERM[@STAGE]", "activ@0"}};
  std::vector<std::vector<std::string>> commands;
  const std::string start = "`shardplan ";
  for (std::size_t at = 0; (at = text.find(start, at)) != std::string::npos; ++at) {
    std::vector<std::string> typed = words(text.substr(at + 1, text.find('`', at + 1) - at - 1));
    if (typed.size() < 3 || text.substr(at, 80).find('|') < text.find('`', at + 1) - at) continue;
    for (std::string& word : typed) {
      if (const auto found = stands_for.find(word); found != stands_for.end()) word = found->second;
    }
    const bool needs_run = typed[1] == "estimate" && typed.size() == 4 && typed[2] == "--explain";
    if (needs_run) typed.insert(typed.begin() + 2, example);
    if (std::find(typed.begin(), typed.end(), "FILE") == typed.end()) commands.push_back(std::move(typed));
  }
  return commands;
}

/// The blocks that are whole run files.
std::vector<std::string> run_files(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> runs;
  for (std::string line; std::getline(in, line);) {
    if (line != "```json") continue;
    std::string block;
    while (std::getline(in, line) && line != "```") block += line + "\n";
    const auto states = [&block](const char* field) { return block.find(field) != std::string::npos; };
    if (states("\"model\":") && states("\"cluster\":")) runs.push_back(block);
  }
  return runs;
}

}  // namespace

TEST_CASE("documents show what the program prints") {
  std::vector<std::string> commands;
  for (const std::string& file : documents()) {
    const std::string text = test::read_file(file);
    const std::string now = refreshed(text, commands);
    if (std::getenv("SHARDPLAN_UPDATE") != nullptr) std::ofstream(file, std::ios::binary) << now;
    CAPTURE(file);
    CHECK(text == now);
  }
  CHECK_FALSE(commands.empty());
}

TEST_CASE("commands that sentences name run") {
  std::set<std::vector<std::string>> seen;
  for (const std::string& file : documents()) {
    for (std::vector<std::string> command : inline_commands(test::read_file(file))) {
      if (!seen.insert(command).second) continue;
      std::string line;
      for (const std::string& word : command) line += (line.empty() ? "" : " ") + word;
      command.front() = SHARDPLAN_BINARY;
      if (command[1] == "search") {  // the first of them are enough
        command.insert(command.end(), {"--time", "1"});
      }
      const test::ProcessResult ran = test::run_process(command, {}, source);
      CAPTURE(file, line, ran.err);
      CHECK((ran.status == 0 || ran.status == 1));
    }
  }
  CHECK(seen.size() > 12);
}

TEST_CASE("run files that documents show are legal") {
  std::size_t count = 0;
  for (const std::string& file : documents()) {
    for (const std::string& run : run_files(test::read_file(file))) {
      const test::ProcessResult ran = test::run_process({SHARDPLAN_BINARY, "estimate", "-", "-q"}, run);
      CAPTURE(file, run, ran.err);
      CHECK(ran.status == 0);
      ++count;
    }
  }
  CHECK(count > 10);
}
