// Input errors as lines for people and for editors.
#include "problems.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/catch.hpp"

namespace {

using shardplan::Diagnostics;
using shardplan::cli::render_problems;
using shardplan::cli::token_width;

const shardplan::report::Style plain;

}  // namespace

TEST_CASE("problems are sorted by position, with the way out below and a count at the end") {
  const Diagnostics problems = {{"m.json", "/b", "4 is too large", "", 9, 3},
                                {"m.json", "/a", "3 is odd", "2 and 4 are even", 2, 1},
                                {"m.json", "/c", "is missing", "", 0, 0}};
  CHECK(render_problems(problems, plain, false) ==
        "m.json: /a: 3 is odd\n"
        "    2 and 4 are even\n"
        "m.json: /b: 4 is too large\n"
        "m.json: /c: is missing\n"
        "3 problems in m.json; nothing was computed\n");
}

TEST_CASE("a problem of the text itself has line and column, one of the command line the program's name") {
  CHECK(render_problems({{"m.json", "", "JSON: expected a value", "", 14, 3}}, plain, false) ==
        "m.json:14:3: JSON: expected a value\n");
  CHECK(render_problems({{"shardplan", "", "unknown flag --x", "", 0, 0}}, plain, false) ==
        "shardplan: unknown flag --x\n");
  CHECK(render_problems({}, plain, true).empty());
}

TEST_CASE("the source line follows with carets under the token") {
  const std::string path = (std::filesystem::temp_directory_path() / "problems_test.json").string();
  std::ofstream(path) << "{\n\t\"näme\": { \"tenosr\": 8, \"x\": 12.5 }\n}\n";
  const std::string text = render_problems(
      {{path, "/a/tenosr", "unknown field", "", 2, 12}, {path, "/a/x", "not an integer", "", 2, 30}}, plain, true);
  std::remove(path.c_str());
  CHECK(text == path + ": /a/tenosr: unknown field\n" +
                    "    2 |  \"näme\": { \"tenosr\": 8, \"x\": 12.5 }\n"
                    "                   ^^^^^^^^\n" +
                    path + ": /a/x: not an integer\n" +
                    "    2 |  \"näme\": { \"tenosr\": 8, \"x\": 12.5 }\n"
                    "                                     ^^^^\n"
                    "2 problems in " +
                    path + "; nothing was computed\n");
}

TEST_CASE("of a long line a window is shown") {
  const std::string path = (std::filesystem::temp_directory_path() / "problems_test_long.json").string();
  std::ofstream(path) << std::string(5000, ' ') << "\"word\"" << std::string(5000, ' ') << "x";
  const std::string text = render_problems({{path, "/a", "m", "", 1, 5001}}, plain, true);
  std::remove(path.c_str());
  CHECK(text.size() < path.size() + 250);
  const std::size_t word = text.find("\"word\"");
  const std::size_t carets = text.find("^^^^^^\n");
  REQUIRE(word != std::string::npos);
  REQUIRE(carets != std::string::npos);
  CHECK(word - text.rfind('\n', word) == carets - text.rfind('\n', carets));
}

TEST_CASE("the width of a JSON token") {
  CHECK(token_width(R"({ "a": 12.5, "b\"c": true })", 3) == 3);
  CHECK(token_width(R"({ "a": 12.5, "b\"c": true })", 8) == 4);
  CHECK(token_width(R"({ "a": 12.5, "b\"c": true })", 14) == 6);
  CHECK(token_width(R"({ "a": 12.5, "b\"c": true })", 22) == 4);
  CHECK(token_width("{", 1) == 1);
  CHECK(token_width("{", 9) == 1);
  CHECK(token_width("\"open", 1) == 5);
}

TEST_CASE("warnings are one line each and cannot steer the terminal") {
  CHECK(shardplan::cli::render_remarks({}, {{"tp_crosses_node", "/parallel/tensor", "slow \x1b[2J"}}, plain) ==
        "warning: tp_crosses_node: slow ?[2J\n");
}
