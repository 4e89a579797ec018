#include "shardplan/report/text.hpp"

#include <string>

#include "support/catch.hpp"

using namespace shardplan::report;

TEST_CASE("colour is an escape around each role, and nothing without colour") {
  const Text text = Text("FITS", Role::good) + Text("  ") + Text("32.5", Role::heading) + Text(" of 79.65 GiB");
  Style plain;
  Style colored;
  colored.color = true;
  CHECK(text.render(plain) == "FITS  32.5 of 79.65 GiB");
  CHECK(text.render(colored) == "\x1b[1;32mFITS\x1b[0m  \x1b[1m32.5\x1b[0m of 79.65 GiB");
  CHECK(text.width() == 23);
}

TEST_CASE("a name from a file cannot steer the terminal or break a line") {
  const Text text(std::string("a\x1b[31mb\nc\td\x7f\xc2\x9b") + "e\u2588");
  CHECK(text.render({}) == "a?[31mb?c?d??e\u2588");
  Style ascii;
  ascii.ascii = true;
  CHECK(text.render(ascii) == "a?[31mb?c?d??e?");
  CHECK(Text(std::string("\x80\xff")).render({}).find('\x80') == std::string::npos);
}

TEST_CASE("lines end where their text ends") {
  CHECK(Text("a   ").render({}) == "a");
  CHECK((Text("a") + Text("  ", Role::dim)).render({100, true, false, Units::gib}) == "a");
  CHECK(Text("   ").render({}).empty());
  CHECK(pad_left(Text("x"), 3).plain() == "  x");
  CHECK(pad_right(Text("wider"), 3).plain() == "wider");
}

TEST_CASE("characters are counted, not bytes") {
  CHECK(display_width("\u2588\u258f") == 2);
  CHECK(Text(std::string("\u2588\u258fx")).slice(1, 3).plain() == "\u258fx");
  const Text two = Text("ab", Role::good) + Text("cd", Role::bad);
  CHECK(two.slice(1, 3).plain() == "bc");
  CHECK(two.slice(1, 3).spans().size() == 2);
}

TEST_CASE("wrapping breaks at spaces, indents what follows and loses no word") {
  const std::vector<Text> lines = wrap(Text("one two three four five"), 9, 2);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].plain() == "one two");
  CHECK(lines[1].plain() == "  three");
  CHECK(lines[2].plain() == "  four");
  CHECK(lines[3].plain() == "  five");
  const std::vector<Text> cut = wrap(Text("abcdefghij kl"), 4, 1);
  std::string all;
  for (const Text& line : cut) {
    CHECK(line.width() <= 4);
    for (const char c : line.plain()) {
      if (c != ' ') all += c;
    }
  }
  CHECK(all == "abcdefghijkl");
  CHECK(wrap(Text(""), 10, 0).size() == 1);
  // An indent as wide as the page is none.
  CHECK(wrap(Text("aa bb"), 2, 5).size() == 2);
}

TEST_CASE("parts join while they fit and start a line where they do not") {
  const std::vector<Text> lines = join_wrapped({Text("aaaa"), Text("bbbb"), Text(""), Text("cccc dddd eeee")}, 12, 2);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].plain() == "aaaa | bbbb");
  CHECK(lines[1].plain() == "  cccc dddd");
  CHECK(lines[2].plain() == "    eeee");
}
