// Thousands of random runs: what is legal is estimated sanely, what is not is refused with words.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

#include "property/invariants.hpp"
#include "property/random_run.hpp"
#include "property/sample.hpp"
#include "shardplan/io/estimate_json.hpp"
#include "shardplan/plan/workspace.hpp"
#include "support/catch.hpp"
#include "support/estimated.hpp"

using namespace shardplan;

namespace {

/// What the legal runs of a sample had in them: a sample without an option proves nothing about it.
class Coverage {
 public:
  void see(const Run& run) {
    const Training& t = run.training;
    seen_.insert("framework " + std::string(name(t.framework)));
    if (run.parallel.pipeline > 1) seen_.insert("schedule " + std::string(name(run.parallel.schedule)));
    seen_.insert("precision " + std::string(name(t.precision)));
    seen_.insert("loss " + std::string(name(t.loss)));
    seen_.insert("fsdp " + std::string(name(run.parallel.fsdp)));
    seen_.insert("recompute " + std::to_string(static_cast<int>(t.recompute.mode)));
    seen_.insert("optimizer " + t.optimizer);
    if (run.parallel.context > 1) seen_.insert("context " + std::string(name(run.parallel.context_comm)));
    if (run.model.has_experts()) seen_.insert(run.parallel.expert > 1 ? "expert parallelism" : "experts");
    if (run.parallel.expert_tensor > 1) seen_.insert("expert tensor parallelism");
    for (const LayerKind& kind : run.model.kinds) {
      if (kind.attention.kind == AttentionKind::latent) seen_.insert("latent attention");
      if (kind.attention.window > 0) seen_.insert("sliding window");
    }
    if (t.peft.active()) seen_.insert("peft " + std::string(name(t.peft.quant)));
    if (t.offload.optimizer != OffloadDevice::none) seen_.insert("offload " + std::string(name(t.offload.optimizer)));
    if (t.offload.activations != OffloadDevice::none) seen_.insert("offload activations");
    if (run.model.mtp_layers > 0) seen_.insert("multi-token prediction");
    if (run.parallel.zero_stage > 0) seen_.insert("zero " + std::to_string(run.parallel.zero_stage));
  }
  std::size_t size() const { return seen_.size(); }
  bool has(const std::string& what) const { return seen_.count(what) > 0; }

 private:
  std::set<std::string> seen_;
};

}  // namespace

TEST_CASE("every estimate of a random run of nanotron is sane") {
  const int wanted = test::sample(1'000);
  test::Random random(2'411);
  EstimateWorkspace workspace;
  Estimate result;
  int legal = 0;
  for (int tried = 0; legal < wanted && tried < 4 * wanted; ++tried) {
    const std::string text = test::random_run(random, "nanotron").dump();
    const io::ReadRun read = test::read_run(text);
    if (!read.ok()) continue;
    ++legal;
    estimate(read.run, workspace, result);
    const std::vector<std::string> broken = test::violations(read.run, result);
    INFO(text);
    if (!broken.empty()) FAIL_CHECK(fmt::format("{}", fmt::join(broken, "\n")));
  }
  CHECK(legal == wanted);
}

TEST_CASE("every estimate of a random legal run is sane") {
  const int wanted = test::sample(10'000);
  test::Random random(20'240'117);
  EstimateWorkspace workspace;
  Estimate result;
  Coverage coverage;
  std::map<std::string, int> refused;
  int legal = 0;
  int tried = 0;
  while (legal < wanted && tried < 4 * wanted + 100) {
    ++tried;
    const std::string text = test::random_run(random).dump();
    const io::ReadRun read = test::read_run(text);
    if (!read.ok()) {
      for (const Diagnostic& problem : read.problems) {
        ++refused[problem.pointer];
        if (problem.pointer.empty() || problem.message.size() < 8) FAIL_CHECK("a refusal without words: " << text);
      }
      continue;
    }
    ++legal;
    coverage.see(read.run);
    estimate(read.run, workspace, result);
    const std::vector<std::string> broken = test::violations(read.run, result);
    if (!broken.empty()) {
      INFO(text);
      FAIL_CHECK(fmt::format("{}", fmt::join(broken, "\n")));
    }
  }
  INFO("tried " << tried << ", refused for " << fmt::format("{}", refused));
  CHECK(legal == wanted);
  CHECK(legal * 2 > tried);
  if (wanted >= 1000) {
    CAPTURE(coverage.size());
    for (const char* const what : {"framework dp",
                                   "framework textbook",
                                   "schedule interleaved",
                                   "schedule zb-v",
                                   "schedule dualpipe",
                                   "latent attention",
                                   "sliding window",
                                   "expert parallelism",
                                   "expert tensor parallelism",
                                   "context a2a",
                                   "context ring",
                                   "peft nf4",
                                   "peft none",
                                   "offload cpu",
                                   "offload activations",
                                   "multi-token prediction",
                                   "zero 3",
                                   "fsdp hybrid_shard",
                                   "precision fp8",
                                   "loss liger"}) {
      CAPTURE(what);
      CHECK(coverage.has(what));
    }
  }
}

TEST_CASE("the JSON document of a random legal run adds up, and the run in it reads back as itself") {
  const int wanted = test::sample(1'000);
  test::Random random(7);
  for (int legal = 0, tried = 0; legal < wanted && tried < 4 * wanted; ++tried) {
    const std::string text = test::random_run(random).dump();
    const io::ReadRun read = test::read_run(text);
    if (!read.ok()) continue;
    ++legal;
    INFO(text);
    Estimate result;
    estimate(read.run, result);
    const EstimateDetail detail = estimate_detail(read.run);
    io::EstimateContext context;
    context.run_json = read.run_json;
    context.warnings = &read.warnings;
    context.detail = &detail;
    const std::vector<std::string> broken = test::json_violations(io::estimate_json(read.run, result, context));
    if (!broken.empty()) FAIL_CHECK(fmt::format("{}", fmt::join(broken, "\n")));

    const io::ReadRun again = test::read_run(read.run_json);
    if (!again.ok()) FAIL_CHECK(test::problems_of(again));
    if (again.run_json != read.run_json) FAIL_CHECK("read back as " << again.run_json);
  }
}

TEST_CASE("an estimate does not depend on what was estimated before") {
  test::Random random(99);
  EstimateWorkspace workspace;
  Estimate reused;
  for (int i = 0; i < test::sample(500); ++i) {
    const io::ReadRun read = test::read_run(test::random_run(random).dump());
    if (!read.ok()) continue;
    estimate(read.run, workspace, reused);
    Estimate fresh;
    estimate(read.run, fresh);
    io::EstimateContext context;
    context.run_json = read.run_json;
    CHECK(io::estimate_json(read.run, reused, context) == io::estimate_json(read.run, fresh, context));
  }
}
