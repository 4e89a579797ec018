// Requirements, judged: each key on both sides of its limit.
#include "shardplan/plan/requirements.hpp"

#include <algorithm>
#include <string>

#include "shardplan/plan/results.hpp"
#include "shardplan/report/requirement_text.hpp"
#include "support/catch.hpp"

namespace {

using shardplan::Estimate;
using shardplan::name;
using shardplan::Requirements;
using shardplan::plan::judge;
using shardplan::plan::meets;
using shardplan::plan::Requirement;
using shardplan::plan::shortfall;
using shardplan::plan::Verdict;
using shardplan::report::Units;

Estimate sample() {
  Estimate estimate;
  estimate.fits = true;
  estimate.capacity_bytes = std::int64_t{80} << 30;
  estimate.headroom_bytes = std::int64_t{10} << 30;
  estimate.throughput.mfu = 0.4;
  estimate.pipeline.bubble_fraction = 0.1;
  estimate.time.step_s = 20;
  estimate.throughput.tokens_per_s_per_gpu = 500;
  estimate.throughput.gpu_hours_per_1e12_tokens = 300'000;
  return estimate;
}

}  // namespace

TEST_CASE("each requirement holds at its limit and fails beyond") {
  struct Row {
    Requirement requirement;
    double holds, fails;
    std::string text;
  };
  const std::vector<Row> rows = {{Requirement::min_headroom_gib, 10, 10.01, "10.00 GiB < 10.01 GiB"},
                                 {Requirement::min_mfu, 0.4, 0.4000001, "40.00000% < 40.00001%"},
                                 {Requirement::max_bubble, 0.1, 0.05, "10.0% > 5%"},
                                 {Requirement::max_step_s, 20, 19.99, "20.00 s > 19.99 s"},
                                 {Requirement::min_tokens_per_s_per_gpu, 500, 501, "500 < 501"},
                                 {Requirement::max_gpu_hours_per_1e12_tokens, 300'000, 299'000, "300,000 > 299,000"}};
  const Estimate estimate = sample();
  for (const Row& row : rows) {
    for (const bool holds : {true, false}) {
      Requirements require;
      const double limit = holds ? row.holds : row.fails;
      switch (row.requirement) {
        case Requirement::min_headroom_gib: require.min_headroom_gib = limit; break;
        case Requirement::min_mfu: require.min_mfu = limit; break;
        case Requirement::max_bubble: require.max_bubble = limit; break;
        case Requirement::max_step_s: require.max_step_s = limit; break;
        case Requirement::min_tokens_per_s_per_gpu: require.min_tokens_per_s_per_gpu = limit; break;
        default: require.max_gpu_hours_per_1e12_tokens = limit;
      }
      const std::vector<Verdict> verdicts = judge(require, estimate);
      CAPTURE(name(row.requirement), limit);
      REQUIRE(verdicts.size() == 2);  // fits, always
      CHECK(verdicts[1].requirement == row.requirement);
      CHECK(verdicts[1].holds == holds);
      CHECK(meets(require, estimate) == holds);
      CHECK((shortfall(verdicts[1], estimate) == 0) == holds);
      if (!holds) CHECK(shardplan::report::comparison(verdicts[1], Units::gib) == row.text);
    }
  }
}

TEST_CASE("a run must fit unless it says that it need not") {
  Estimate estimate = sample();
  estimate.fits = false;
  estimate.headroom_bytes = -(std::int64_t{8} << 30);
  Requirements require;
  CHECK_FALSE(meets(require, estimate));
  require.fits = true;
  CHECK_FALSE(meets(require, estimate));
  require.fits = false;
  CHECK(meets(require, estimate));
  CHECK(judge(require, estimate).empty());
  CHECK(shortfall(judge({}, estimate).front(), estimate) == Approx(0.1));
}

TEST_CASE("figures are found by word, other word and path, each by one") {
  using shardplan::plan::find_result;
  for (const auto& field : shardplan::plan::result_fields()) {
    CAPTURE(field.word);
    CHECK(find_result(field.word) == &field);
    if (field.path.empty()) continue;
    std::string dotted(field.path.substr(1));
    std::replace(dotted.begin(), dotted.end(), '/', '.');
    CHECK(find_result(field.path) == &field);
    CHECK(find_result(dotted) == &field);
  }
  CHECK(find_result("peak_bytes") == find_result("memory"));
  CHECK(find_result("mfu_causal") == find_result("causal"));
  CHECK(find_result("nothing") == nullptr);
  CHECK(find_result("") == nullptr);
}
