// Machine output against what others published: SARIF, JUnit, GitHub's workflow commands.
#include <algorithm>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/process.hpp"
#include "validator.hpp"

namespace {

using nlohmann::json;

const std::string root = SHARDPLAN_SOURCE_DIR;

test::ProcessResult run_program(std::vector<std::string> words, const std::string& folder = root) {
  words.insert(words.begin(), SHARDPLAN_BINARY);
  return test::run_process(words, {}, folder);
}

/// Files whose names and contents need every escape.
void write_awkward(const test::TemporaryFolder& folder) {
  const std::string good =
      R"({"model": "llama-3.1-8b", "cluster": "dgx-h100", "num_gpus": 8, "parallel": {"tensor": 8}})";
  folder.write("a,b:c%d.json", good);
  folder.write("quote\"<&>.json", R"({"model": "no <such> & \"model\"", "cluster": "dgx-h100", "num_gpus": 8})");
  folder.write("s p.json", "{ \"model\": }");
  folder.write("two\nlines\r.json", "[]");
  folder.write("strict.json",
               R"({"model": "llama-3.1-8b", "cluster": "dgx-h100", "num_gpus": 8, "parallel": {"tensor": 8},
  "require": {"min_mfu": 0.99, "max_step_s": 1e-9, "min_headroom_gib": 70}})");
  for (int i = 0; i < 12; ++i) {
    folder.write("broken" + std::to_string(i) + ".json", R"({"model": "x%y,z:w"})");
  }
}

}  // namespace

TEST_CASE("SARIF is valid against the published schema") {
  const test::SchemaFile sarif(test::read_file(root + "/tests/schema/published/sarif-2.1.0.json"));
  const test::TemporaryFolder folder;
  write_awkward(folder);
  for (const std::string& place : {root + "/tests/check", folder.path(), root + "/configs/runs"}) {
    const test::ProcessResult result = run_program({"check", place, "--format", "sarif"});
    const json log = json::parse(result.out);
    const std::string error = sarif.error(log);
    CAPTURE(place, error);
    CHECK(error.empty());
    for (const json& found : log["runs"][0]["results"]) {
      const std::size_t index = found["ruleIndex"].get<std::size_t>();
      CHECK(log["runs"][0]["tool"]["driver"]["rules"][index]["id"] == found["ruleId"]);
    }
  }
  const json whole = json::parse(run_program({"check", "tests/check", "--format", "sarif"}).out);
  const json finding = whole["runs"][0]["results"][0];
  const std::vector<std::pair<std::string, json>> wrong = {
      {"/version", "2.0.0"},
      {"/runs/0/results/0/level", "fatal"},
      {"/runs/0/results/0/message", "text"},
      {"/runs/0/results/0/line", 3},
      {"/runs/0/results/0/locations/0/physicalLocation/region/startLine", 0},
      {"/runs/0/tool/driver/name", nullptr}};
  CHECK(finding.contains("locations"));
  for (const auto& [pointer, value] : wrong) {
    json broken = whole;
    broken[json::json_pointer(pointer)] = value;
    CAPTURE(pointer);
    CHECK_FALSE(sarif.error(broken).empty());
  }
}

TEST_CASE("JUnit is valid against the published schema, and its counts add up") {
  if (test::run_process({"/usr/bin/xmllint", "--version"}).status != 0) {
    WARN("xmllint is not installed (libxml2-utils)");
    return;
  }
  const test::TemporaryFolder folder;
  write_awkward(folder);
  const std::string xsd = root + "/tests/schema/published/junit.xsd";
  const std::string file = folder.path() + "/out.xml";
  const auto lint = [&](const std::string& xml) {
    return test::run_process({"/usr/bin/xmllint", "--noout", "--schema", xsd, xml});
  };
  const auto count = [&](const std::string& path) {
    return test::run_process({"/usr/bin/xmllint", "--xpath", path, file}).out;
  };
  struct Case {
    std::vector<std::string> words;
    int status;
    bool failing;
  };
  const std::vector<Case> cases = {{{"tests/check/best.json"}, 0, false},
                                   {{"tests/check/old.json", "tests/check/big.json"}, 1, true},
                                   {{"tests/check/bad.json", folder.path() + "/none.json"}, 2, false},
                                   {{"tests/check"}, 2, true},
                                   {{folder.path()}, 2, true},
                                   {{"configs/runs"}, 0, false}};
  for (const Case& each : cases) {
    std::vector<std::string> line = {"check", "--format", "junit", "-o", file};
    line.insert(line.end(), each.words.begin(), each.words.end());
    const int status = run_program(line).status;
    const auto checked = lint(file);
    CAPTURE(line, checked.err);
    CHECK(status == each.status);
    CHECK(checked.status == 0);
    CHECK(count("number(/testsuites/@tests) = count(//testcase)") == "true\n");
    CHECK(count("number(/testsuites/@failures) = count(//failure)") == "true\n");
    CHECK(count("number(/testsuites/@errors) = count(//error)") == "true\n");
    CHECK(count("sum(//testsuite/@tests) = count(//testcase)") == "true\n");
    CHECK(count("count(//failure) > 0") == (each.failing ? "true\n" : "false\n"));
    CHECK(count("count(//error) > 0") == (status == 2 ? "true\n" : "false\n"));
    // Where it is, as editors read it: a case has no attribute for that.
    CHECK(count("count(//*[self::failure or self::error][starts-with(., ../@classname)]) = "
                "count(//failure) + count(//error)") == "true\n");
  }
  for (const char* const wrong : {"<testsuites><testsuite name=\"a\"/></testsuites>",
                                  "<testsuites><testsuite name=\"a\" tests=\"1\"><testcase name=\"b\" file=\"c\"/>"
                                  "</testsuite></testsuites>",
                                  "<testsuites><testsuite name=\"a\" tests=\"1\"><testcase name=\"b\"><fail/>"
                                  "</testcase></testsuite></testsuites>"}) {
    CAPTURE(wrong);
    CHECK(lint(folder.write("wrong.xml", wrong)).status != 0);
  }
}

/// What actions/runner makes of a property's value.
std::string unescaped(std::string text) {
  for (const auto& [escape, plain] :
       {std::pair{"%0D", "\r"}, {"%0A", "\n"}, {"%3A", ":"}, {"%2C", ","}, {"%25", "%"}}) {
    for (std::size_t at = text.find(escape); at != std::string::npos; at = text.find(escape, at + 1)) {
      text.replace(at, 3, plain);
    }
  }
  return text;
}

TEST_CASE("GitHub's workflow commands keep their grammar") {
  const test::TemporaryFolder folder;
  write_awkward(folder);
  // ::command key=value,key=value::message; values hold no raw % but as an escape, no ':' and no ','.
  const std::string escaped = "(?:[^%\\r\\n]|%25|%0D|%0A)";
  const std::string value = "(?:[^%\\r\\n:,]|%25|%0D|%0A|%3A|%2C)+";
  const std::regex command("::(error|notice)(?: (file|title)=" + value + "(?:,(line|col|title)=" + value +
                           ")*)?::" + escaped + "*");
  for (const std::string& place : {root + "/tests/check", folder.path(), root + "/configs/runs"}) {
    const test::ProcessResult result = run_program({"check", place, "--format", "github"});
    std::istringstream lines(result.out);
    std::size_t errors = 0;
    std::size_t notices = 0;
    std::size_t files = 0;
    for (std::string line; std::getline(lines, line);) {
      CAPTURE(line);
      CHECK(std::regex_match(line, command));
      std::smatch file;
      if (std::regex_search(line, file, std::regex("^::error file=([^:,]*)"))) {
        CHECK(std::filesystem::exists(unescaped(file[1].str())));
        ++files;
      }
      errors += line.rfind("::error ", 0) == 0 ? 1 : 0;
      notices += line.rfind("::notice ", 0) == 0 ? 1 : 0;
    }
    CAPTURE(result.out);
    CHECK(errors <= 10);
    CHECK((files > 0) == (errors > 0));
    CHECK(notices == 1);
    CHECK((errors == 0) == (result.status == 0));
  }
  CHECK_FALSE(std::regex_match(std::string("::error file=a:b::x"), command));
  CHECK_FALSE(std::regex_match(std::string("::error file=a,b::x"), command));
  CHECK_FALSE(std::regex_match(std::string("::error file=a::x\ny"), command));
  CHECK_FALSE(std::regex_match(std::string("::error file=a::50% of"), command));
}
