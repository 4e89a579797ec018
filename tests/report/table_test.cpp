#include "shardplan/report/table.hpp"

#include <string>

#include "support/catch.hpp"

using namespace shardplan::report;

namespace {

Table example() {
  Table table({{"name", Align::left, "", 0, "", 0},
               {"memory", Align::right, "GiB", 0, "memory_gib", 0},
               {"link", Align::right, "GB/s", 1, "", 0},
               {"source", Align::left, "", 2, "", 0}});
  table.add({"A100-SXM-80GB", "79.15", "300", "datasheet, page 2"});
  table.add({"RTX-4090", "12,345.67", "-"});
  return table;
}

}  // namespace

TEST_CASE("columns align, heads carry units, no line ends in a space") {
  CHECK(example().text({}) ==
        "name           memory GiB  link GB/s  source\n"
        "A100-SXM-80GB       79.15        300  datasheet, page 2\n"
        "RTX-4090        12,345.67          -\n");
}

TEST_CASE("a narrow page folds columns, then rows become records") {
  CHECK(render(example().lines(40), {}) ==
        "name           memory GiB  link GB/s\n"
        "A100-SXM-80GB       79.15        300\n"
        "RTX-4090        12,345.67          -\n");
  CHECK(render(example().lines(30), {}) ==
        "name           memory GiB\n"
        "A100-SXM-80GB       79.15\n"
        "RTX-4090        12,345.67\n");
  CHECK(render(example().lines(20), {}) ==
        "name: A100-SXM-80GB\n"
        "memory GiB: 79.15\n"
        "\n"
        "name: RTX-4090\n"
        "memory GiB:\n"
        "  12,345.67\n");
}

TEST_CASE("lines are never wider than the page") {
  Table table = example();
  table.add_note(Text("a note that is longer than any of the pages that are tried here, so that it has to wrap"));
  for (int width = 1; width <= 120; ++width) {
    for (const Text& line : table.lines(width)) {
      CAPTURE(width, line.plain());
      REQUIRE(line.width() <= static_cast<std::size_t>(width));
    }
  }
}

TEST_CASE("remarks in the last column go on below") {
  Table table({{"field"}, {"value", Align::right}, {"remark", Align::left, "", 0, "", 0, 10}});
  table.add({"peak", "59.8", "the parameters and their gradients"});
  table.add({"step", "30.4"});
  CHECK(render(table.lines(30), {}) ==
        "field  value  remark\n"
        "peak    59.8  the parameters\n"
        "               and their\n"
        "               gradients\n"
        "step    30.4\n");
  CHECK(render(table.lines(48), {})
            .rfind("field  value  remark\npeak    59.8  the parameters and their gradients\n", 0) == 0);
  CHECK(render(table.lines(20), {}).rfind("field: peak\n", 0) == 0);
  for (int width = 1; width <= 60; ++width) {
    for (const Text& line : table.lines(width)) CHECK(line.width() <= static_cast<std::size_t>(width));
  }
}

TEST_CASE("markdown escapes what would be markup") {
  Table table({{"a|b", Align::left, "", 0, "", 0}, {"n", Align::right, "", 0, "", 0}});
  table.add({"x|y <b> `c`\n", "1"});
  CHECK(table.markdown() ==
        "| a\\|b | n |\n"
        "| --- | ---: |\n"
        "| x\\|y \\<b> \\`c\\`? | 1 |\n");
}

TEST_CASE("CSV quotes fields and leaves numbers to programs") {
  CHECK(example().csv() ==
        "name,memory_gib,link_GB_s,source\n"
        "A100-SXM-80GB,79.15,300,\"datasheet, page 2\"\n"
        "RTX-4090,12345.67,-,\n");
  CHECK(csv_field("a\"b") == "\"a\"\"b\"");
}
