// Every change that is offered does what it says when its flags are pasted.
#include "next_actions.hpp"

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "run_input.hpp"
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/report/number.hpp"
#include "support/catch.hpp"

namespace {

using shardplan::Estimate;
using shardplan::report::Action;

struct Estimated {
  shardplan::io::ReadRun read;
  Estimate estimate;
};

Estimated estimate_of(const std::string& path, const std::string& flags) {
  std::vector<std::string> words = {path};
  std::istringstream stream(flags);
  for (std::string word; stream >> word;) words.push_back(word);
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  shardplan::cli::Command command;
  command.flags = {shardplan::cli::run_flags()};
  const auto line = shardplan::cli::parse_command_line(command, pointers);
  REQUIRE(line.problems.empty());
  Estimated result{shardplan::cli::read_run_of(line.arguments), {}};
  for (const auto& problem : result.read.problems) UNSCOPED_INFO(problem.pointer + ": " + problem.message);
  REQUIRE(result.read.ok());
  shardplan::estimate(result.read.run, result.estimate);
  return result;
}

std::vector<Action> actions_of(const Estimated& now) {
  return shardplan::cli::next_actions(now.read.draft, now.read.run, now.estimate, shardplan::report::Units::gib,
                                      shardplan::catalog::builtin_catalog());
}

/// Checks each action of a run against the run with its flags; returns how many there were.
std::size_t check_actions(const std::string& path, const std::string& flags) {
  CAPTURE(path, flags);
  const Estimated now = estimate_of(path, flags);
  const std::vector<Action> actions = actions_of(now);
  CHECK(actions.size() <= 3);
  for (const Action& action : actions) {
    CAPTURE(action.flags, action.effect);
    const Estimated then = estimate_of(path, flags + " " + action.flags);
    if (now.estimate.fits) {
      CHECK(then.estimate.fits);
      CHECK(then.estimate.throughput.tokens_per_s > now.estimate.throughput.tokens_per_s);
      CHECK_THAT(action.effect,
                 test::StartsWith("MFU " + shardplan::report::percent_text(then.estimate.throughput.mfu) + ","));
      CHECK_THAT(action.effect,
                 test::Contains("peak " + shardplan::report::size_with_unit(then.estimate.peak_bytes,
                                                                            shardplan::report::Units::gib, 1)));
    } else {
      const std::int64_t freed = then.estimate.headroom_bytes - now.estimate.headroom_bytes;
      CHECK(freed > 0);
      CHECK_THAT(action.effect, test::StartsWith("frees " + shardplan::report::size_with_unit(
                                                                freed, shardplan::report::Units::gib, 1)));
      CHECK(then.estimate.fits == (action.effect.find("still") == std::string::npos));
    }
  }
  return actions.size();
}

}  // namespace

TEST_CASE("the example runs' next changes are what the changed runs give") {
  std::size_t offered = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SHARDPLAN_SOURCE_DIR "/configs/runs")) {
    if (entry.path().extension() == ".json") offered += check_actions(entry.path().string(), "");
  }
  CHECK(offered >= 10);
}

TEST_CASE("what does not fit is offered a way out") {
  const std::string run = SHARDPLAN_SOURCE_DIR "/configs/runs/llama-3.1-70b-128xh100.json";
  CHECK(check_actions(run, "--attention eager --mbs 2") > 0);
  CHECK(check_actions(run, "--seq 32768 --gbs 128") > 0);
  CHECK(check_actions(run, "--tp 1 --pp 1 --no-sp") > 0);
}

TEST_CASE("a replicated model is offered sharding") {
  const std::string run = SHARDPLAN_SOURCE_DIR "/configs/runs/llama-3.1-8b-8xh100-fsdp2.json";
  CHECK(check_actions(run, "--set /training/stack=null --set /training/compile=null --framework ddp --set fsdp=null") >
        0);
}
