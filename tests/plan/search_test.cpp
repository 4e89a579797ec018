// The search against brute force: every legal layout estimated one by one.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "property/random_run.hpp"
#include "property/sample.hpp"
#include "shardplan/plan/search.hpp"
#include "shardplan/plan/validate.hpp"
#include "shardplan/plan/workspace.hpp"
#include "support/catch.hpp"
#include "support/estimated.hpp"

using namespace shardplan;
using plan::Found;
using plan::LayoutChoice;
using plan::Objective;
using plan::SearchSpace;

namespace {

std::string named(const LayoutChoice& c) {
  return fmt::format(
      "N{} t{} p{}x{} c{} e{}x{} mbs{} {} zero{} {}/{} recompute{} attention{} sp{} offload{}{}{} overlap{}{}{}{}",
      c.num_gpus, c.tensor, c.pipeline, c.virtual_pipeline, c.context, c.expert, c.expert_tensor, c.micro_batch_size,
      name(c.schedule), c.zero_stage, name(c.fsdp), c.shard_group, static_cast<int>(c.recompute.mode),
      static_cast<int>(c.attention), c.sequence_parallel, static_cast<int>(c.offload_optimizer),
      static_cast<int>(c.offload_parameters), static_cast<int>(c.offload_activations), c.overlap.grad_reduce,
      c.overlap.param_gather, c.overlap.tp, c.overlap.p2p);
}

LayoutChoice without_overlap(LayoutChoice choice) {
  choice.overlap = {false, false, false, false};
  return choice;
}

bool same(const LayoutChoice& left, const LayoutChoice& right) { return order_of(left, right) == 0; }

LayoutChoice with_tp_overlap_alone(LayoutChoice choice) {
  choice.overlap = {false, false, choice.overlap.tp, false};
  return choice;
}

constexpr std::size_t most_listed = 12;

/// Everything that brute force finds.
struct Brute {
  std::int64_t layouts = 0, fit = 0;
  std::vector<std::pair<plan::SearchKey, Found>> sorted;  ///< of layouts that differ in overlap alone, the best one
};

Brute brute_force(const plan::Draft& base, const SearchSpace& space, Objective objective,
                  const Requirements& require = {}) {
  Brute brute;
  EstimateWorkspace workspace;
  Estimate estimate;
  Run run;
  plan::for_each_layout(base, space, [&](const LayoutChoice& choice) {
    const plan::Draft draft = plan::with_layout(base, choice);
    plan::resolve(draft, run);
    const plan::RuleSet broken = plan::broken_rules(draft, run);
    INFO(named(choice));
    INFO(broken.to_string());
    REQUIRE(broken.none());
    shardplan::estimate(run, workspace, estimate);
    ++brute.layouts;
    if (!estimate.fits) return;
    ++brute.fit;
    if (!plan::meets(require, estimate)) return;
    Found found;
    found.choice = choice;
    found.peak_bytes = estimate.peak_bytes;
    found.reserved_bytes = estimate.reserved_bytes;
    found.headroom_bytes = estimate.headroom_bytes;
    found.step_s = estimate.time.step_s;
    const plan::SearchKey key = plan::key_of(objective, found);
    // The overlaps of one layout follow one another.
    if (brute.sorted.empty() || !same(with_tp_overlap_alone(brute.sorted.back().second.choice),
                                      with_tp_overlap_alone(choice))) {
      brute.sorted.emplace_back(key, found);
      return;
    }
    INFO("no overlap of gradients, weights or messages makes a step longer");
    REQUIRE(found.step_s >= brute.sorted.back().second.step_s * (1 - 1e-12));
    REQUIRE(found.headroom_bytes == brute.sorted.back().second.headroom_bytes);
  });
  std::sort(brute.sorted.begin(), brute.sorted.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : order_of(a.second.choice, b.second.choice) < 0;
  });
  // Of each layout with and without overlap of tensor parallel exchanges the better one.
  std::vector<std::pair<plan::SearchKey, Found>> distinct;
  for (const auto& item : brute.sorted) {
    if (distinct.size() >= most_listed) break;
    const bool seen = std::any_of(distinct.begin(), distinct.end(), [&](const auto& other) {
      return same(without_overlap(other.second.choice), without_overlap(item.second.choice));
    });
    if (!seen) distinct.push_back(item);
  }
  brute.sorted = distinct;
  return brute;
}

struct Case {
  const char* name;
  std::string run;
};

std::string text(const char* model, const char* cluster, int gpus, const char* rest) {
  return fmt::format(R"({{"model": {}, "cluster": "{}", "num_gpus": {}, "training": {{{}}}}})", model, cluster, gpus,
                     rest);
}

const char* const small_gpt =
    R"({"model_type":"transformer","hidden_size":1024,"num_hidden_layers":8,"num_attention_heads":16,"vocab_size":32000})";
const char* const small_moe =
    R"({"model_type":"transformer","hidden_size":1024,"num_hidden_layers":7,"num_attention_heads":16,"vocab_size":32000,
        "num_experts":8,"num_experts_per_tok":2,"moe_intermediate_size":512})";

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"megatron, 8 GPUs", text(small_gpt, "dgx-h100", 8, R"("framework":"megatron","global_batch_size":16)")},
      {"megatron, eager", text(small_gpt, "dgx-h100", 4,
                               R"("framework":"megatron","global_batch_size":8,"attention":"eager")")},
      {"megatron, experts, a prime number of layers",
       text(small_moe, "dgx-h100", 4, R"("framework":"megatron","global_batch_size":8)")},
      {"deepspeed", text(small_gpt, "dgx-a100-80gb", 16, R"("framework":"deepspeed","global_batch_size":32)")},
      {"fsdp", text(small_gpt, "dgx-h100", 8, R"("framework":"fsdp","global_batch_size":16)")},
      {"textbook", text(small_gpt, "dgx-h100", 4, R"("framework":"textbook","global_batch_size":8)")},
      {"ddp", text(small_gpt, "dgx-h100", 8, R"("framework":"ddp","global_batch_size":32)")},
      {"dp", text(small_gpt, "dgx-h100", 8, R"("framework":"dp","global_batch_size":32)")},
      {"adapters of a quantised base",
       text("\"llama-3.1-8b\"", "dgx-h100", 4,
            R"("framework":"fsdp","global_batch_size":8,"peft":{"method":"qlora","targets":"all-linear"})")},
      {"paged states", text("\"llama-3.1-8b\"", "dgx-h100", 2,
                            R"("framework":"ddp","global_batch_size":4,"optimizer":"paged-adamw-8bit")")},
      {"a model that hardly fits",
       text("\"llama-3.1-8b\"", "dgx-h100", 8, R"("framework":"megatron","global_batch_size":16,"seq_length":8192)")},
  };
  return all;
}

void check_against_brute_force(const io::ReadRun& read, const SearchSpace& space, Objective objective,
                               const Requirements& require = {}) {
  const plan::Draft base = plan::search_base(read.draft, read.run);
  const Brute brute = brute_force(base, space, objective, require);
  plan::SearchOptions options;
  options.objective = objective;
  options.require = require;
  options.top = most_listed;
  options.threads = 2;
  const plan::SearchResult result = plan::search(base, read.run, space, options);
  CHECK(result.counts.layouts == brute.layouts);
  CHECK(result.counts.estimated + result.counts.cut_by_bound == brute.layouts);
  CHECK(result.counts.fit + result.counts.misses + result.counts.does_not_fit == result.counts.estimated);
  REQUIRE(result.best.size() == std::min<std::size_t>(options.top, brute.sorted.size()));
  for (std::size_t i = 0; i < result.best.size(); ++i) {
    const Found& found = result.best[i];
    const Found& expected = brute.sorted[i].second;
    CAPTURE(i, named(found.choice), named(expected.choice), found.step_s, expected.step_s);
    CHECK(same(found.choice, expected.choice));
    CHECK(found.step_s == expected.step_s);
    CHECK(found.peak_bytes == expected.peak_bytes);
    CHECK(found.reserved_bytes == expected.reserved_bytes);
    CHECK(found.headroom_bytes == expected.headroom_bytes);
  }
  options.threads = 1;
  const plan::SearchResult alone = plan::search(base, read.run, space, options);
  CHECK(alone.counts.estimated == result.counts.estimated);
  CHECK(alone.counts.simulated == result.counts.simulated);
  CHECK(alone.counts.cut_by_bound == result.counts.cut_by_bound);
  CHECK(alone.counts.illegal == result.counts.illegal);
  for (std::size_t i = 0; i < result.best.size(); ++i) {
    CHECK(same(alone.best[i].choice, result.best[i].choice));
  }
}

}  // namespace

TEST_CASE("the search finds what brute force finds, to the last bit") {
  for (const Case& one : cases()) {
    const io::ReadRun read = test::read_run(one.run);
    INFO(one.name);
    INFO(test::problems_of(read));
    REQUIRE(read.ok());
    SearchSpace space;
    space.num_gpus = {read.run.num_gpus};
    for (const Objective objective : {Objective::throughput, Objective::headroom}) {
      CAPTURE(name(objective));
      check_against_brute_force(read, space, objective);
    }
  }
}
