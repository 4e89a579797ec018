// Cards: each topic's number against a hand-derived one, its formula evaluated, its text complete; the topics cover
// the sections and questions that people prepare for.
#include "shardplan/explain/topics.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "explain/evaluate.hpp"
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/run_file.hpp"
#include "support/catch.hpp"
#include "support/estimated.hpp"
#include "support/process.hpp"

using namespace shardplan;

namespace {

const std::string example = std::string(SHARDPLAN_SOURCE_DIR) + "/configs/runs/llama-3.1-70b-128xh100.json";

nlohmann::json card(const std::vector<std::string>& words) {
  std::vector<std::string> arguments = {SHARDPLAN_BINARY, "explain"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  arguments.emplace_back("--json");
  const test::ProcessResult ran = test::run_process(arguments, {}, SHARDPLAN_SOURCE_DIR);
  INFO(ran.err);
  REQUIRE(ran.status == 0);
  return nlohmann::json::parse(ran.out);
}

struct Expected {
  std::vector<std::string> words;
  double value;
  double tolerance;  ///< relative; 0: exact
};

// Each value by hand, from the card's formula or the published number that it restates.
const std::vector<Expected> expected = {
    {{"model-states"}, 112e9, 0},                                  // 7e9 x 16
    {{"model-states", "--let", "P=6738415616"}, 107814649856, 0},  // LLaMA-7B
    {{"activations"}, 150081536, 0},                               // 512 x 293,128
    {{"checkpointing"}, 671088640, 0},                             // 20 x 4 x 8 MiB
    {{"logits"}, 3152035840, 0},  // 2048 x (12 x 128,256 + 8)
    {{"transients"}, 606076928, 0},  // 2 B x 4096 x 16,128 + 2 x 64 + 8 MiB, + 2 B x 16,128 x 8192, + 64 MiB
    {{"reserved"}, 34271251661 + 2254857830.4, 1e-9},
    {{"ddp"}, 49e9, 0},                               // 2 x 7/8 x 28e9
    {{"ring-allreduce"}, 1.5 * 4 * 2271543296.0, 0},  // 13.63 GB
    {{"bucketing"}, 1069, 0},                         // 28e9 / 26,214,400 = 1068.1
    {{"zero"}, 20443889664, 0},                       // 2,271,543,296 x 9
    {{"zero", "--let", "N=8"}, 2271543296 * 7.5, 0},
    {{"zero-traffic"}, 294e9, 1e-15},  // 8 x 7/8 x 6 x 7e9
    {{"zeropp"}, 0.75 * 63 / 64 * 14e9, 1e-15},
    {{"offload"}, 2.86 / (6 * 13e9 * 8192 / (312e12 * 0.45) + 2.86), 1e-12},
    {{"offload", "--let", "T=2048"}, 0.7155, 1e-3},   // 72%
    {{"offload", "--let", "T=65536"}, 0.0729, 1e-3},  // 7%
    {{"infinity"}, 960, 0},                           // 24e12 / 25e9
    {{"ddp-or-zero"}, (84943715696.0 - 20e9) / 16, 1e-15},
    {{"fsdp"}, 16060522496, 0},  // 8,030,261,248 x 16/8 = 14.96 GiB
    {{"hsdp"}, 2 * 15.0 / 16 * 4 * 8030261248 / 8, 1e-15},
    {{"fsdp-or-zero3"}, 4.1e9, 0},
    {{"tensor-parallel"}, 448.0 * 1048576, 0},
    {{"column-parallel"}, 10, 0},
    {{"sequence-parallel"}, (8.0 * 4096 * 8192 + 8 * 4096) * 7 / 8, 0},
    {{"context-parallel"}, 12.0 * 7 * 16384 * 1024, 0},
    {{"expert-parallel"}, 4.0 * 7 / 8 * 4096 * 2 * 4096 * 2, 0},
    {{"pipeline"}, 0.75, 0},
    {{"bubble"}, 3.0 / 259, 1e-15},
    {{"bubble", "--let", "m=16"}, 3.0 / 19, 1e-15},  // 4p: 15.8%
    {{"bubble", "--let", "m=57"}, 0.05, 1e-15},      // 19 (p - 1): 5% exactly
    {{"bubble", "--let", "m=80"}, 3.0 / 83, 1e-15},  // 20p: 3.6%
    {{"bubble", "--let", "v=5"}, 3.0 / 1283, 1e-15},
    {{"1f1b"}, 4, 0},
    {{"interleaved"}, 3.0 / 1283, 1e-15},
    {{"zero-bubble"}, 1.0 / 9, 1e-15},  // 3/27
    {{"dualpipe"}, 6, 0},
    {{"3d"}, 128, 0},
    {{"rank-order"}, 51, 0},
    {{"lora"}, 41943040, 0},
    {{"lora", "--let", "r=64"}, 167772160, 0},
    {{"lora", "--let", "lora-rank=64"}, 167772160, 0},
    {{"qlora"}, 4 + 8.0 / 64 + 32.0 / 16384, 1e-15},  // 4.127
    {{"dora"}, 135168, 0},
    {{"rslora"}, 8, 0},
    {{"nf4"}, 16, 0},
    {{"double-quantisation"}, 0.373046875, 0},
    {{"paged-optimizers"}, 335544320, 0},
    {{"lora-or-full"}, 128484179968.0 / (16060522496.0 + 671088640.0), 1e-12},
    {{"flash-attention"}, 2.0 * 8 * 4096 * 4096 * 128 * 128 / 116224, 1e-12},  // 37.8 MB
    {{"flash-versions"}, 0.73 * 312e12, 1e-15},
    {{"online-softmax"}, 1.5032147244080551, 1e-15},  // e^-2 + e^-1 + 1
    {{"bf16"}, 3.3895313892515355e38, 1e-15},
    {{"bf16", "--let", "E=5", "--let", "F=10"}, 65504, 0},
    {{"loss-scaling"}, 9.094947017729282e-13, 1e-15},  // 2^-40
    {{"grad-accum"}, 1024, 0},
    {{"grad-clipping"}, 0.3125, 0},
    {{"loss-spike"}, 50, 0},
    {{"mfu", "--let", "rate=380", "--let", "FLOP=391713964032", "--let", "peak=312e12"}, 0.4771, 1e-3},  // LLaMA-65B
    {{"throughput", "--let", "step=32"}, 131072, 0},
    {{"peak-flops"}, 989.4e12, 1e-4},
    {{"gpu-count"}, 14, 0},
};

}  // namespace

TEST_CASE("each topic's number is the one that a hand derives") {
  std::set<std::string> seen;
  for (const Expected& row : expected) {
    const nlohmann::json json = card(row.words);
    const double value = json["value"].get<double>();
    CAPTURE(row.words, value, row.value);
    CHECK(std::fabs(value - row.value) <= row.tolerance * std::fabs(row.value));
    seen.insert(row.words.front());
  }
  for (const explain::Topic& topic : explain::topics()) {
    CAPTURE(topic.name);
    CHECK(seen.count(std::string(topic.name)) == 1);
  }
}

TEST_CASE("flag --let takes the flags of the run as well") {
  const nlohmann::json json = card({"bubble", "--let", "pp=8"});
  // PP8 leaves DP2: 1024 sequences are 512 microbatches.
  CHECK(json["value"].get<double>() == 7.0 / 519);
}

TEST_CASE("every card has formula, symbols, source and the common mistake, and its formula gives its value") {
  test::Evaluator evaluate;
  for (const explain::Topic& topic : explain::topics()) {
    CAPTURE(topic.name);
    const nlohmann::json json = card({std::string(topic.name)});
    CHECK(json["schema"] == "shardplan/explain/v1");
    CHECK(json["topic"] == std::string(topic.name));
    for (const char* const field : {"formula", "substitution", "beware", "try", "title"}) {
      CAPTURE(field);
      CHECK(json[field].get<std::string>().size() > 2);
    }
    CHECK_FALSE(json["sources"].empty());
    CHECK_FALSE(json["symbols"].empty());
    explain::Explanation explanation;
    explanation.formula = json["formula"];
    for (const nlohmann::json& symbol : json["symbols"]) {
      CHECK_FALSE(symbol["meaning"].get<std::string>().empty());
      explanation.symbols.push_back({symbol["symbol"], "", symbol["value"].get<double>(), "", ""});
    }
    const double value = json["value"].get<double>();
    CHECK(test::agrees(evaluate(explanation), value));
    CHECK(test::agrees(evaluate.numbers(json["substitution"]), value));
  }
}

TEST_CASE("cards of any run are finite, and their formulas give their values") {
  test::Evaluator evaluate;
  for (const std::string& file : test::run_files()) {
    const io::ReadRun read = test::read_run(test::read_file(file));
    REQUIRE(read.ok());
    explain::TopicInput input;
    input.run = &read.run;
    input.stated = true;
    for (const explain::Topic& topic : explain::topics()) {
      CAPTURE(file, topic.name);
      const explain::Explanation card = explain::explain_topic(topic, input);
      CHECK(std::isfinite(card.value));
      CHECK(test::agrees(evaluate(card), card.value));
      CHECK_FALSE(card.sources.empty());
    }
  }
}

TEST_CASE("every command that a card says to try is legal") {
  std::set<std::string> tried;
  const std::string run = std::string(SHARDPLAN_SOURCE_DIR) + "/configs/runs/llama-3.1-70b-128xh100.json";
  for (const explain::Topic& topic : explain::topics()) {
    const std::string next = card({std::string(topic.name)})["try"];
    if (!tried.insert(next).second) continue;
    std::istringstream in(next);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word == "RUN.json" ? run : word);
    REQUIRE(words.front() == "shardplan");
    words.front() = SHARDPLAN_BINARY;
    const test::ProcessResult ran = test::run_process(words, {}, SHARDPLAN_SOURCE_DIR);
    CAPTURE(topic.name, next, ran.err);
    CHECK((ran.status == 0 || ran.status == 1));
  }
}

TEST_CASE("cards keep to the page") {
  for (const int width : {100, 60}) {
    const test::ProcessResult ran = test::run_process({SHARDPLAN_BINARY, "explain", "--all", "--ascii"}, {}, {},
                                                      {"COLUMNS=" + std::to_string(width)});
    CHECK(ran.status == 0);
    std::istringstream in(ran.out);
    for (std::string line; std::getline(in, line);) {
      CAPTURE(line);
      CHECK(line.size() <= static_cast<std::size_t>(width));
    }
  }
}
