// Every printed formula gives the printed value, every part and symbol has an address that opens, every term a source,
// and the terms are the numbers of the estimate.
#include "shardplan/explain/terms.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "explain/evaluate.hpp"
#include "property/random_run.hpp"
#include "property/sample.hpp"
#include "shardplan/io/estimate_json.hpp"
#include "support/catch.hpp"
#include "support/estimated.hpp"
#include "support/process.hpp"

using namespace shardplan;

namespace {

struct Explained {
  Estimate estimate;
  EstimateWorkspace workspace;
  std::unique_ptr<explain::Terms> terms;

  explicit Explained(const Run& run) {
    shardplan::estimate(run, workspace, estimate);
    terms = explain::terms_of(run, workspace, estimate);
  }
};

/// What is wrong with a term, a line each.
std::string defects(const explain::Terms& terms, const explain::Term& term, test::Evaluator& evaluate) {
  std::string text;
  const explain::Explanation e = explain::explain_term(terms, term);
  if (term.source.empty() || term.meaning.empty()) text += term.address + ": no source or meaning\n";
  if (terms.find(term.address) == nullptr) text += term.address + ": does not open\n";
  for (const explain::ExplainedSymbol& symbol : e.symbols) {
    const explain::Term* const opened = terms.find(symbol.address);
    if (opened == nullptr) {
      text += fmt::format("{}: symbol {} has no term at \"{}\"\n", term.address, symbol.symbol, symbol.address);
    } else if (opened->value != symbol.value) {
      text += fmt::format("{}: {} is {} here, {} at its address\n", term.address, symbol.symbol, symbol.value,
                          opened->value);
    }
  }
  double sum = 0;
  for (const explain::PartOf& part : e.parts) {
    if (terms.find(part.address) == nullptr) text += fmt::format("{}: no part {}\n", term.address, part.address);
    sum += part.value;
  }
  if (!e.parts.empty() && !test::agrees(sum, e.value)) {
    text += fmt::format("{}: parts sum to {}, not {}\n", term.address, sum, e.value);
  }
  try {
    const double value = evaluate(e);
    if (!test::agrees(value, e.value))
      text += fmt::format("{}: {} gives {}, not {}\n", term.address, e.formula, value, e.value);
    const double numbers = evaluate.numbers(e.substitution);
    if (!test::agrees(numbers, e.value)) text += fmt::format("{}: {} is {}\n", term.address, e.substitution, numbers);
  } catch (const std::runtime_error& error) {
    text += fmt::format("{}: {}: {}\n", term.address, e.formula, error.what());
  }
  return text;
}

/// Every number of the JSON result whose path is an address, or nothing where the path has none.
void check_numbers(const nlohmann::json& value, const std::string& path, const explain::Terms& terms,
                   std::set<std::string>& seen, std::string& wrong) {
  if (value.is_object()) {
    for (const auto& [name, member] : value.items()) check_numbers(member, path + "." + name, terms, seen, wrong);
    return;
  }
  if (!value.is_number()) return;
  const explain::Term* const term = terms.find(path);
  if (term == nullptr) {
    wrong += path + ": no term\n";
    return;
  }
  seen.insert(path);
  const double printed = value.get<double>();
  const double scale = path.find("tflops") != std::string::npos ? 1e12 : 1;
  if (std::fabs(term->value - scale * printed) > 1e-12 * std::fabs(scale * printed)) {
    wrong += fmt::format("{}: {} printed, {} explained\n", path, printed, term->value);
  }
}

/// What a run has that others have not.
void note_features(const Run& run, std::set<std::string>& seen) {
  const Parallel& parallel = run.parallel;
  const Training& training = run.training;
  const auto note = [&seen](const char* what, bool has) {
    if (has) seen.insert(what);
  };
  note("tensor", parallel.tensor > 1);
  note("pipeline", parallel.pipeline > 1);
  note("chunks", parallel.virtual_pipeline > 1);
  note("context", parallel.context > 1);
  note("expert", parallel.expert > 1);
  note("expert tensor", parallel.expert_tensor > 1);
  note("zero 3", parallel.zero_stage == 3);
  note("fsdp", parallel.fsdp != Fsdp::none);
  note("adapters", training.peft.active());
  note("quantised", training.peft.active() && training.peft.quant != Quantization::none);
  note("offload", training.offload.optimizer != OffloadDevice::none);
  note("fp8", training.precision == Precision::fp8);
  note("recompute", training.recompute.mode != RecomputeMode::none);
  note("experts", run.model.layer(run.model.layers() - 1).mlp.kind == MlpKind::moe);
  note("latent", run.model.layer(0).attention.kind == AttentionKind::latent);
  note("windows", run.model.layer(0).attention.window > 0);
}
constexpr std::size_t all_features = 16;

/// Calls `use` with so many legal random runs, each as read and as text.
template <class Use>
void each_legal_run(test::Random& random, int wanted, const Use& use, const std::string& framework = "") {
  for (int legal = 0, tried = 0; legal < wanted && tried < 5 * wanted; ++tried) {
    const std::string text = test::random_run(random, framework).dump();
    const io::ReadRun read = test::read_run(text);
    if (!read.ok()) continue;
    ++legal;
    use(read, text);
  }
}

/// Every term of a run whose formula or value is not what is printed, a line each.
std::string wrong_terms(const Explained& explained, test::Evaluator& evaluate) {
  std::string wrong;
  for (const explain::Term& term : explained.terms->all()) wrong += defects(*explained.terms, term, evaluate);
  return wrong;
}

}  // namespace

TEST_CASE("formulas of runs of every framework that random runs do not draw by themselves") {
  test::Random random(2411);
  test::Evaluator evaluate;
  int legal = 0;
  each_legal_run(
      random, test::sample(200),
      [&](const io::ReadRun& read, const std::string& text) {
        ++legal;
        CHECK(read.run.training.framework == Framework::nanotron);
        const std::string wrong = wrong_terms(Explained(read.run), evaluate);
        if (!wrong.empty()) FAIL_CHECK(text << "\n" << wrong.substr(0, 3000));
      },
      "nanotron");
  CHECK(legal == test::sample(200));
}

TEST_CASE("formulas that are printed give the values that are printed") {
  test::Random random(4711);
  test::Evaluator evaluate;
  const int wanted = test::sample(1'000);
  std::size_t formulas = 0, terms = 0;
  std::set<std::string> features;
  each_legal_run(random, wanted, [&](const io::ReadRun& read, const std::string& text) {
    note_features(read.run, features);
    const Explained explained(read.run);
    for (const explain::Term& term : explained.terms->all()) {
      ++terms;
      formulas += term.formula.node() != nullptr ? 1 : 0;
    }
    const std::string wrong = wrong_terms(explained, evaluate);
    if (!wrong.empty()) FAIL_CHECK(text << "\n" << wrong.substr(0, 3000));
  });
  CAPTURE(formulas, terms);
  CHECK(3 * formulas > terms);
  CAPTURE(features);
  CHECK((wanted < 1'000 || features.size() == all_features));
}

TEST_CASE("terms are the numbers of the estimate, at the paths of its JSON") {
  test::Random random(815);
  const int wanted = test::sample(1'000);
  each_legal_run(random, wanted, [&](const io::ReadRun& read, const std::string& text) {
    const Explained explained(read.run);
    io::EstimateContext context;
    context.run_json = read.run_json;
    const nlohmann::json json = nlohmann::json::parse(io::estimate_json(read.run, explained.estimate, context));
    std::set<std::string> seen;
    std::string wrong;
    for (const char* const section : {"model", "memory", "pipeline", "time", "throughput"}) {
      nlohmann::json members = json[section];
      if (members.contains("stages")) {
        for (std::size_t i = 0; i < members["stages"].size(); ++i) {
          nlohmann::json stage = members["stages"][i];
          stage.erase("stage");
          stage.erase("parameters");
          stage.erase("moments");
          check_numbers(stage, fmt::format("memory.stages.{}", i), *explained.terms, seen, wrong);
        }
        members.erase("stages");
        members.erase("peak_stage");
      }
      check_numbers(members, section, *explained.terms, seen, wrong);
    }
    check_numbers(json["communication"]["sent_bytes_per_step"], "communication.sent_bytes_per_step", *explained.terms,
                  seen, wrong);
    for (const nlohmann::json& call : json["communication"]["calls"]) {
      const std::string path = "communication." + call["name"].get<std::string>();
      for (const char* const field : {"sent_bytes_per_step", "time_s", "exposed_s", "message_bytes"}) {
        check_numbers(call[field], path + "." + field, *explained.terms, seen, wrong);
      }
    }
    if (!wrong.empty()) FAIL_CHECK(text << "\n" << wrong.substr(0, 3000));
    CHECK(seen.size() > 40);
  });
}

TEST_CASE("bytes of every collective are a formula of the code that counted them") {
  test::Random random(1910);
  const int wanted = test::sample(1'000);
  std::set<std::string> seen;
  each_legal_run(random, wanted, [&](const io::ReadRun& read, const std::string& text) {
    const Explained explained(read.run);
    for (const CommunicationCall& row : explained.estimate.communication) {
      const std::string path = fmt::format("communication.{}", row.name);
      CAPTURE(path, text);
      seen.insert(std::string(row.name));
      const explain::Term* const sent = explained.terms->find(path);
      REQUIRE(sent != nullptr);
      CHECK(sent->formula.node() != nullptr);
      for (const char* const part : {".bytes", ".message_bytes"}) {
        const explain::Term* const term = explained.terms->find(path + part);
        if (term == nullptr || term->address.rfind(path + part, 0) != 0) continue;
        CHECK(term->formula.node() != nullptr);
        CHECK(explained.terms->find(path + part + ".rest") == nullptr);
      }
    }
  });
  for (const char* const name :
       {"grad_all_reduce", "grad_reduce_scatter", "param_all_gather", "param_all_gather_forward",
        "param_all_gather_backward", "grad_replica_all_reduce", "expert_grad_all_reduce", "expert_grad_reduce_scatter",
        "expert_param_all_gather", "pp_send", "embedding_grad_all_reduce", "replicate_parameters"}) {
    CAPTURE(name);
    CHECK((wanted < 1'000 || seen.count(name) == 1));
  }
}

TEST_CASE("no term repeats its own value: what has no formula is an input, a table's or the simulated schedule's") {
  test::Random random(2104);
  const int wanted = test::sample(300);
  std::array<std::size_t, 4> kinds{};  // by TermKind
  const auto of = [&kinds](explain::TermKind kind) { return kinds[static_cast<std::size_t>(kind)]; };
  each_legal_run(random, wanted, [&](const io::ReadRun& read, const std::string& text) {
    const Explained explained(read.run);
    std::string wrong;
    for (const explain::Term& term : explained.terms->all()) {
      if (term.value == 0) continue;  // nothing to explain
      ++kinds[static_cast<std::size_t>(term.kind)];
      const bool leaf = term.formula.node() == nullptr;
      const bool table = term.source.rfind("configs/measured/", 0) == 0;
      if (leaf == (term.kind == explain::TermKind::formula)) wrong += term.address + "\n";
      if (table != (term.kind == explain::TermKind::looked_up)) wrong += term.address + ": its source\n";
    }
    if (!wrong.empty()) FAIL_CHECK(text << "\n" << wrong.substr(0, 3000));
  });
  // Tables are asked for products and collectives, the simulation for a few times of each stage.
  CHECK(of(explain::TermKind::looked_up) < of(explain::TermKind::formula) / 4);
  CHECK(of(explain::TermKind::simulated) < of(explain::TermKind::formula) / 4);
}

TEST_CASE("the data-parallel wait of a step is that of the stage that it names, call by call") {
  const io::ReadRun read =
      test::read_run(test::read_file(SHARDPLAN_SOURCE_DIR "/configs/runs/llama-3.1-70b-128xh100.json"));
  const Explained explained(read.run);
  const TimeEstimate& time = explained.estimate.time;
  const explain::Term* const all = explained.terms->find("time.communication_exposed.data");
  REQUIRE(all != nullptr);
  CHECK(all->meaning.find(fmt::format("stage {}", time.data_exposed_stage)) != std::string::npos);
  double calls = 0;
  for (const char* const name : {"grad_reduce_scatter", "param_all_gather"}) {
    const explain::Term* const call =
        explained.terms->find(fmt::format("communication.{}.exposed@{}", name, time.data_exposed_stage));
    REQUIRE(call != nullptr);
    calls += call->value;
  }
  CHECK(calls == Approx(all->value));
  CHECK(all->value > 0.1);
}

TEST_CASE("heads and rows that the page prints are words that open") {
  const io::ReadRun read =
      test::read_run(test::read_file(SHARDPLAN_SOURCE_DIR "/configs/runs/llama-3.1-70b-128xh100.json"));
  const Explained explained(read.run);
  for (const char* const word : {"param",
                                 "grad",
                                 "optim",
                                 "activ",
                                 "trans",
                                 "transient",
                                 "frame",
                                 "CUDA+NCCL",
                                 "total",
                                 "live",
                                 "in flight",
                                 "layers",
                                 "memory",
                                 "time",
                                 "compute",
                                 "gemm",
                                 "attention",
                                 "rest",
                                 "bubble",
                                 "optimizer",
                                 "communication",
                                 "TP exchange",
                                 "PP send",
                                 "DP exchange",
                                 "pipeline",
                                 "operators",
                                 "mfu",
                                 "activ@3",
                                 "trans@3",
                                 "h",
                                 "memory.stages.2.total_bytes",
                                 "/time/step_s",
                                 "memory.peak_bytes",
                                 "throughput.model_tflops_per_gpu",
                                 "layers.dense.qkv.saved",
                                 "layers.dense.qkv",
                                 "layers.dense",
                                 "states",
                                 "peak_memory",
                                 "bytes per parameter",
                                 "links",
                                 "tp",
                                 "data",
                                 "D",
                                 "N",
                                 "memory.reserved_high",
                                 "communication.grad_reduce_scatter.exposed@0",
                                 "communication.grad_reduce_scatter"}) {
    CAPTURE(word);
    CHECK(explained.terms->find(word) != nullptr);
  }
  for (const char* const word :
       {"", "activ@4", "activations", "memory.nothing", "layers.dense.nothing", "price", "@0"}) {
    CAPTURE(word);
    CHECK(explained.terms->find(word) == nullptr);
  }
}
