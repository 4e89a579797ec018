// The fix of a run is a change after which it meets everything that it requires.
#include "shardplan/advise/fixes.hpp"

#include <string>

#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/run_file.hpp"
#include "support/catch.hpp"

using namespace shardplan;

namespace {

struct Case {
  std::string name;
  std::vector<io::Override> overrides;
};

}  // namespace

TEST_CASE("a fix, applied, meets what was missed") {
  const Case cases[] = {
      {"llama-3.1-70b-128xh100", {{"/training/micro_batch_size", "8", "--mbs"}}},
      {"llama-3.1-70b-128xh100", {{"/require/min_mfu", "0.45", "--set"}}},
      {"llama-3.1-70b-128xh100", {{"/training/seq_length", "32768", "--seq"}}},
      {"llama-3.1-8b-8xh200-zero3-offload", {{"/cluster/host/memory_gib", "64", "--set"}}},
  };
  const io::CatalogSource& builtin = catalog::builtin_catalog();
  EstimateWorkspace workspace;
  for (const Case& each : cases) {
    CAPTURE(each.name);
    io::RunInput input = io::run_input_from_json(catalog::find_run(each.name).value());
    input.overrides = each.overrides;
    const io::ReadRun read = io::read_run(input, builtin);
    REQUIRE(read.ok());
    advise::Trial trial;
    const Estimate now = trial.estimate(read.run);
    const std::vector<plan::Verdict> verdicts = plan::judge(read.run.require, now);
    REQUIRE(advise::missed_by(verdicts, now) > 0);
    const advise::FoundFix found = advise::cheapest_fix(read.draft, read.run, now, verdicts, builtin, workspace);
    REQUIRE(found.fix);
    CAPTURE(plan::flags_of(found.fix->change));
    plan::Draft draft = advise::open_statement(read.draft, read.run, now);
    plan::apply(found.fix->change, draft);
    advise::follow_framework(draft, builtin);
    REQUIRE(trial.resolve(draft));
    const Estimate& then = trial.estimate();
    CHECK(advise::missed_by(plan::judge(trial.run().require, then), then) == 0);
    CHECK(then.headroom_bytes == found.fix->headroom_bytes);
    CHECK(then.throughput.tokens_per_s == found.fix->tokens_per_s);
  }
}

TEST_CASE("flags that a fix sets anew give way to it") {
  plan::Change fix;
  fix.set(plan::Field::attention, AttentionKernel::flash).set(plan::Field::offload_optimizer, OffloadDevice::cpu);
  const io::Override typed[] = {{"/training/attention", "eager", "--attention"},
                                {"/parallel/tensor", "4", "--tp"},
                                {"/training/offload/optimizer", "nvme", "--offload"}};
  CHECK(advise::gives_way(fix, typed) == "--attention eager --offload optimizer=nvme");
  CHECK(advise::gives_way(fix, {}).empty());
}
