// The search against brute force: every legal layout estimated one by one.
#include "shardplan/plan/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "property/random_run.hpp"
#include "property/sample.hpp"
#include "shardplan/plan/requirements.hpp"
#include "shardplan/plan/validate.hpp"
#include "shardplan/plan/workspace.hpp"
#include "support/catch.hpp"
#include "support/estimated.hpp"

using namespace shardplan;
using plan::Found;
using plan::Objective;
using plan::SearchSpace;

namespace {

std::string named(const Layout& c) {
  return fmt::format(
      "N{} t{} p{}x{} c{} e{}x{} mbs{} {} zero{} {}/{} recompute{} attention{} sp{} offload{}{}{} overlap{}{}{}{}",
      c.num_gpus, c.tensor, c.pipeline, c.virtual_pipeline, c.context, c.expert, c.expert_tensor, c.micro_batch_size,
      name(c.schedule), c.zero_stage, name(c.fsdp), c.shard_group, static_cast<int>(c.recompute.mode),
      static_cast<int>(c.attention), c.sequence_parallel, static_cast<int>(c.offload_optimizer),
      static_cast<int>(c.offload_parameters), static_cast<int>(c.offload_activations), c.overlap_grad_reduce,
      c.overlap_param_gather, c.overlap_tp, c.overlap_p2p);
}

Layout without_overlap(Layout layout) {
  layout.overlap_grad_reduce = layout.overlap_param_gather = layout.overlap_tp = layout.overlap_p2p = false;
  return layout;
}

bool same(const Layout& left, const Layout& right) { return order_of(left, right) == 0; }

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
  plan::for_each_layout(base, space, [&](const Layout& layout) {
    const plan::Draft draft = plan::with_layout(base, layout);
    plan::resolve(draft, run);
    const plan::RuleSet broken = plan::broken_rules(draft, run);
    INFO(named(layout));
    INFO(broken.to_string());
    REQUIRE(broken.none());
    shardplan::estimate(run, workspace, estimate);
    ++brute.layouts;
    if (!estimate.fits) return;
    ++brute.fit;
    if (!plan::meets(require, estimate)) return;
    Found found;
    found.layout = layout;
    found.peak_bytes = estimate.peak_bytes;
    found.reserved_bytes = estimate.reserved_bytes;
    found.headroom_bytes = estimate.headroom_bytes;
    found.step_s = estimate.time.step_s;
    const plan::SearchKey key = plan::key_of(objective, found);
    // The overlaps of one layout follow one another.
    if (brute.sorted.empty() || !same(without_overlap(brute.sorted.back().second.layout), without_overlap(layout))) {
      brute.sorted.emplace_back(key, found);
      return;
    }
    INFO("no overlap makes a step longer");
    REQUIRE(found.step_s >= brute.sorted.back().second.step_s * (1 - 1e-12));
    REQUIRE(found.headroom_bytes == brute.sorted.back().second.headroom_bytes);
  });
  std::sort(brute.sorted.begin(), brute.sorted.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : order_of(a.second.layout, b.second.layout) < 0;
  });
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
      {"megatron, eager",
       text(small_gpt, "dgx-h100", 4, R"("framework":"megatron","global_batch_size":8,"attention":"eager")")},
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
  const plan::ExcessCounts& excess = result.counts.excess;
  CHECK(excess.tenth + excess.whole + excess.more + excess.host == result.counts.does_not_fit);
  REQUIRE(result.best.size() == std::min<std::size_t>(options.top, brute.sorted.size()));
  for (std::size_t i = 0; i < result.best.size(); ++i) {
    const Found& found = result.best[i];
    const Found& expected = brute.sorted[i].second;
    CAPTURE(i, named(found.layout), named(expected.layout), found.step_s, expected.step_s);
    CHECK(same(found.layout, expected.layout));
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
    CHECK(same(alone.best[i].layout, result.best[i].layout));
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

TEST_CASE("a search of one layout gives its estimate, whatever else the run states, and its bounds hold") {
  test::Random random(4'242);
  EstimateWorkspace workspace;
  Estimate estimate;
  int compared = 0, pipelines = 0;
  double tightest = 0;
  for (int i = 0; i < test::sample(6'000); ++i) {
    const std::string text = test::random_run(random).dump();
    const io::ReadRun read = test::read_run(text);
    if (!read.ok()) continue;
    const plan::Draft base = plan::search_base(read.draft, read.run);
    shardplan::estimate(read.run, workspace, estimate);
    INFO(text);
    plan::SearchOptions options;
    options.top = 1;
    const plan::SearchResult result = plan::search(base, read.run, plan::space_of(read.run), options);
    REQUIRE(result.counts.layouts == 1);
    REQUIRE(result.counts.estimated == 1);
    REQUIRE(result.counts.fit == (estimate.fits ? 1 : 0));
    const Found& found = estimate.fits ? result.best.front() : *result.nearest;
    CHECK(found.peak_bytes == estimate.peak_bytes);
    CHECK(found.reserved_bytes == estimate.reserved_bytes);
    CHECK(found.headroom_bytes == estimate.headroom_bytes);
    CHECK(found.step_s == estimate.time.step_s);
    const plan::StepBounds bounds = plan::step_bounds(base, read.run);
    CHECK(bounds.node_s > 0);
    CHECK(bounds.node_s <= bounds.stages_s * (1 + 1e-9));
    CHECK(bounds.stages_s <= estimate.time.step_s);
    ++compared;
    if (read.run.parallel.pipeline > 1) ++pipelines;
    tightest = std::max(tightest, bounds.stages_s / estimate.time.step_s);
  }
  CHECK(compared > test::sample(2'000));
  CHECK(pipelines > test::sample(400));
  CHECK(tightest > 0.99);  // a bound that is never near its step would cut nothing
}

TEST_CASE("the space is every legal layout of its ranges, once") {
  // Every value of every variable, legal or not, against the rules of a run file.
  const io::ReadRun read =
      test::read_run(text(small_gpt, "dgx-h100", 4, R"("framework":"megatron","global_batch_size":8)"));
  const plan::Draft base = plan::search_base(read.draft, read.run);
  SearchSpace space;
  space.num_gpus = {4};
  std::set<std::string> listed;
  plan::for_each_layout(base, space, [&](const Layout& layout) { CHECK(listed.insert(named(layout)).second); });
  std::int64_t legal = 0;
  Layout c = layout_of(read.run);
  const auto try_one = [&] {
    const plan::Draft draft = plan::with_layout(base, c);
    Run run;
    plan::resolve(draft, run);
    if (plan::broken_rules(draft, run).any()) return;
    ++legal;
    CAPTURE(named(c));
    CHECK(listed.count(named(c)) == 1);
  };
  c.overlap_grad_reduce = c.overlap_param_gather = c.overlap_tp = c.overlap_p2p = true;
  for (const int tensor : {2, 4}) {
    for (const int pipeline : {1, 2}) {
      for (const int context : {1, 2}) {
        for (const int chunks : {1, 2, 3, 4}) {
          for (const ScheduleKind kind : {ScheduleKind::one_f_one_b, ScheduleKind::interleaved, ScheduleKind::zb_v}) {
            for (const std::int64_t batch : {1, 2, 3, 4, 8}) {
              for (const int stage : {0, 1, 2}) {
                if (tensor * pipeline * context > 4) continue;
                if (pipeline == 1 && (kind != ScheduleKind::one_f_one_b || chunks > 1)) continue;
                // Uneven chunks are proposed where they share out layers + 2.
                if (8 % (pipeline * chunks) != 0 && 10 % (pipeline * chunks) != 0) continue;
                c.tensor = tensor;
                c.pipeline = pipeline;
                c.context = context;
                c.virtual_pipeline = chunks;
                c.schedule = kind;
                c.micro_batch_size = batch;
                c.zero_stage = stage;
                c.sequence_parallel = true;
                try_one();
              }
            }
          }
        }
      }
    }
  }
  CHECK(legal > 25);
}

TEST_CASE("objectives, requirements and ranges agree with brute force") {
  const io::ReadRun read =
      test::read_run(text(small_gpt, "dgx-h100", 8, R"("framework":"megatron","global_batch_size":16)"));
  SearchSpace space;
  space.num_gpus = {2, 4, 8};
  space.schedule = std::vector<ScheduleKind>{ScheduleKind::one_f_one_b, ScheduleKind::interleaved};
  space.fsdp = std::vector<Fsdp>{};
  space.context = std::vector<int>{1};
  for (std::size_t i = 0; i < names_of<Objective>.size(); ++i) {
    CAPTURE(i);
    check_against_brute_force(read, space, static_cast<Objective>(i));
  }
  Requirements require;
  require.min_headroom_gib = 78;
  require.max_bubble = 0.05;
  check_against_brute_force(read, space, Objective::throughput, require);
  require = {};
  require.min_mfu = 0.05;
  require.max_step_s = 0.2;
  check_against_brute_force(read, space, Objective::headroom, require);
}

TEST_CASE("where what fits does not meet what is required the nearest is the fastest, or leaves the most free") {
  const io::ReadRun read =
      test::read_run(text(small_gpt, "dgx-h100", 8, R"("framework":"megatron","global_batch_size":16)"));
  const plan::Draft base = plan::search_base(read.draft, read.run);
  SearchSpace space;
  space.num_gpus = {8};
  plan::SearchOptions options;
  for (const Objective objective : {Objective::throughput, Objective::headroom}) {
    plan::SearchOptions freely;
    freely.objective = objective;
    const plan::SearchResult free = plan::search(base, read.run, space, freely);
    options.require = {};
    if (objective == Objective::headroom) {
      options.require.min_headroom_gib = 1000;
    } else {
      options.require.min_mfu = 0.99;
    }
    const plan::SearchResult result = plan::search(base, read.run, space, options);
    CHECK(result.best.empty());
    CHECK(result.counts.fit + result.counts.misses > 0);
    REQUIRE(result.nearest);
    CHECK(same(result.nearest->layout, free.best.front().layout));
    CHECK(result.nearest->step_s == free.best.front().step_s);
  }
}

TEST_CASE("numbers of GPUs over several nodes share their folds, and agree with brute force") {
  const io::ReadRun read = test::read_run(
      text(small_moe, "dgx-h100", 8, R"("framework":"megatron","global_batch_size":32,"seq_length":4096)"));
  SearchSpace space;
  space.num_gpus = {4, 8, 16, 32};
  space.schedule = std::vector<ScheduleKind>{ScheduleKind::one_f_one_b, ScheduleKind::interleaved};
  space.zero = std::vector<int>{1};
  space.fsdp = std::vector<Fsdp>{};
  space.micro_batch = std::vector<std::int64_t>{1, 2};
  space.offload = std::vector<Offload>{Offload{}};
  space.overlap_grad_reduce = true;
  space.overlap_param_gather = true;
  for (const Objective objective : {Objective::throughput, Objective::gpus, Objective::price}) {
    check_against_brute_force(read, space, objective);
  }
}

TEST_CASE("the front holds what nothing beats, and all of it") {
  const io::ReadRun read =
      test::read_run(text(small_gpt, "dgx-h100", 8, R"("framework":"megatron","global_batch_size":16)"));
  const plan::Draft base = plan::search_base(read.draft, read.run);
  SearchSpace space;
  space.num_gpus = {4, 8};
  space.schedule = std::vector<ScheduleKind>{ScheduleKind::one_f_one_b, ScheduleKind::interleaved};
  const auto covers = [](const Found& a, const Found& b) {
    return a.step_s <= b.step_s && a.headroom_bytes >= b.headroom_bytes && a.layout.num_gpus <= b.layout.num_gpus;
  };
  std::vector<Found> all;
  plan::for_each_layout(base, space, [&](const Layout& layout) {
    Run run;
    plan::resolve(plan::with_layout(base, layout), run);
    Estimate estimate;
    shardplan::estimate(run, estimate);
    if (!estimate.fits) return;
    all.push_back(
        {layout, estimate.peak_bytes, estimate.reserved_bytes, estimate.headroom_bytes, estimate.time.step_s, false});
  });
  plan::SearchOptions options;
  options.pareto = true;
  options.threads = 2;
  const plan::SearchResult result = plan::search(base, read.run, space, options);
  REQUIRE(result.pareto.size() > 3);
  for (const Found& found : all) {
    CAPTURE(named(found.layout));
    // But for the last bit of a sum something on the front is as good.
    CHECK(std::any_of(result.pareto.begin(), result.pareto.end(), [&](const Found& front) {
      Found nearly = front;
      nearly.step_s *= 1 - 1e-12;
      return covers(nearly, found);
    }));
  }
  for (const Found& a : result.pareto) {
    for (const Found& b : result.pareto) CHECK((&a == &b || !covers(a, b)));
  }
}

TEST_CASE("the rank of a run is one more than how many layouts are better") {
  const io::ReadRun read = test::read_run(
      text(small_gpt, "dgx-h100", 8, R"("framework":"megatron","global_batch_size":16,"micro_batch_size":2)"),
      {{"/parallel/tensor", "2"}, {"/parallel/pipeline", "2"}});
  const plan::Draft base = plan::search_base(read.draft, read.run);
  SearchSpace space;
  space.num_gpus = {8};
  plan::SearchOptions options;
  options.rank_of = &read.run;
  options.top = 1;
  const plan::SearchResult result = plan::search(base, read.run, space, options);
  const Brute brute = brute_force(base, space, Objective::throughput);
  Estimate estimate;
  shardplan::estimate(read.run, estimate);
  const auto better = std::count_if(brute.sorted.begin(), brute.sorted.end(), [&](const auto& item) {
    return item.first < plan::SearchKey{estimate.time.step_s, -static_cast<double>(estimate.headroom_bytes)};
  });
  CHECK(result.rank == 1 + better);
  CHECK(result.rank > 1);
}

TEST_CASE("a stopped search says so and keeps what it has") {
  const io::ReadRun read =
      test::read_run(text(small_gpt, "dgx-h100", 8, R"("framework":"megatron","global_batch_size":16)"));
  SearchSpace space;
  space.num_gpus = {8};
  plan::SearchOptions options;
  const std::atomic<bool> stop{true};
  options.stop = &stop;
  const plan::SearchResult result = plan::search(plan::search_base(read.draft, read.run), read.run, space, options);
  CHECK_FALSE(result.complete);
  CHECK_FALSE(result.best.empty());  // at least of the first nodes
}

TEST_CASE("layers that chunks do not divide are shared out with the ends lighter") {
  const auto chunks = [](int layers, int p, int v) {
    std::vector<int> list;
    plan::layers_of_chunks(layers, p, v, list);
    return list;
  };
  CHECK(chunks(8, 2, 2) == std::vector<int>{2, 2, 2, 2});
  CHECK(chunks(126, 16, 1) == std::vector<int>{7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7});  // Llama 3.1 405B
  CHECK(chunks(61, 4, 1) == std::vector<int>{14, 16, 16, 15});
  CHECK(chunks(7, 8, 1) == std::vector<int>{0, 2, 1, 1, 1, 1, 1, 0});
  CHECK(chunks(2, 4, 1) == std::vector<int>{0, 1, 1, 0});
  CHECK(chunks(2, 8, 1).empty());
  for (int layers = 1; layers < 40; ++layers) {
    for (int p = 1; p < 12; ++p) {
      for (int v = 1; v < 4; ++v) {
        const std::vector<int> list = chunks(layers, p, v);
        if (list.empty()) continue;
        int sum = 0;
        for (const int here : list) sum += here;
        CHECK(sum == layers);
        CHECK(static_cast<int>(list.size()) == p * v);
      }
    }
  }
}
