// A warm estimate allocates nothing, and no layout of a search does: operator new is counted.
#include "property/random_run.hpp"
#include "property/sample.hpp"
#include "shardplan/plan/search.hpp"
#include "shardplan/plan/workspace.hpp"
#include "support/catch.hpp"
#include "support/counting_new.hpp"
#include "support/estimated.hpp"
#include "support/process.hpp"

using namespace shardplan;

namespace {

long allocations_of_second_estimate(const Run& run) {
  EstimateWorkspace workspace;
  Estimate result;
  estimate(run, workspace, result);
  const long before = test::allocations();
  estimate(run, workspace, result);
  return test::allocations() - before;
}

}  // namespace

TEST_CASE("a warm estimate of every example run allocates nothing") {
  for (const std::string& file : test::run_files()) {
    const io::ReadRun read = test::read_run(test::read_file(file));
    CAPTURE(file, test::problems_of(read));
    REQUIRE(read.ok());
    CHECK(allocations_of_second_estimate(read.run) == 0);
  }
}

TEST_CASE("a warm estimate of random runs allocates nothing") {
  test::Random random(3);
  for (int i = 0; i < test::sample(300); ++i) {
    const std::string text = test::random_run(random).dump();
    const io::ReadRun read = test::read_run(text);
    if (!read.ok()) continue;
    INFO(text);
    CHECK(allocations_of_second_estimate(read.run) == 0);
  }
}

TEST_CASE("a search allocates for its lists and for no layout") {
  const io::ReadRun read = test::read_run(
      R"({"model":"llama-3.1-8b","cluster":"dgx-h100","num_gpus":16,"training":{"framework":"megatron","global_batch_size":64}})");
  REQUIRE(read.ok());
  const auto search = [&](std::int64_t recomputations, std::int64_t& layouts) {
    plan::SearchSpace space;
    space.num_gpus = {16};
    space.recompute.emplace();
    for (std::int64_t n = 1; n <= recomputations; ++n) {
      space.recompute->push_back({RecomputeMode::first_n, static_cast<int>(n), 0});
    }
    plan::SearchOptions options;
    options.objective = plan::Objective::headroom;  // nothing is cut
    const long before = test::allocations();
    const plan::SearchResult result = plan::search(plan::search_base(read.draft, read.run), read.run, space, options);
    layouts = result.counts.estimated;
    return test::allocations() - before;
  };
  std::int64_t few = 0, many = 0;
  const long of_few = search(1, few);
  const long of_many = search(8, many);
  CAPTURE(of_few, of_many, few, many);
  CHECK(many - few > 100'000);
  // The lists grow by doubling.
  CHECK(of_many - of_few < 500);
}
