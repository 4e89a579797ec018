#include "shardplan/report/estimate_text.hpp"

#include <string>
#include <vector>

#include "fixtures.hpp"
#include "page.hpp"
#include "shardplan/report/number.hpp"
#include "shardplan/report/text.hpp"
#include "support/catch.hpp"

using namespace shardplan;
using namespace shardplan::report;
using test::lines_of;
using test::uncolored;

namespace {

std::string line_with(const std::string& text, const std::string& start) {
  for (const std::string& line : lines_of(text)) {
    if (line.rfind(start, 0) == 0) return line;
  }
  return {};
}

std::vector<test::Example> examples() {
  std::vector<test::Example> all = {test::pipeline_of_four(), test::out_of_memory(), test::one_gpu(),
                                    test::sixteen_stages(true), test::sixteen_stages(false)};
  // Where moments differ, something is offloaded, buffers count and names are long.
  test::Example mixed = test::pipeline_of_four();
  StageEstimate& last = mixed.estimate.stages.back();
  last.moments[static_cast<std::size_t>(Moment::optimizer_step)].transient = test::gib(30);
  last.peak_moment = Moment::optimizer_step;
  for (StageEstimate& stage : mixed.estimate.stages) {
    for (MemoryParts& parts : stage.moments) parts.communication_buffers = test::gib(1.234);
  }
  mixed.estimate.host_bytes_per_node = test::gib(1234.5);
  mixed.estimate.nvme_bytes_per_node = test::gib(20000);
  mixed.run.cluster.host.memory_bytes = 2048.0 * 1073741824;
  mixed.run.model.name = std::string(60, 'x');
  mixed.run.training.offload.optimizer = OffloadDevice::cpu;
  mixed.estimate.time.recompute_s = 1.5;
  mixed.estimate.time.offload_s = 0.5;
  mixed.estimate.time.step_s += 2;
  all.push_back(mixed);
  return all;
}

EstimateTextOptions with_actions() {
  EstimateTextOptions options;
  for (int i = 0; i < 5; ++i) {
    options.actions.push_back({"--tp 4 --dp 8", "MFU 52.1%, 28.6 s (-12.0%), peak 56.4 GiB", "TP message halves"});
  }
  options.explain_hints = true;
  return options;
}

}  // namespace

TEST_CASE("no line is wider than the page, none ends in a space") {
  for (const test::Example& example : examples()) {
    for (const bool detail : {false, true}) {
      for (int width = 20; width <= 140; ++width) {
        EstimateTextOptions options = with_actions();
        options.style.width = width;
        options.detail = detail;
        test::check_widths(estimate_text(example.run, example.estimate, options), width);
        options.style.color = true;
        test::check_widths(estimate_text(example.run, example.estimate, options), width);
      }
    }
  }
}

TEST_CASE("a page of 100 columns is one screen") {
  for (const test::Example& example : examples()) {
    CHECK(lines_of(estimate_text(example.run, example.estimate, with_actions())).size() <= 30);
  }
}

TEST_CASE("colour adds nothing to the words") {
  for (const test::Example& example : examples()) {
    EstimateTextOptions options = with_actions();
    const std::string plain = estimate_text(example.run, example.estimate, options);
    CHECK(plain.find('\x1b') == std::string::npos);
    options.style.color = true;
    options.style.ascii = true;
    const std::string colored = estimate_text(example.run, example.estimate, options);
    CHECK(uncolored(colored) == plain);
    for (const char c : colored) REQUIRE(static_cast<unsigned char>(c) < 0x80);
  }
}

TEST_CASE("the first line is the answer, alone with quiet") {
  const test::Example fits = test::pipeline_of_four();
  const std::string answer =
      "FITS  32.5 of 79.65 GiB (stage 0, backward) | 129k tokens/s | MFU 45.9% | bound by TP exchange 26%";
  EstimateTextOptions options;
  CHECK(lines_of(estimate_text(fits.run, fits.estimate, options)).front() == answer);
  CHECK(estimate_headline(fits.run, fits.estimate) == answer);
  options.quiet = true;
  options.style.width = 40;
  CHECK(estimate_text(fits.run, fits.estimate, options) == answer + "\n");

  const test::Example over = test::out_of_memory();
  CHECK(estimate_headline(over.run, over.estimate) ==
        "DOES NOT FIT  needs 87.9 of 79.65 GiB, 8.2 over (stage 0, backward) | activations 74% of 83.8");
  const test::Example one = test::one_gpu();
  CHECK(estimate_headline(one.run, one.estimate) ==
        "FITS  20.5 of 23.99 GiB (loss) | about 2.9k tokens/s | MFU 58% | bound by memory and launches 53%");
  CHECK_THAT(estimate_headline(one.run, one.estimate, Units::gb), test::StartsWith("FITS  22.0 of 25.76 GB"));
}

TEST_CASE("a host that is too small is named, not the card") {
  test::Example example = test::pipeline_of_four();
  example.estimate.fits = false;
  example.estimate.host_bytes_per_node = test::gib(2345);
  example.run.cluster.host.memory_bytes = 2048.0 * 1073741824;
  CHECK(estimate_headline(example.run, example.estimate) ==
        "DOES NOT FIT  host memory needs 2345.0 of 2048.0 GiB a node, 297.0 over | GPU 32.5 of 79.65 GiB");
  example.estimate.host_bytes_per_node = 0;
  example.estimate.nvme_bytes_per_node = test::gib(40000);
  example.run.cluster.host.nvme_bytes = 30720.0 * 1073741824;
  CHECK_THAT(estimate_headline(example.run, example.estimate), test::StartsWith("DOES NOT FIT  NVMe needs 40,000.0"));
}

TEST_CASE("parts sum to totals and rows to the step, as printed") {
  for (const test::Example& example : examples()) {
    for (const bool detail : {false, true}) {
      EstimateTextOptions options;
      options.detail = detail;
      const std::string text = estimate_text(example.run, example.estimate, options);
      test::check_memory_sums(text);
      test::check_time_sums(text);
    }
  }
}

TEST_CASE("equal stages collapse and the peak is marked") {
  const test::Example equal = test::sixteen_stages(true);
  const std::string text = estimate_text(equal.run, equal.estimate, {});
  CHECK_THAT(text, test::Contains("\n *0 "));
  CHECK_THAT(text, test::Contains("\n  1-15 "));
  CHECK_THAT(text, !test::Contains("between"));

  const test::Example different = test::sixteen_stages(false);
  const std::string folded = estimate_text(different.run, different.estimate, {});
  CHECK_THAT(folded, test::Contains("\n *0 "));
  CHECK_THAT(folded, test::Contains("\n  2-13  between: 22.28 to 29.97 GiB (--detail lists them)\n"));
  EstimateTextOptions detail;
  detail.detail = true;
  const std::string all = estimate_text(different.run, different.estimate, detail);
  for (int stage = 1; stage < 16; ++stage) CHECK_THAT(all, test::Contains("\n  " + std::to_string(stage) + " "));
}

TEST_CASE("stages that peak at different moments say so") {
  const test::Example mixed = examples().back();
  CHECK_THAT(estimate_text(mixed.run, mixed.estimate, {}),
             test::Contains("\nstages peak at: 0-2 backward, 3 optimizer step\nhost memory"));
  const test::Example alike = test::pipeline_of_four();
  CHECK_THAT(estimate_text(alike.run, alike.estimate, {}), !test::Contains("peak at:"));
}

TEST_CASE("buffers have a column where they are a hundredth of the stage, else they are transient") {
  const test::Example mixed = examples().back();
  CHECK_THAT(estimate_text(mixed.run, mixed.estimate, {}), test::Contains("  comm  CUDA+NCCL  total"));
  test::Example small = test::pipeline_of_four();
  for (StageEstimate& stage : small.estimate.stages) {
    for (MemoryParts& parts : stage.moments) parts.communication_buffers = test::gib(0.05);
  }
  const std::string text = estimate_text(small.run, small.estimate, {});
  CHECK_THAT(text, !test::Contains("comm"));
  CHECK_THAT(line_with(text, " *0"), test::Contains("  0.20       2.10  32.52  "));
}

TEST_CASE("experts that are sharded apart have an average, no fraction") {
  test::Example example = test::pipeline_of_four();
  example.run.model.kinds[0].mlp.kind = MlpKind::moe;
  example.run.parallel.expert = 4;
  CHECK_THAT(estimate_text(example.run, example.estimate, {}), test::Contains("+ 3 fp32 master, m, v = 9.0"));
}

TEST_CASE("torch.nn.DataParallel has GPU 0 and the others") {
  test::Example example = test::pipeline_of_four();
  example.run.training.framework = Framework::dp;
  example.run.num_gpus = 8;
  example.estimate.stages.resize(2);
  const std::string text = estimate_text(example.run, example.estimate, {});
  CHECK_THAT(text, test::Contains("(GPU 0, backward)"));
  CHECK_THAT(text, test::Contains("\n *0 "));
  CHECK_THAT(text, test::Contains("\n  1-7 "));
}

TEST_CASE("bytes per parameter name what they are") {
  test::Example example = test::pipeline_of_four();
  const auto line = [&] { return line_with(estimate_text(example.run, example.estimate, {}), "bytes per parameter"); };
  CHECK(line() == "bytes per parameter: 2 bf16 + 4 fp32 main grad + 12/4 fp32 master, m, v = 9.0 (vocab padded +768)");
  // Shards of different sizes: the average, not a fraction that is wrong.
  for (StageEstimate& stage : example.estimate.stages) {
    for (MemoryParts& parts : stage.moments) parts.optimizer = parts.optimizer * 10 / 9;
  }
  CHECK_THAT(line(), test::Contains("+ 3.33 fp32 master, m, v = 9.33"));
  example.run.parallel.zero_stage = 0;
  example.run.model.vocab_size = 129024;
  for (StageEstimate& stage : example.estimate.stages) {
    for (MemoryParts& parts : stage.moments) parts.optimizer = 12 * stage.parameters;
  }
  CHECK_THAT(line(), test::Contains("+ 12 fp32 master, m, v = 18.0"));
  CHECK_THAT(line(), !test::Contains("padded"));
}

TEST_CASE("defaults that shape the answer are named") {
  const test::Example example = test::pipeline_of_four();
  EstimateTextOptions options;
  options.defaults = {"/training/loss", "/training/seq_length", "/training/global_batch_size"};
  CHECK_THAT(estimate_text(example.run, example.estimate, options),
             test::Contains("seq 4096 (default), mbs 1, gbs 1024 (default)"));
}

TEST_CASE("what binds a step") {
  test::Example example = test::pipeline_of_four();
  TimeEstimate& time = example.estimate.time;
  const auto headline = [&] { return estimate_headline(example.run, example.estimate); };
  time.bubble_s += 10;
  time.step_s += 10;
  CHECK_THAT(headline(), test::Contains("bound by bubble 27%"));
  time.step_s -= time.bubble_s + time.exposed_by_group_s[0];
  time.communication_exposed_s -= time.exposed_by_group_s[0];
  time.bubble_s = 0;
  time.exposed_by_group_s[0] = 0;
  CHECK_THAT(headline(), test::Contains("bound by compute 99%"));
  time.gemm_s = 5;
  time.other_compute_s = time.compute_s - time.gemm_s - time.attention_s;
  CHECK_THAT(headline(), test::Contains("bound by memory and launches 66%"));
}

TEST_CASE("at most three actions, none without") {
  const test::Example example = test::pipeline_of_four();
  const std::string text = estimate_text(example.run, example.estimate, with_actions());
  std::size_t count = 0;
  for (std::size_t at = text.find("--tp 4"); at != std::string::npos; at = text.find("--tp 4", at + 1)) ++count;
  CHECK(count == 3);
  CHECK_THAT(text, test::Contains("\nNext  --tp 4"));
  CHECK_THAT(estimate_text(example.run, example.estimate, {}), !test::Contains("Next"));
  const test::Example over = test::out_of_memory();
  CHECK_THAT(estimate_text(over.run, over.estimate, with_actions()), test::Contains("\nFix   --tp 4"));
}

TEST_CASE("what is offloaded is shown beside what the node has") {
  const test::Example mixed = examples().back();
  CHECK_THAT(estimate_text(mixed.run, mixed.estimate, {}),
             test::Contains("host memory 1234.50 of 2048.00 GiB a node | NVMe 20,000.00 GiB a node"));
}
