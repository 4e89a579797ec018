// Every change that is offered does what it says when its flags are pasted.
#include "shardplan/advise/next_actions.hpp"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "command_line.hpp"
#include "run_input.hpp"
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/report/advice_text.hpp"
#include "shardplan/report/number.hpp"
#include "support/catch.hpp"

namespace {

using shardplan::Estimate;
using shardplan::report::Action;

struct Estimated {
  shardplan::io::ReadRun read;
  Estimate estimate;
};

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// Flags with others over them, as a user edits the line: a flag that is there gets its new value.
std::string edited(const std::string& flags, const std::string& more) {
  const std::vector<std::string> changes = words_of(more);
  const auto is_replaced = [&](const std::string& flag) {
    const bool dropped = flag == "--zero" && more.find("--fsdp") != std::string::npos;
    const bool opposite = flag == "--no-sp" && more.find("--sp") != std::string::npos;
    return dropped || opposite || (flag != "--set" && std::find(changes.begin(), changes.end(), flag) != changes.end());
  };
  std::string line;
  bool skip = false;
  const std::vector<std::string> words = words_of(flags);
  for (std::size_t i = 0; i < words.size(); ++i) {
    // --set fsdp=null is the flag --fsdp in other words.
    const bool set = words[i] == "--set" && i + 1 < words.size();
    if (words[i].rfind("--", 0) == 0)
      skip = is_replaced(set ? "--" + words[i + 1].substr(0, words[i + 1].find('=')) : words[i]);
    if (!skip) line += words[i] + " ";
  }
  return line + more;
}

Estimated estimate_of(const std::string& path, const std::string& flags) {
  std::vector<std::string> words;
  if (!path.empty()) words.push_back(path);
  for (const std::string& word : words_of(flags)) words.push_back(word);
  std::vector<const char*> pointers;
  for (const std::string& word : words) pointers.push_back(word.c_str());
  shardplan::cli::Command command;
  command.most_words = 1;
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
  const auto [actions, left_out] = shardplan::advise::next_actions(now.read.draft, now.read.run, now.estimate,
                                                                   shardplan::catalog::builtin_catalog());
  CHECK(left_out == 0);
  return shardplan::report::actions_of(actions, now.read.run, now.estimate, shardplan::report::Units::gib);
}

bool is_tight(const Estimated& run) {
  const auto warnings = shardplan::warnings_of(run.read.run, run.estimate);
  return std::any_of(warnings.begin(), warnings.end(), [](const auto& w) { return w.code == "tight_memory"; });
}

bool lacks_host_memory(const Estimated& run) {
  const double there = run.read.run.cluster.host.memory_bytes;
  return there > 0 && static_cast<double>(run.estimate.host_bytes_per_node) > there;
}

/// Checks each action of a run against the run with its flags; returns how many there were.
std::size_t check_actions(const std::string& path, const std::string& flags) {
  CAPTURE(path, flags);
  const Estimated now = estimate_of(path, flags);
  const std::vector<Action> actions = actions_of(now);
  CHECK(actions.size() <= 3);
  for (const Action& action : actions) {
    CAPTURE(action.flags, action.effect);
    const Estimated then = estimate_of(path, edited(flags, action.flags));
    if (then.read.run.training.framework != now.read.run.training.framework) {
      CHECK_THAT(action.flags, test::Contains("--framework "));
    }
    const bool then_tight = is_tight(then) && !is_tight(now);
    CHECK((then_tight && then.estimate.fits) == (action.effect.find("tight_memory") != std::string::npos));
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
      const bool host = now.estimate.fits_gpu;
      if (!host) {
        CHECK(freed > 0);
        CHECK_THAT(action.effect, test::Contains("frees " + shardplan::report::size_with_unit(
                                                                freed, shardplan::report::Units::gib, 1)));
      }
      CHECK(then.estimate.fits == (action.effect.find("still") == std::string::npos));
      CHECK((action.effect.find("host memory") != std::string::npos) ==
            (host || (then.estimate.fits_gpu && !then.estimate.fits) || lacks_host_memory(then)));
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

TEST_CASE("what no single change makes fit is offered pairs, then GPUs, then the nearest") {
  struct Row {
    const char* flags;
    const char* offered;  ///< words of the first line
  };
  const Row rows[] = {
      {"--model llama-3.1-70b --cluster dgx-h100 --gpus 1", "--gpus "},  // on one GPU offload crawls
      {"--model llama-3.1-405b --cluster dgx-h100 --gpus 16 --tp 8 --zero 1", "--gpus "},
      {"--model llama-3.1-405b --cluster dgx-h100 --gpus 504 --tp 8 --pp 9 --zero 1", "--offload optimizer=cpu"},
      {"--model llama-3.1-70b --cluster workstation-1x4090 --gpus 1 --framework deepspeed --zero 3", ""},
      {"--model deepseek-v3 --cluster dgx-h100 --gpus 64", "--gpus "},
      {"--model deepseek-v3 --cluster dgx-h100 --gpus 64 --framework ddp", "--gpus "},
  };
  for (const Row& row : rows) {
    CHECK(check_actions("", row.flags) > 0);
    const std::vector<Action> actions = actions_of(estimate_of("", row.flags));
    REQUIRE_FALSE(actions.empty());
    CAPTURE(row.flags, actions.front().flags, actions.front().effect);
    CHECK_THAT(actions.front().flags, test::StartsWith(row.offered));
  }
}

TEST_CASE("nothing is offered that the hardware cannot do") {
  const auto none_has = [](const char* flags, std::vector<const char*> words) {
    for (const Action& action : actions_of(estimate_of("", flags))) {
      CAPTURE(flags, action.flags);
      for (const char* const word : words) CHECK(action.flags.find(word) == std::string::npos);
    }
  };
  none_has("--model gpt2-xl --cluster dgx-1v-16gb --gpus 8 --precision fp16 --attention eager --mbs 8",
           {"--attention"});
  none_has("--model llama-3.1-8b --cluster dgx-h100 --gpus 1 --lora-rank 8", {"--zero", "--fsdp"});
  none_has("--model llama-3.1-8b --cluster dgx-h100 --gpus 8 --tp 8", {"--zero", "--fsdp"});
}

TEST_CASE("a step of another size is compared by its tokens, without the word step") {
  const Estimated now = estimate_of("", "--model llama-3.1-8b --cluster dgx-h100 --gpus 8 --mbs 64 --framework fsdp");
  bool compared = false;
  for (const Action& action : actions_of(now)) {
    CAPTURE(action.effect);
    const bool tokens = action.effect.find("tokens/s (") != std::string::npos;
    compared = compared || tokens;
    CHECK((tokens && action.effect.find("step") != std::string::npos) == false);
  }
  CHECK(compared);
}

TEST_CASE("where the host is short of memory the changes say so") {
  const std::string run = SHARDPLAN_SOURCE_DIR "/configs/runs/llama-3.1-8b-8xh200-zero3-offload.json";
  CHECK(check_actions(run, "--set cluster.host.memory_gib=64") > 0);
}
