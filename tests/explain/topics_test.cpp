// Cards: each topic's number against a hand-derived one, its formula evaluated, its text complete; the topics cover
// the sections and questions that people prepare for.
#include "shardplan/explain/topics.hpp"

#include <fmt/format.h>

#include <algorithm>
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
    {{"logits"}, 3152035840, 0},                                   // 2048 x (12 x 128,256 + 8)
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

namespace {

/// A card of a run, with values for its symbols.
double card_value(const Run& run, std::string_view topic, std::vector<std::pair<std::string, double>> values = {}) {
  explain::TopicInput input;
  input.run = &run;
  input.stated = true;
  input.values = std::move(values);
  std::vector<std::string> unused;
  const double value = explain::explain_topic(*explain::find_topic(topic), input, &unused).value;
  CAPTURE(topic, unused);
  CHECK(unused.empty());
  return value;
}

bool same(double left, double right, double tolerance = 1e-9) {
  return std::fabs(left - right) <= tolerance * std::fabs(right);
}

struct Estimated {
  Run run;
  Estimate estimate;
  EstimateWorkspace workspace;
  std::unique_ptr<explain::Terms> terms;

  explicit Estimated(Run of) : run(std::move(of)) {
    shardplan::estimate(run, workspace, estimate);
    terms = explain::terms_of(run, workspace, estimate);
  }
  double term(const std::string& address) const {
    const explain::Term* const found = terms->find(address);
    return found == nullptr ? -1 : found->value;
  }
  double before_offload(const std::string& state) const {
    const double before = term("states." + state + ".before_offload@0");
    return before >= 0 ? before : std::max(0.0, term("states." + state + "@0"));
  }
};

double sent(const Estimate& estimate, std::string_view prefix) {
  double sum = 0;
  for (const CommunicationCall& call : estimate.communication) {
    if (call.name.substr(0, prefix.size()) == prefix) sum += static_cast<double>(call.sent_bytes_per_step);
  }
  return sum;
}

Run deepspeed_run(const std::string& parallel) {
  const io::ReadRun read = test::read_run(
      R"({"model": "llama-3.1-8b", "cluster": "dgx-h100", "num_gpus": 64, "parallel": {)" + parallel +
      R"(}, "training": {"framework": "deepspeed", "seq_length": 4096, "micro_batch_size": 1, "global_batch_size": 512}})");
  INFO(parallel << (read.ok() ? "" : read.problems.front().message));
  REQUIRE(read.ok());
  return read.run;
}

}  // namespace

TEST_CASE("cards of a run state what its estimate does") {
  std::set<std::string> seen;
  for (const std::string& file : test::run_files()) {
    const io::ReadRun read = test::read_run(test::read_file(file));
    REQUIRE(read.ok());
    const Estimated of(read.run);
    const Run& run = of.run;
    const Estimate& e = of.estimate;
    const Parallel& parallel = run.parallel;
    CAPTURE(file);
    CHECK(same(card_value(run, "throughput"), e.throughput.tokens_per_s));
    CHECK(same(card_value(run, "mfu"), e.throughput.mfu));
    CHECK(same(card_value(run, "3d"), run.num_gpus));
    CHECK(same(card_value(run, "grad-accum"), static_cast<double>(run.training.global_batch_size)));
    const StageEstimate& binding = e.stages[static_cast<std::size_t>(e.binding_stage)];
    CHECK(same(card_value(run, "reserved"), static_cast<double>(binding.reserved_bytes + binding.peak().framework)));
    const double kept = of.term("layers.dense.kept");
    CHECK(same(card_value(run, "activations"), kept >= 0 ? kept : of.term("layers.moe.kept")));
    const double loss = of.term("memory.transient.logits_and_loss");
    CHECK((loss < 0 ? card_value(run, "logits") == 0 : same(card_value(run, "logits"), loss)));
    // Shards are whole elements, unit by unit.
    const double states =
        of.before_offload("parameters") + of.before_offload("gradients") + of.before_offload("optimizer");
    const double zero = card_value(run, "zero");
    CAPTURE(zero, states);
    CHECK(same(zero, states, 1e-5));
    if (run.training.peft.active()) {
      seen.insert("adapters");
      CHECK(same(card_value(run, "lora"), static_cast<double>(e.model.trainable_parameters)));
    }
    if (parallel.pipeline > 1) {
      const bool plain = parallel.schedule == ScheduleKind::one_f_one_b;
      if (plain || parallel.schedule == ScheduleKind::interleaved) {
        seen.insert("pipeline");
        CHECK(same(card_value(run, "bubble"), e.pipeline.ideal_bubble_fraction));
      }
      if (plain) CHECK(card_value(run, "1f1b") == static_cast<double>(e.stages.front().in_flight_microbatches));
    }
    if (parallel.tensor > 1 && !parallel.sequence_parallel && of.term("layers.dense.tp_all_reduce.sent") > 0) {
      seen.insert("tensor");
      CHECK(same(card_value(run, "tensor-parallel"), of.term("layers.dense.tp_all_reduce.sent")));
    }
    if (parallel.sequence_parallel && of.term("layers.dense.saved") > 0 && !run.training.peft.active() &&
        run.model.layer(run.model.layers() - 1).mlp.kind == MlpKind::dense) {
      seen.insert("sequence");
      Run without = run;
      without.parallel.sequence_parallel = false;
      CHECK(same(card_value(run, "sequence-parallel"),
                 Estimated(without).term("layers.dense.saved") - of.term("layers.dense.saved")));
    }
    if (parallel.expert > 1 && !run.training.capacity_factor) {
      const double tokens = static_cast<double>(run.training.seq_length * run.training.micro_batch_size) /
                            parallel.context / (parallel.sequence_parallel ? parallel.tensor : 1);
      const LayerKind& kind = run.model.layer(run.model.layers() - 1);
      seen.insert("experts");
      CHECK(same(card_value(run, "expert-parallel",
                            {{"T", tokens},
                             {"k", static_cast<double>(kind.mlp.top_k)},
                             {"h", static_cast<double>(run.model.hidden_size)},
                             {"e", parallel.expert}}),
                 of.term("layers.moe.ep_all_to_all.sent")));
    }
  }
  CAPTURE(seen);
  CHECK(seen.size() == 5);
}

TEST_CASE("cards of traffic state what the estimate counts") {
  const double m = 8, N = 64;
  for (const int stage : {1, 2, 3}) {  // 0 reduces fp32 gradients under bf16
    const Estimated of(deepspeed_run(fmt::format("\"zero_stage\": {}", stage)));
    const double P = of.workspace.stages.front().weights.dense.trained;
    const double share = (N - 1) / N, width = 2;
    const double by_card = stage == 3   ? card_value(of.run, "zero-traffic")
                           : stage == 2 ? share * P * (m * width + width)
                                        : 2 * share * P * width;  // the lines of stages 1 and 2
    CAPTURE(stage, by_card);
    CHECK(same(by_card, sent(of.estimate, "grad_") + sent(of.estimate, "param_"), 1e-6));
  }
  const Estimated quantized(
      deepspeed_run(R"("zero_stage": 3, "shard_group": 8, "zeropp": {"hpz": true, "qwz": true, "qgz": true})"));
  const double P = quantized.workspace.stages.front().weights.dense.trained;
  CHECK(same(m * card_value(quantized.run, "zeropp", {{"P", P}, {"N", N}}),
             sent(quantized.estimate, "param_all_gather_forward") + sent(quantized.estimate, "grad_quantized"), 1e-6));

  const io::ReadRun ring = test::read_run(
      R"({"model": "llama-3.1-8b", "cluster": "dgx-h100", "num_gpus": 16, "parallel": {"context": 8},
          "training": {"framework": "megatron", "seq_length": 131072, "micro_batch_size": 1, "global_batch_size": 8}})");
  REQUIRE(ring.ok());
  CHECK(same(card_value(ring.run, "context-parallel"), Estimated(ring.run).term("layers.dense.cp_send.sent")));

  const io::ReadRun hybrid = test::read_run(
      R"({"model": "llama-3.1-8b", "cluster": "dgx-h100", "num_gpus": 128, "parallel": {"fsdp": "hybrid_shard"},
          "training": {"framework": "fsdp", "seq_length": 4096, "micro_batch_size": 1, "global_batch_size": 128}})");
  REQUIRE(hybrid.ok());
  CHECK(same(card_value(hybrid.run, "hsdp"), sent(Estimated(hybrid.run).estimate, "grad_replica_all_reduce"), 1e-6));
}

TEST_CASE("words that make no sense are errors with a way out") {
  struct Wrong {
    std::vector<std::string> words;
    const char* message;
  };
  const std::string lora = "configs/runs/llama-3.1-8b-lora-1x4090.json";
  for (const Wrong& row : std::vector<Wrong>{
           {{"bublbe"}, "did you mean \"bubble\"?"},
           {{"bubble", "--let", "zz=3"}, "its symbols: p, v, m"},
           {{"bubble", "--let", "m=57us"}, "a plain number in base units"},
           {{"bubble", "--let", "m=-4"}, "bubble has no meaning at m = -4"},
           {{"1f1b", "--let", "i=9"}, "it would be -5"},
           {{"gpu-count", "--let", "card=0"}, "it would be inf"},
           {{"bubble", "--tp", "3"}, "3 does not divide num_attention_heads 64"},
           {{"bubble", lora, lora}, "one topic and one RUN.json"},
           {{"--let", "m=3"}, "needs a topic"},
       }) {
    std::vector<std::string> words = {SHARDPLAN_BINARY, "explain"};
    words.insert(words.end(), row.words.begin(), row.words.end());
    const test::ProcessResult ran = test::run_process(words, {}, SHARDPLAN_SOURCE_DIR);
    CAPTURE(row.words, ran.err);
    CHECK(ran.status == 2);
    CHECK(ran.out.empty());
    CHECK(ran.err.find(row.message) != std::string::npos);
  }
}

TEST_CASE("a card of a run that lacks the thing says that its numbers are an example's") {
  const std::string lora = "configs/runs/llama-3.1-8b-lora-1x4090.json";
  const std::string dense = "configs/runs/llama-3.1-70b-128xh100.json";
  for (const auto& [topic, run] : std::vector<std::pair<std::string, std::string>>{{"bubble", lora},
                                                                                   {"tensor-parallel", lora},
                                                                                   {"sequence-parallel", lora},
                                                                                   {"context-parallel", dense},
                                                                                   {"expert-parallel", dense},
                                                                                   {"lora", dense},
                                                                                   {"lora-or-full", dense},
                                                                                   {"zero", lora},
                                                                                   {"ring-allreduce", lora}}) {
    const nlohmann::json json = card({topic, run});
    CAPTURE(topic, run);
    CHECK(std::any_of(json["remarks"].begin(), json["remarks"].end(),
                      [](const nlohmann::json& remark) { return remark["label"] == "this run"; }));
  }
  CHECK(card({"expert parallel"})["topic"] == "expert-parallel");
  CHECK(card({"expert", "parallel"})["topic"] == "expert-parallel");
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

TEST_CASE("a card has twelve lines at most") {
  for (const explain::Topic& topic : explain::topics()) {
    const test::ProcessResult ran = test::run_process({SHARDPLAN_BINARY, "explain", std::string(topic.name)});
    CAPTURE(topic.name, ran.out);
    CHECK(std::count(ran.out.begin(), ran.out.end(), '\n') <= 12);
  }
}

TEST_CASE("with -q a card is one line without padding") {
  for (const explain::Topic& topic : explain::topics()) {
    const test::ProcessResult ran = test::run_process({SHARDPLAN_BINARY, "explain", std::string(topic.name), "-q"});
    CAPTURE(topic.name, ran.out);
    CHECK(std::count(ran.out.begin(), ran.out.end(), '\n') == 1);
    CHECK(ran.out.size() < 300);
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
