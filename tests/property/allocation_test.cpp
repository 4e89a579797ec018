// A warm estimate allocates nothing: operator new is counted.
#include "property/random_run.hpp"
#include "property/sample.hpp"
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
