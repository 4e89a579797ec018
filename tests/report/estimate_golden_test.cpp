// Whole pages against tests/report/golden/. scripts/regenerate.sh writes them anew: look at the difference.
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "fixtures.hpp"
#include "shardplan/report/estimate_text.hpp"
#include "support/catch.hpp"

using namespace shardplan::report;

namespace {

std::string golden(const std::string& file, const std::string& actual) {
  const std::string path = std::string(SHARDPLAN_SOURCE_DIR) + "/tests/report/golden/" + file;
  if (std::getenv("SHARDPLAN_UPDATE") != nullptr) std::ofstream(path, std::ios::binary) << actual;
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in.good());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

EstimateTextOptions with_actions(bool fits) {
  EstimateTextOptions options;
  if (fits) {
    options.actions = {{"--tp 4 --dp 8", "MFU 52.1%, 28.6 s (-12.0%), peak 56.4 GiB", "TP message per FLOP halves"},
                       {"--mbs 2", "MFU 47.2%, 31.5 s (-2.9%), peak 43.8 GiB", ""}};
  } else {
    options.actions = {{"--attention flash", "frees 40.0 GiB  step 31.5 s (-23%)", "no s x s scores"},
                       {"--recompute full", "frees 60.3 GiB  step 54.9 s (+34%)", "more than is needed"}};
  }
  return options;
}

}  // namespace

TEST_CASE("pages") {
  struct Page {
    std::string file;
    test::Example example;
    EstimateTextOptions options;
  };
  std::vector<Page> pages = {
      {"pipeline.txt", test::pipeline_of_four(), with_actions(true)},
      {"pipeline_detail.txt", test::pipeline_of_four(), {}},
      {"pipeline_60.txt", test::pipeline_of_four(), with_actions(true)},
      {"pipeline_30.txt", test::pipeline_of_four(), with_actions(true)},
      {"pipeline_color.txt", test::pipeline_of_four(), with_actions(true)},
      {"pipeline_color_ascii.txt", test::pipeline_of_four(), with_actions(true)},
      {"pipeline_gb.txt", test::pipeline_of_four(), {}},
      {"out_of_memory.txt", test::out_of_memory(), with_actions(false)},
      {"one_gpu.txt", test::one_gpu(), {}},
      {"sixteen_equal.txt", test::sixteen_stages(true), {}},
      {"sixteen_different.txt", test::sixteen_stages(false), {}},
  };
  pages[1].options.detail = true;
  pages[2].options.style.width = 60;
  pages[3].options.style.width = 30;
  pages[4].options.style.color = true;
  pages[5].options.style.color = true;
  pages[5].options.style.ascii = true;
  pages[6].options.style.units = Units::gb;
  pages[8].options.defaults = {"/training/seq_length", "/training/global_batch_size", "/training/loss"};
  for (const Page& page : pages) {
    CAPTURE(page.file);
    const std::string text = estimate_text(page.example.run, page.example.estimate, page.options);
    CHECK(text == golden(page.file, text));
  }
}

TEST_CASE("files for other programs") {
  const test::Example run = test::pipeline_of_four();
  const test::Example over = test::out_of_memory();
  const std::string csv = estimate_csv(run.run, run.estimate);
  CHECK(csv == golden("pipeline.csv", csv));
  EstimateTextOptions options = with_actions(false);
  options.detail = true;
  const std::string markdown = estimate_markdown(over.run, over.estimate, options);
  CHECK(markdown == golden("out_of_memory.md", markdown));
}
