// The pages of real runs: every file of configs/runs, and small and odd ones beside them.
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "page.hpp"
#include "shardplan/plan/estimate.hpp"
#include "shardplan/report/estimate_text.hpp"
#include "support/catch.hpp"
#include "support/estimated.hpp"

using namespace shardplan;
using namespace shardplan::report;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void check_pages(const std::string& name, const Run& run) {
  CAPTURE(name);
  Estimate result;
  estimate(run, result);
  const EstimateDetail operators = estimate_detail(run);
  for (const bool detail : {false, true}) {
    for (const int width : {100, 80, 60, 30}) {
      EstimateTextOptions options;
      options.style.width = width;
      options.detail = detail;
      options.operators = &operators;
      options.actions.assign(3, {"--tp 4 --dp 8", "MFU 52.1%, 28.6 s (-12.0%), peak 56.4 GiB", "TP message halves"});
      const std::string text = estimate_text(run, result, options);
      test::check_widths(text, width);
      if (width >= 60) test::check_time_sums(text);
      if (width >= 80) test::check_memory_sums(text);
      if (width >= 80 && detail) test::check_communication_sums(text);
      if (width == 100 && !detail) {
        CAPTURE(text);
        CHECK(test::lines_of(text).size() <= 30);
        // The answer stands whole on the first line.
        CHECK(test::lines_of(text).front().rfind(result.fits ? "FITS  " : "DOES NOT FIT  ", 0) == 0);
        CHECK(test::lines_of(text).front().find(result.fits ? " tokens/s | MFU " : " over") != std::string::npos);
      }
    }
  }
}

}  // namespace

TEST_CASE("pages of the example runs") {
  const std::vector<std::string> files = test::run_files();
  REQUIRE(files.size() >= 12);
  for (const std::string& path : files) {
    const io::ReadRun read = test::read_run(text_of(path));
    CAPTURE(path, test::problems_of(read));
    REQUIRE(read.ok());
    check_pages(path, read.run);
  }
}

TEST_CASE("pages of small and odd runs") {
  const std::vector<std::string> runs = {
      R"({"model":"gpt2","cluster":"dgx-h100","num_gpus":1})",
      R"({"model":"llama-3.1-8b","cluster":"dgx-h100","num_gpus":8,"training":{"framework":"dp"}})",
      R"({"model":"llama-3.1-8b","cluster":"dgx-h100","num_gpus":8,"parallel":{"zero_stage":3},
          "training":{"offload":{"optimizer":"nvme","parameters":"cpu"}}})",
      R"({"model":"llama-3.1-8b","cluster":{"gpu":"RTX-4090","gpus_per_node":1},"num_gpus":1,"training":
          {"seq_length":2048,"stack":"hf-4.45","peft":{"method":"qlora","targets":"all-linear","quant":"nf4"}}})",
      R"({"model":"mixtral-8x7b","cluster":"dgx-a100-80gb","num_gpus":64,"parallel":{"tensor":2,"pipeline":4,
          "expert":8,"context":2},"training":{"framework":"megatron","recompute":"full"}})",
      R"({"model":"llama-3.1-70b","cluster":"dgx-h100","num_gpus":16,"training":{"framework":"textbook"}})",
  };
  for (const std::string& json : runs) {
    const io::ReadRun read = test::read_run(json);
    CAPTURE(json, test::problems_of(read));
    REQUIRE(read.ok());
    check_pages(json, read.run);
  }
}
