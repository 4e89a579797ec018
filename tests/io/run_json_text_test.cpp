// JSON with comments, its syntax errors and where values stand.
#include <nlohmann/json.hpp>
#include <string>

#include "shardplan/io/json_text.hpp"
#include "support/catch.hpp"

using namespace shardplan;
using io::parse_json;

namespace {

struct BadText {
  const char* text;
  int line;
  int column;
  const char* words;
};

Diagnostic only_problem(const std::string& text) {
  const Result<io::JsonText> result = parse_json(text, "a.json");
  CAPTURE(text);
  REQUIRE(result.problems.size() == 1);
  return result.problems.front();
}

}  // namespace

TEST_CASE("comments and trailing commas read as if they were not there") {
  const std::string text = R"({
  // a comment, with "quotes" and a comma,
  "a": [1, 2, /* inside */ 3,],
  "b": { "c": "// no comment", "d": "/* nor this */", }, # )";
  const std::string good = text.substr(0, text.find('#')) + "\n} // the end";
  const Result<io::JsonText> result = parse_json(good, "a.json");
  REQUIRE(result.ok());
  CHECK(*result.value.value ==
        nlohmann::json::parse(R"({"a": [1, 2, 3], "b": {"c": "// no comment", "d": "/* nor this */"}})"));
  CHECK(result.value.text->size() == good.size());
}

TEST_CASE("a syntax error is one problem with line, column and what was expected") {
  const BadText rows[] = {
      {"{\n  \"a\": 1\n  \"training\": 2\n}", 3, 3,
       "JSON: expected ',' or '}' before \"training\"; a comma is missing after line 2"},
      {"[1 2]", 1, 4, "expected ',' or ']' before 2; a comma is missing"},
      {"{\"a\" 1}", 1, 6, "expected ':' after \"a\" before 1"},
      {"{a: 1}", 1, 2, "expected a key in double quotes before a"},
      {"{'a': 1}", 1, 2, "double quotes, not single ones"},
      {"{\"a\": 'x'}", 1, 7, "double quotes, not single ones"},
      {"{\"a\": x}", 1, 7, "expected a value before x"},
      {"{\"a\": }", 1, 7, "expected a value before '}'"},
      {"{,}", 1, 2, "expected a key"},
      {"{\"a\":1,,}", 1, 8, "one too many"},
      {"[,]", 1, 2, "expected a value before ','"},
      {"", 1, 1, "the file is empty"},
      {"  \n // nothing\n", 3, 1, "the file is empty"},
      {"{\"a\": [1, 2", 1, 12, "the file ends inside the list that opens at line 1, column 7"},
      {"{\"a\": 1", 1, 8, "the file ends inside the object that opens at line 1, column 1"},
      {"{} {}", 1, 4, "expected the end of the file before '{'"},
      {"{\"a\": \"x", 1, 7, "this string has no closing quote"},
      {"{\"a\": \"x\n\"}", 1, 7, "this string has no closing quote"},
      {"{\"a\": \"\\x\"}", 1, 8, "a backslash in a string"},
      {"{\"a\": \"\\ud800\"}", 1, 8, "a backslash in a string"},
      {"{\"a\": \"\\udc00\"}", 1, 8, "a backslash in a string"},
      {"{\"a\": \"\\ud83d\\u0041\"}", 1, 8, "a backslash in a string"},
      {"{\"a\": \"\t\"}", 1, 8, "tab"},
      {"{\"a\": \"\x01\"}", 1, 8, "control character"},
      {"{\"a\": 1 /* never", 1, 9, "this comment has no end"},
      {"{\"a\": NaN}", 1, 7, "NaN is not a JSON number"},
      {"{\"a\": -Infinity}", 1, 7, "-Infinity is not a JSON number"},
      {"{\"a\": 010}", 1, 7, "010 is not a JSON number"},
      {"{\"a\": 0x10}", 1, 7, "0x10 is not a JSON number"},
      {"{\"a\": +1}", 1, 7, "+1 is not a JSON number"},
      {"{\"a\": .5}", 1, 7, ".5 is not a JSON number"},
      {"{\"a\": 5.}", 1, 7, "5. is not a JSON number"},
      {"{\"a\": 1e}", 1, 7, "1e is not a JSON number"},
      {"{\"a\": -}", 1, 7, "- is not a JSON number"},
      {"{\"a\": 1e999}", 1, 7, "the number 1e999 is too large"},
      {"{\"a\": True}", 1, 7, "True is written true"},
      {"{\"a\": None}", 1, 7, "None is written null"},
      {"{\"\xC3\xA9\": 1, \"b\" 2}", 1, 14, "expected ':'"},
      {"{/* \xC3\xA9\xC3\xA9 */ \"b\" 2}", 1, 15, "expected ':'"},
      {"{\"a\": \"\xFF\"}", 1, 8, "byte 0xff is not UTF-8"},
      {"{\"a\": \"\xC0\x80\"}", 1, 8, "byte 0xc0 is not UTF-8"},
      {"\x7F"
       "ELF",
       1, 1, "control character (0x7f)"},
  };
  for (const BadText& row : rows) {
    const Diagnostic problem = only_problem(row.text);
    CHECK(problem.file == "a.json");
    CHECK(problem.pointer.empty());
    CHECK_THAT(problem.message, test::StartsWith("JSON: "));
    CHECK_THAT(problem.message, test::Contains(row.words));
    CHECK(problem.line == row.line);
    CHECK(problem.column == row.column);
  }
  CHECK_THAT(only_problem(std::string("{\"a\": \0}", 8)).message, test::Contains("binary"));
}

TEST_CASE("legal rarities are read") {
  struct Row {
    const char* text;
    const char* value;
  };
  const Row rows[] = {
      {"\xEF\xBB\xBF{}", "{}"},  // byte order mark
      {"{\"a\": 1e-999}", R"({"a": 0})"},
      {"{\"a\": 0.0000001, \"b\": -0}", R"({"a": 1e-7, "b": 0})"},
      {"{\"\\u00e9\\ud83d\\ude00\": \"\\u000a\"}", "{\"\xC3\xA9\xF0\x9F\x98\x80\": \"\\n\"}"},
      {"[\r\n1\r\n]\r\n", "[1]"},
      {"[[],{},[{}],]", "[[],{},[{}]]"},
      {"123456789012345678901234567890", "123456789012345678901234567890"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const Result<io::JsonText> result = parse_json(row.text, "a.json");
    REQUIRE(result.ok());
    CHECK(*result.value.value == nlohmann::json::parse(row.value));
  }
}

TEST_CASE("every duplicate key is named, with both lines") {
  const Result<io::JsonText> result = parse_json(
      "{\n\"a\": 1,\n\"b\": {\"x/y\": 1,\n\"x/y\": 2},\n\"\\u0061\": 3,\n\"list\": [{}, {\"k\":1,\"k\":1}]\n}",
      "a.json");
  REQUIRE(result.problems.size() == 3);
  CHECK(result.value.value != nullptr);
  CHECK(result.problems[0].pointer == "/b/x~1y");
  CHECK(result.problems[0].line == 4);
  CHECK_THAT(result.problems[0].message, test::Contains("given twice, before at line 3"));
  CHECK(result.problems[1].pointer == "/list/1/k");
  CHECK(result.problems[2].pointer == "/a");
  CHECK(result.problems[2].line == 5);
}

TEST_CASE("depth and size are limited") {
  const auto nested = [](int depth) { return std::string(static_cast<std::size_t>(depth), '['); };
  CHECK(parse_json(nested(64) + std::string(64, ']'), "a.json").ok());
  CHECK_THAT(only_problem(nested(65) + std::string(65, ']')).message, test::Contains("nested more than 64 deep"));
  CHECK_THAT(only_problem(nested(5'000'000)).message, test::Contains("nested more than 64 deep"));
  std::string list = "[0";
  for (std::size_t i = 2; i < io::max_json_values; ++i) list += ",0";  // with the list itself: the limit
  CHECK(parse_json(list + "]", "a.json").ok());
  CHECK_THAT(only_problem(list + ",0]").message, test::Contains("more than 500000 values"));
  CHECK(parse_json(std::string(io::max_json_bytes - 2, ' ') + "{}", "a.json").ok());
  CHECK_THAT(only_problem(std::string(io::max_json_bytes - 1, ' ') + "{}").message, test::Contains("16 MiB"));
}

TEST_CASE("positions of keys and values") {
  const Result<io::JsonText> result = parse_json(
      "{\n  \"parallel\": { \"tensor\": 8, /* \xC3\xA9 */ \"a~b\": [10,\n 20, ], },\n  \"x\": \"}\"\n}", "a.json");
  REQUIRE(result.ok());
  struct Row {
    const char* pointer;
    io::JsonPosition expected;
  };
  const Row rows[] = {
      {"", {1, 1, 1, 1}},
      {"/parallel", {2, 15, 2, 3}},
      {"/parallel/tensor", {2, 27, 2, 17}},
      {"/parallel/a~0b/1", {3, 2, 3, 2}},
      {"/parallel/missing/deeper", {2, 15, 2, 3}},
      {"/x", {4, 8, 4, 3}},
      {"/none", {1, 1, 1, 1}},
  };
  Diagnostics problems;
  for (const Row& row : rows) {
    CAPTURE(row.pointer);
    const io::JsonPosition found = io::position_of(result.value, row.pointer);
    CHECK(found.line == row.expected.line);
    CHECK(found.column == row.expected.column);
    CHECK(found.key_line == row.expected.key_line);
    CHECK(found.key_column == row.expected.key_column);
    problems.push_back({"a.json", row.pointer, "unknown field", "", 0, 0});
  }
  problems.push_back({"b.json", "/x", "another file", "", 0, 0});
  problems.push_back({"a.json", "/x", "a value", "", 0, 0});
  io::locate(result.value, problems);
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    CHECK(problems[i].line == rows[i].expected.key_line);
    CHECK(problems[i].column == rows[i].expected.key_column);
  }
  CHECK(problems[problems.size() - 2].line == 0);
  CHECK(problems.back().column == 8);
}

TEST_CASE("files that cannot be read say why") {
  CHECK_THAT(io::read_json("/nonexistent/run.json").problems.at(0).message, test::Contains("no such file"));
  CHECK_THAT(io::read_json("/").problems.at(0).message, test::Contains("folder"));
  CHECK_THAT(io::read_json("/dev/zero").problems.at(0).message, test::Contains("16 MiB"));
  CHECK_THAT(io::read_json("/dev/null").problems.at(0).message, test::Contains("empty"));
}
