#include <string>

#include "shardplan/io/suggest.hpp"
#include "support/catch.hpp"

using namespace shardplan::io;

TEST_CASE("edits between words") {
  struct Row {
    const char* from;
    const char* to;
    std::size_t distance;
  };
  const Row rows[] = {{"", "", 0},
                      {"", "abc", 3},
                      {"tensor", "tensor", 0},
                      {"tenosr", "tensor", 1},  // neighbours swapped
                      {"tenso", "tensor", 1},
                      {"tensors", "tensor", 1},
                      {"Micro-Batch Size", "micro_batch_size", 0},
                      {"kitten", "sitting", 3}};
  for (const Row& row : rows) {
    CAPTURE(row.from, row.to);
    CHECK(edit_distance(row.from, row.to) == row.distance);
    CHECK(edit_distance(row.to, row.from) == row.distance);
  }
}

TEST_CASE("the nearest word, or none") {
  const std::vector<std::string_view> words = {"tensor", "pipeline", "data", "dgx-h100", "dgx-a100"};
  CHECK(closest("tenosr", words) == "tensor");
  CHECK(closest("Pipe_line", words) == "pipeline");
  CHECK(closest("dgx-h1000", words) == "dgx-h100");
  CHECK(closest("learning_rate", words).empty());
  CHECK(closest("", words).empty());
  CHECK(closest("x", {}).empty());
  CHECK(closest(std::string(100'000, 'x'), words).empty());
  CHECK(did_you_mean("dta", words) == "; did you mean \"data\"?");
  CHECK(did_you_mean("zzz", words).empty());
}

TEST_CASE("the nearest words, near or not") {
  const std::vector<std::string_view> words = {"tensor", "pipeline", "data"};
  CHECK(nearest("date", words, 2) == std::vector<std::string_view>{"data", "tensor"});
  CHECK(nearest("xyzzy", words, 9).size() == 3);
  CHECK(nearest("", {}, 3).empty());
}

TEST_CASE("the fields that there are") {
  CHECK(fields_here({}).empty());
  CHECK(fields_here({"$schema", "a"}) == "the field here is a");
  CHECK(fields_here({"a", "b", "a", "c"}) == "the fields here are a, b and c");
  std::vector<std::string> many;
  for (int i = 0; i < 50; ++i) many.push_back("f" + std::to_string(i));
  const std::string text = fields_here({many.begin(), many.end()});
  CHECK(text.substr(text.size() - 12) == " and 10 more");
}

TEST_CASE("lists of words") {
  CHECK(list_of({}).empty());
  CHECK(list_of({"a"}) == "a");
  CHECK(list_of({"a", "b"}) == "a or b");
  CHECK(list_of({"a", "b", "c"}, "and") == "a, b and c");
}
