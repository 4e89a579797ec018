#include "shardplan/report/bar.hpp"

#include <array>
#include <string>

#include "support/catch.hpp"

using namespace shardplan::report;

namespace {

const std::array<BarPart, 6> run_a = {{{4.23, 'P', Role::parameters},
                                       {8.46, 'G', Role::gradients},
                                       {6.35, 'O', Role::optimizer},
                                       {11.18, 'A', Role::activations},
                                       {0.15, 'T', Role::transient},
                                       {2.10, 'F', Role::framework}}};

}  // namespace

TEST_CASE("letters stand where their part stands on the scale") {
  // One letter is 4.98 GiB; the ends 4.23, 12.69, 19.04, 30.22, 30.37, 32.47 round to 1, 3, 4, 6, 6, 7 cells.
  CHECK(stacked_bar(run_a, 79.65, 16, {}).render({}) == "PGGOAAF.........");
  CHECK(stacked_bar(run_a, 0, 16, {}).empty());
  CHECK(stacked_bar(run_a, 79.65, 0, {}).empty());
}

TEST_CASE("a bar that passes the card ends in >") {
  std::array<BarPart, 6> over = run_a;
  over[3].value = 62.34;
  const Text bar = stacked_bar(over, 79.65, 16, {});
  CHECK(bar.render({}) == "PGGOAAAAAAAAAAA>");
  CHECK(stacked_bar(run_a, 32.47, 10, {}).render({}) == "PGGGOOAAAF");
}

TEST_CASE("colour draws blocks, the last end in eighths, and has the same width") {
  Style style;
  style.color = true;
  const Text bar = stacked_bar(run_a, 79.65, 16, style);
  // The end is at 6.52 cells: half a block.
  CHECK(bar.render(style) ==
        "\x1b[34m█\x1b[0m\x1b[36m██\x1b[0m\x1b[35m█\x1b[0m\x1b[33m██\x1b[0m\x1b[90m▌\x1b[0m\x1b[2m·········\x1b[0m");
  CHECK(bar.width() == 16);
  style.ascii = true;
  CHECK(stacked_bar(run_a, 79.65, 16, style).plain() == "PGGOAAF.........");
}

TEST_CASE("every bar has its width") {
  for (const bool color : {false, true}) {
    Style style;
    style.color = color;
    for (std::size_t cells = 1; cells < 50; ++cells) {
      for (double capacity = 1; capacity < 400; capacity *= 1.07) {
        CAPTURE(cells, capacity, color);
        REQUIRE(stacked_bar(run_a, capacity, cells, style).width() == cells);
      }
    }
  }
}

TEST_CASE("one quantity") {
  CHECK(share_bar(0.69, 40, {}).plain() == std::string(28, '#'));
  CHECK(share_bar(0.004, 40, {}).empty());
  Style style;
  style.color = true;
  CHECK(share_bar(0.25, 10, style).plain() == "██▌");
}
