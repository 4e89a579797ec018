// Cards: each topic's number against a hand-derived one, its formula evaluated, its text complete; the topics cover
// the sections and questions that people prepare for.
#include "shardplan/explain/topics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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
    // LLaMA-7B, fp32: a matrix of 4096 x 4096 is 64 MiB, of 4096 x 11008 172 MiB: above the cap of 25 MiB, each is a
    // bucket; norms ride along. 7 x 32, and embedding and head, 500 MiB each.
    {{"bucketing"}, 226, 0},
    // With a cap of 512 MiB: head (closes at 1 MiB), then a layer's 772 MiB as down + up + gate (516), o, v, k, q (256)
    // + the next down, up, gate (772) ...: two a layer but for what q, k, v, o leave over.
    {{"bucketing", "--let", "cap=1e12"}, 2, 0},  // the head alone, for its first MiB, and all else
    {{"zero"}, 20443889664, 0},                  // 2,271,543,296 x 9
    {{"zero", "--let", "N=8"}, 2271543296 * 7.5, 0},
    {{"zero-1"}, 7e9 * (4 + 12 / 8.0), 1e-15},
    {{"zero2"}, 7e9 * (2 + 14 / 8.0), 1e-15},
    {{"ZeRO-3"}, 7e9 * 16 / 8, 1e-15},
    {{"zero3", "configs/runs/llama-3.1-70b-128xh100.json"}, 2271543296.0 * 18 / 4, 1e-15},
    {{"hpz"}, 14e9 / 8, 0},
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
    {{"bubble", "--vpp", "5"}, 3.0 / 1283, 1e-15},
    {{"bubble", "--schedule", "zb-h1"}, 3.0 / 771, 1e-15},
    {{"bubble", "configs/runs/deepseek-v3-2048xh800.json"}, 14.0 / 374, 1e-15},  // DualPipe: (p - 2)/(3m + p - 2)
    {{"1f1b"}, 4, 0},
    {{"interleaved"}, 3.0 / 1283, 1e-15},
    {{"zero-bubble"}, 1.0 / 9, 1e-15},  // 3/27
    {{"dualpipe"}, 6, 0},
    {{"3d"}, 128, 0},
    {{"rank-order"}, 51, 0},
    {{"rank-order", "configs/runs/deepseek-v3-2048xh800.json"}, 130, 0},  // t = 1: 0 + 1 (2 + 128)
    {{"rank-order", "--tp", "2"}, 1 + 2 * (2 + 16), 0},                   // i_t is at most 1; D = 16
    {{"lora"}, 41943040, 0},
    {{"lora", "--let", "r=64"}, 167772160, 0},
    {{"lora", "--let", "lora-rank=64"}, 167772160, 0},
    {{"qlora"}, 4 + 8.0 / 64 + 32.0 / 16384, 1e-15},  // 4.127
    {{"dora"}, 135168, 0},
    {{"rslora"}, 8, 0},
    {{"nf4"}, 16, 0},
    {{"double-quantisation"}, 0.373046875, 0},
    // r = 16: factors of 65,536 and 16,384 elements stay; those of gate, up and down on the side of 14,336 do not:
    // 3 x 16 x 14,336 x 32 layers x 8 B.
    {{"paged-optimizers"}, 3.0 * 16 * 14336 * 32 * 8, 0},
    {{"qlora", "--quant", "int8"}, 8 + 32.0 / 4096, 1e-15},
    {{"qlora", "--set", "training.peft.double_quant=false"}, 4.5, 0},
    {{"lora-or-full"}, 128484179968.0 / (16060522496.0 + 671088640.0), 1e-12},
    // q and o of 8 heads, k and v of one, once: 2 B x 2 (8 + 1) x 4096 x 128 = 18.9 MB, and 37.8 MB of the theorem's
    // order.
    {{"flash-attention"}, 2.0 * 18 * 4096 * 128 + 2.0 * 8 * 4096 * 4096 * 128 * 128 / 116224, 1e-12},
    {{"flash-attention", "--seq", "512"}, 2.0 * 18 * 512 * 128 + 2.0 * 8 * 512 * 512 * 128 * 128 / 116224, 1e-12},
    {{"flash-attention", "--mbs", "4"},
     4 * (2.0 * 18 * 4096 * 128 + 2.0 * 8 * 4096 * 4096 * 128 * 128 / 116224),
     1e-12},
    {{"flash-versions"}, 0.73 * 312e12, 1e-15},
    {{"online-softmax"}, 1.5032147244080551, 1e-15},  // e^-2 + e^-1 + 1
    {{"bf16"}, 3.3895313892515355e38, 1e-15},
    {{"bf16", "--let", "E=5", "--let", "F=10"}, 65504, 0},
    {{"fp16"}, 65504, 0},
    {{"FP8"}, 448, 0},  // (2 - 2 x 2^-3) 2^8: the top exponent holds numbers
    {{"fp8-e5m2"}, 57344, 0},
    {{"flash-versions", "--cluster", "dgx-h100"}, 0.75 * 989.4e12, 1e-12},
    {{"loss-scaling"}, 9.094947017729282e-13, 1e-15},  // 2^-40
    {{"grad-accum"}, 1024, 0},
    {{"grad-clipping"}, 0.3125, 0},
    {{"loss-spike"}, 50, 0},
    {{"mfu", "--let", "rate=380", "--let", "FLOP=391713964032", "--let", "peak=312e12"}, 0.4771, 1e-3},  // LLaMA-65B
    {{"throughput", "--let", "step=32"}, 131072, 0},
    {{"peak-flops"}, 989.4e12, 1e-4},
    {{"gpu-count"}, 14, 0},
    {{"gpu-count", "configs/runs/deepseek-v3-2048xh800.json"},
     113,
     0},  // (671.03e9 + MTP 11.61e9) x 14 B / 84.94e9 = 112.5
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
  explain::TopicCheck check;
  const double value = explain::explain_topic(*explain::find_topic(topic), input, &check).value;
  CAPTURE(topic, check.unused);
  CHECK(check.unused.empty());
  CHECK(check.wrong.empty());
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

/// States of the whole model, bytes, as a rank's widths have them.
double states_of_model(const Estimated& of) {
  const Run& run = of.run;
  UnitWeights all;
  for (const Stage& stage : of.workspace.stages) {
    all.dense += stage.weights.dense.times(run.parallel.tensor);
    all.expert += stage.weights.expert.times(run.parallel.expert * run.parallel.expert_tensor);
  }
  StateRule rule = of.workspace.rule;
  rule.parameter_shards = rule.gradient_shards = rule.optimizer_shards = 1;
  rule.expert_parameter_shards = rule.expert_gradient_shards = rule.expert_optimizer_shards = 1;
  const StateBytes bytes = state_bytes(rule, all, *of.workspace.optimizer);
  const double copies = run.parallel.schedule == ScheduleKind::dualpipe ? 2 : 1;
  return (bytes.parameters + bytes.gradients + bytes.optimizer) / copies;
}

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
    // Rounded up; multi-token prediction is no part of the published model.
    const double cards = states_of_model(of) / run.cluster.gpu.memory_cuda_bytes;
    CHECK(std::fabs(card_value(run, "gpu-count") - cards) < 1.01 + 0.02 * cards);
    if (run.training.offload.optimizer == OffloadDevice::cpu) {
      seen.insert("offload");
      CHECK(same(card_value(run, "offload"), e.offload.step_s / e.time.step_s, 1e-6));
    }
    if (parallel.pipeline == 1 && shards_states(parallel.fsdp) && parallel.fsdp == Fsdp::full_shard &&
        parallel.dense_replicas() > 1 && run.model.has_experts() == false && parallel.grad_sync == GradSync::every) {
      seen.insert("stage 3");
      CHECK(same(card_value(run, "zero-traffic"), static_cast<double>(e.sent.data), 1e-5));
    }
    if (run.training.peft.active() && run.training.peft.quant == Quantization::nf4 && run.training.peft.double_quant) {
      CHECK(same(card_value(run, "qlora"), 4 + 8.0 / 64 + 32.0 / (64 * 256)));
    }
    if (parallel.pipeline > 1) {
      // The formula of the run's own schedule; the estimate simulates where m is too small for it.
      if (run.microbatches() >= 2 * parallel.pipeline - 1) {
        CHECK(same(card_value(run, "bubble"), e.pipeline.ideal_bubble_fraction));
      }
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
  CHECK(seen.size() == 7);
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

namespace {

std::string text_of(const std::vector<std::string>& words) {
  std::vector<std::string> arguments = {SHARDPLAN_BINARY, "explain"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  const test::ProcessResult ran = test::run_process(arguments, {}, SHARDPLAN_SOURCE_DIR);
  INFO(ran.err);
  REQUIRE(ran.status == 0);
  std::string joined;
  std::istringstream in(ran.out);
  for (std::string word; in >> word;) joined += (joined.empty() ? "" : " ") + word;
  return joined;
}

}  // namespace

TEST_CASE("numbers beside a card's result are those that a hand derives") {
  struct Row {
    std::vector<std::string> words;
    std::vector<std::string> prints;
  };
  const std::string deepseek = "configs/runs/deepseek-v3-2048xh800.json";
  const std::string qlora = "configs/runs/llama-2-70b-qlora-2x3090.json";
  const std::string large = "configs/runs/llama-3.1-405b-16384xh100.json";
  const std::string fsdp = "configs/runs/llama-3.1-8b-128xh100-fsdp2.json";
  for (const Row& row : std::vector<Row>{
           // The embedding's gradient, 32000 x 4096 x 4 B = 500 MiB, twice over 50 GB/s.
           {{"bucketing"}, {"2 x 500 MiB / 50 GB/s = 21 ms", "never split", "section 3.2.2"}},
           // m (2w + g)/2g with w = 2: g = 4 is 1.0 m, g = 2 is 1.5 m.
           {{"zero"},
            {"= 1 m here, 1.5 m at w = g",
             "grad_reduce_scatter 6.35 + param_all_gather 3.17 = 9.52 GiB; DDP 12.69 GiB"}},
           {{"zero-traffic"}, {"1.5 m here"}},
           {{"zero-traffic", "configs/runs/llama-3.1-70b-128xh100.json"}, {"1 m here", "(256x)"}},
           // 17.12 + 17.12 GiB of the base and the adapters, 0.69 of gradients.
           {{"zero-traffic", qlora}, {"37.51 GB", "34.93 GiB", "frozen weights, gathered"}},
           {{"zero", large}, {"194.42 GiB"}},
           // Gathers forward and backward, 14.84 GiB each, and a reduce-scatter of 29.68: 59.36.
           {{"zero", fsdp}, {"59.36 GiB; DDP 59.36 GiB"}},
           // A NIC of 8: 15/16 (2 x 2 + 4) x 8.03e9 / 8, HSDP's own.
           {{"hsdp"}, {"7.528 GB sent across", "= 7.528 GB a microbatch", "14.96 GiB", "0.93 GiB over S R"}},
           {{"hsdp", large}, {"one data-parallel rank a node"}},
           // 14.03e9 + 2 x 35 GiB read through 6 GB/s: 2 B x 0.744e9 + 35.28e9 bytes.
           {{"infinity", qlora}, {"6.13 s each"}},
           {{"gpu-count"}, {"140 + 140 + 840 = 1120 GB", "1129 GB: weights 141.1 GB"}},
           {{"gpu-count", deepseek}, {"9557 GB", "14 P / card"}},
           {{"rank-order", deepseek}, {"tensor: no group", "neighbours, ranks 0-127"}},
           {{"rank-order"}, {"every 32nd rank"}},
           {{"3d", deepseek}, {"expert 1240.3 GiB", "experts over p e x = 1024"}},
           // v = 5: 57/5 = 11.4; 3/(5 x 16 + 3) = 3.6%, 3/(5 x 80 + 3) = 0.7%.
           {{"bubble", "--vpp", "5"},
            {"m >= 19 (p-1)/5 = 11.4, so 12; m = 4p = 16 gives 3.6%, m = 20p = 80 gives 0.7%"}},
           {{"bubble", deepseek}, {"dualpipe", "3.74%"}},
           {{"bubble", "--schedule", "zb-h1"}, {"zb-h1", "m >= 19 (p-1)/3 = 19.0, so 19"}},
           {{"bubble"}, {"4.4% of the step", "twice D is m = 128, 2.3%"}},
           // 68.7e9 FLOP over 56.7 MB.
           {{"flash-attention"}, {"56.7 MB", "FLOP/byte 62 -> 1212", "37.8 MB"}},
           {{"checkpointing"}, {"2 of 4: 50%"}},
           {{"bf16"}, {"0.39% of a weight just above a power of two, 0.20% just below"}},
           {{"bf16", "--precision", "fp16"}, {"computes in fp16"}},
           {{"fp8"}, {"max 448", "fp16 1-5-10: max 65504, least 6e-08"}},
           {{"loss-scaling"}, {"scheduler.step() moves it"}},
           {{"qlora"}, {"6,979,321,856", "backward dequantises W again"}},
           {{"qlora", "--quant", "int8"}, {"8 + 32/row"}},
           {{"qlora", qlora}, {"68,451,041,280"}},
           {{"double-quantisation", qlora}, {"2.97 GiB"}},  // 68.45e9 x 0.373 / 8
           {{"fsdp"}, {"SHARD_GRAD_OP is not ZeRO-2"}},
           {{"tensor-parallel"}, {"448 MiB", "560 MiB"}},
           {{"lora-or-full"}, {"code and mathematics"}},
           {{"model-states"}, {"an eighth", "six times"}},
           {{"ddp-or-zero", "--gpus", "64"}, {"16/2"}},  // TP8 PP4 leaves two replicas
           {{"peak-flops", "configs/runs/llama-3.1-405b-1024xh100-fp8.json"}, {"counted in fp8: 1979"}},
           {{"context-parallel", "--cp", "4", "--seq", "32768"}, {"llama-3.1-70b-128xh100 --cp 4 --seq 32768"}},
           {{"mfu", "--let", "rate=1000"}, {"45.4%"}},
       }) {
    const std::string text = text_of(row.words);
    for (const std::string& wanted : row.prints) {
      CAPTURE(row.words, wanted, text);
      CHECK(text.find(wanted) != std::string::npos);
    }
  }
}

TEST_CASE("a card says whose numbers it has, and uses the run or says what it keeps") {
  const auto read = [](const std::string& name) {
    io::ReadRun run =
        test::read_run(test::read_file(std::string(SHARDPLAN_SOURCE_DIR) + "/configs/runs/" + name + ".json"));
    REQUIRE(run.ok());
    return run.run;
  };
  const std::array<Run, 3> runs = {read("llama-3.1-70b-128xh100"), read("llama-3.1-8b-lora-1x4090"),
                                   read("deepseek-v3-2048xh800")};
  const auto of = [](const explain::Topic& topic, const Run& run) {
    explain::TopicInput input;
    input.run = &run;
    input.stated = true;
    input.run_name = "the run";
    return explain::explain_topic(topic, input);
  };
  for (const explain::Topic& topic : explain::topics()) {
    CAPTURE(topic.name);
    CHECK_FALSE(card({std::string(topic.name)})["run"].get<std::string>().empty());
    for (std::size_t r = 0; r < runs.size(); ++r) {
      const explain::Explanation stated = of(topic, runs[r]);
      bool differs = false;
      for (std::size_t k = 0; k < runs.size(); ++k) {
        const explain::Explanation other = of(topic, runs[k]);
        differs = differs || stated.value != other.value || stated.substitution != other.substitution;
      }
      const bool says = std::any_of(stated.remarks.begin(), stated.remarks.end(),
                                    [](const explain::Remark& remark) { return remark.label == "this run"; });
      CAPTURE(r);
      CHECK((differs || says));
    }
  }
}

TEST_CASE("flags that change no number of a card are named") {
  CHECK(text_of({"qlora", "--mbs", "4"}).find("flags --mbs 4: changes no number of this card") != std::string::npos);
  CHECK(text_of({"rank-order", "--mbs", "4", "--pp", "8"}).find("flags --mbs 4: changes") != std::string::npos);
  CHECK(text_of({"bubble", "--pp", "8"}).find("changes no number") == std::string::npos);
  CHECK(text_of({"nf4", "--mbs", "4"}).find("a worked example's") != std::string::npos);
}

TEST_CASE("sections, questions, tools and Chinese terms lead to topics") {
  struct Row {
    std::string word;
    std::string first;
    std::size_t count;  ///< 0: several
  };
  for (const Row& row : std::vector<Row>{
           {"Q7", "bf16", 1},
           {"q7", "bf16", 1},
           {"question 7", "bf16", 1},
           {"7", "3d", 0},
           {"6.2", "bubble", 1},
           {"section 6", "pipeline", 6},
           {"section6", "pipeline", 6},
           {"Q15", "mfu", 3},
           {"13", "loss-spike", 1},
           {"11", "grad-accum", 3},
           {"气泡", "bubble", 1},
           {"流水线并行", "pipeline", 0},
           {"显存", "model-states", 0},
           {"梯度累积", "grad-accum", 1},
           {"梯度裁剪", "grad-clipping", 1},
           {"激活重计算", "checkpointing", 1},
           {"张量并行", "tensor-parallel", 2},
           {"序列并行", "sequence-parallel", 1},
           {"混合精度训练", "bf16", 3},
           {"参数高效微调", "lora", 0},
           {"3D 并行与混合策略", "3d", 2},
           {"Bubble 率分析", "bubble", 1},
           {"16Φ", "model-states", 1},
           {"mixed-precision", "bf16", 3},
           {"gpipe", "pipeline", 1},
           {"ulysses", "context-parallel", 1},
           {"megatron", "tensor-parallel", 0},
           {"DeepSpeed", "zero", 0},
           {"GQA", "activations", 0},
           {"peft", "lora", 0},
           {"fa2", "flash-versions", 1},
           {"dualpipe-v", "dualpipe", 1},
           {"memory", "model-states", 0},
           {"ZERO3", "zero", 1},
           {"hpz", "zeropp", 1},
           {"BUBBLE", "bubble", 1},
           {"pipeline parallelism", "pipeline", 0},
           {"fp8-e4m3", "bf16", 1},
       }) {
    const std::vector<const explain::Topic*> found = explain::find_topics(row.word);
    CAPTURE(row.word, found.size());
    REQUIRE_FALSE(found.empty());
    CHECK(found.front()->name == row.first);
    CHECK((row.count == 0 ? found.size() > 1 : found.size() == row.count));
  }
  CHECK(explain::find_topics("Q16").empty());
  CHECK(explain::find_topics("zzz").empty());
  // Several are a short list; a bare explain names sections, questions and the document.
  const std::string list = text_of({"memory"});
  CHECK(list.find("model-states") != std::string::npos);
  CHECK(list.find("bubble") == std::string::npos);
  const std::string all = text_of({});
  for (const char* const wanted : {"6.2", "Q13", "docs/interview.md"}) CHECK(all.find(wanted) != std::string::npos);
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
           {{"bubble", "--let", "m=-4"}, "--let m=-4: microbatches, gbs/(mbs D) is a whole number from 1 on"},
           {{"bubble", "--let", "m=0"}, "whole number from 1 on"},
           {{"bubble", "--let", "p=2.5"}, "whole number from 1 on"},
           {{"interleaved", "--let", "v=0"}, "whole number from 1 on"},
           {{"zero", "--let", "N=0"}, "whole number from 1 on"},
           {{"dualpipe", "--let", "p=7"}, "even number of stages"},
           {{"rank-order", "--let", "i_t=99"}, "place in the tensor group is below 8"},
           {{"rank-order", "--let", "t=2", "--let", "i_t=2"}, "0 to 1"},
           {{"offload", "--let", "u=2"}, "a share, 0 to 1"},
           {{"mfu", "--let", "rate=1e9"}, "it would be"},
           {{"nf4", "--let", "bits=64"}, "at most 8 bits"},
           {{"activations", "--let", "t=0"}, "whole number from 1 on"},
           {{"lora", "--let", "r=0"}, "whole number from 1 on"},
           {{"zero", "--zero", "3"}, "--framework deepspeed"},
           {{"memory", "configs/runs/llama-3.1-70b-128xh100.json"}, "that is several topics"},
           {{"Q99"}, "docs/interview.md"},
           {{"1f1b", "--let", "i=9"}, "stage is below 4"},
           {{"gpu-count", "--let", "card=0"}, "bytes of a card is above 0"},
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
  CHECK(card({"bubble", "--let", "m=1e30"})["value"].get<double>() < 1e-29);
}

namespace {

/// Runs what a card says to try, where it was not tried yet.
void try_it(const std::string& next, std::set<std::string>& tried) {
  if (!tried.insert(next).second) return;
  std::istringstream in(next);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  REQUIRE(words.front() == "shardplan");
  words.front() = SHARDPLAN_BINARY;
  const test::ProcessResult ran = test::run_process(words, {}, SHARDPLAN_SOURCE_DIR);
  CAPTURE(next, ran.err);
  CHECK((ran.status == 0 || ran.status == 1));
}

}  // namespace

TEST_CASE("every command that a card says to try runs, with the example and with any run") {
  std::set<std::string> tried;
  for (const explain::Topic& topic : explain::topics()) try_it(card({std::string(topic.name)})["try"], tried);
  for (const std::string& file : test::run_files()) {
    const io::ReadRun read = test::read_run(test::read_file(file));
    REQUIRE(read.ok());
    explain::TopicInput input;
    input.run = &read.run;
    input.stated = true;
    input.run_words = file;
    for (const explain::Topic& topic : explain::topics()) {
      const std::string next = explain::explain_topic(topic, input).next;
      CAPTURE(topic.name, next);
      CHECK(next.find("RUN.json") == std::string::npos);
      try_it(next, tried);
    }
  }
  // With the flags that the card was made with.
  CHECK(card({"activations", "--seq", "8192"})["try"] ==
        "shardplan estimate configs/runs/llama-3.1-70b-128xh100.json --seq 8192 --explain layers.dense.kept");
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
