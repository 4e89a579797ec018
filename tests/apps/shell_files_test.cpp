// Completions complete, in the shells themselves where they are installed; every command and flag is in each of them.
#include "shell_files.hpp"

#include <regex>
#include <string>
#include <vector>

#include "command.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"

namespace {

using shardplan::cli::Command;
using shardplan::cli::Flag;

bool is_installed(const std::string& shell) {
  if (test::run_process({"/usr/bin/env", shell, "-c", "true"}).status == 0) return true;
  WARN(shell + " is not installed");
  return false;
}

}  // namespace

TEST_CASE("every command and flag is in the completions and the man page") {
  const std::string bash = shardplan::cli::bash_completion();
  const std::string zsh = shardplan::cli::zsh_completion();
  const std::string fish = shardplan::cli::fish_completion();
  const std::string man = shardplan::cli::man_page();
  for (const Command& command : shardplan::cli::commands()) {
    const std::string name(command.name);
    CAPTURE(name);
    CHECK_THAT(bash, test::Contains("      " + name + ") flags="));
    CHECK_THAT(zsh, test::Contains("        " + name + ")\n"));
    CHECK_THAT(fish, test::Contains("-a " + name + " -d"));
    CHECK_THAT(man, test::Contains("\"shardplan " + name + " "));
    for (const std::span<const Flag> rows : command.flags) {
      for (const Flag& flag : rows) {
        const std::string long_name(flag.name);
        CAPTURE(long_name);
        CHECK_THAT(bash, test::Contains("--" + long_name));
        CHECK_THAT(zsh, test::Contains("--" + long_name));
        CHECK_THAT(fish, test::Contains("__fish_seen_subcommand_from " + name + "' -l " + long_name + " "));
        std::string escaped;
        for (const char c : long_name) escaped += c == '-' ? std::string("\\-") : std::string(1, c);
        CHECK_THAT(man, test::Contains("\\-\\-" + escaped));
      }
    }
  }
}

TEST_CASE("bash completes commands, flags, values and words") {
  if (!is_installed("bash")) return;
  const test::TemporaryFolder folder;
  folder.write("shardplan.bash", shardplan::cli::bash_completion());
  folder.write("my.json", "{}");
  folder.write("my.txt", "");
  const auto complete = [&](const std::string& words, int at) {
    const std::string line = ". ./shardplan.bash; COMP_WORDS=(" + words + "); COMP_CWORD=" + std::to_string(at) +
                             "; _shardplan; echo \"${COMPREPLY[*]}\"";
    const test::ProcessResult result = test::run_process({"/usr/bin/env", "bash", "-uc", line}, {}, folder.path());
    CAPTURE(words, result.err);
    CHECK(result.err.empty());
    return result.out;
  };
  CHECK(complete("shardplan sw", 1) == "sweep\n");
  CHECK(complete("shardplan estimate --sched", 2) == "--schedule\n");
  CHECK(complete("shardplan estimate --precision f", 3) == "fp32 fp16 fp8\n");
  CHECK(complete("shardplan check --format ju", 3) == "junit\n");
  CHECK(complete("shardplan estimate --format ju", 3) == "\n");
  CHECK(complete("shardplan estimate --color = al", 4) == "always\n");
  CHECK(complete("shardplan schema r", 2) == "run\n");
  CHECK(complete("shardplan check m", 2) == "my.json\n");
  CHECK(complete("shardplan search --objective h", 3) == "headroom\n");
  CHECK(complete("shardplan search --why-not tp", 3) == "tp=\n");
  CHECK(complete("shardplan explain loss-sc", 2) == "loss-scaling\n");
  CHECK(complete("shardplan solve lora-r", 2) == "lora-rank\n");
  CHECK_THAT(complete("shardplan sweep --plot m", 3), test::Contains("my.txt"));
  CHECK_THAT(complete("shardplan sweep --plot m", 3), test::Contains("my.json"));
  CHECK(complete("shardplan estimate --model llama-3.1-4", 3) == "llama-3.1-405b\n");
}

TEST_CASE("zsh's helpers are all defined") {
  const std::string zsh = shardplan::cli::zsh_completion();
  const std::regex helper("_shardplan_[a-z_-]*");
  std::size_t used = 0;
  for (std::sregex_iterator it(zsh.begin(), zsh.end(), helper), end; it != end; ++it, ++used) {
    CAPTURE(it->str());
    CHECK_THAT(zsh, test::Contains("\n" + it->str() + "() {"));
  }
  CHECK(used > 10);
}

TEST_CASE("fish completes commands, flags, values and words") {
  if (!is_installed("fish")) return;
  const test::TemporaryFolder folder;
  folder.write("shardplan.fish", shardplan::cli::fish_completion());
  const auto complete = [&](const std::string& line) {
    const test::ProcessResult result = test::run_process(
        {"/usr/bin/env", "fish", "--no-config", "-c", "source shardplan.fish; complete -C '" + line + "' | cut -f 1"},
        {}, folder.path(), {"HOME=" + folder.path()});
    CAPTURE(line, result.err);
    return result.out;
  };
  CHECK(complete("shardplan sw") == "sweep\n");
  CHECK(complete("shardplan estimate --sched") == "--schedule\n");
  CHECK(complete("shardplan check --format ju") == "junit\n");
  CHECK(complete("shardplan schema r") == "run\n");
  CHECK(complete("shardplan estimate --model llama-3.1-4") == "llama-3.1-405b\n");
}

TEST_CASE("zsh completes commands, flags, values and words") {
  if (!is_installed("zsh")) return;
  if (!test::has_terminals()) {
    WARN("skipped: this machine has no pseudo-terminals");
    return;
  }
  const test::TemporaryFolder folder;
  folder.write("_shardplan", shardplan::cli::zsh_completion());
  // A terminal of its own; what it shows between the marks is what was completed.
  folder.write("driver.zsh", R"(zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT= RPROMPT= TERM=dumb; stty -echo; fpath=($PWD \$fpath); autoload -Uz compinit; compinit -u -d $PWD/dump; shardplan() { print -r -- \"<\$*>\" }; print ready"
zpty -r shell line '*ready*'
zpty -w -n shell "shardplan $1"$'\t\n'
zpty -r shell line '*<*>*'
print -r -- ${${line##*<}%%>*}
)");
  const auto complete = [&](const std::string& line) {
    const test::ProcessResult result = test::run_process(
        {"/usr/bin/env", "timeout", "20", "zsh", "-f", folder.path() + "/driver.zsh", line}, {}, folder.path());
    CAPTURE(line, result.err, result.out);
    CHECK(result.status == 0);
    return result.out;
  };
  CHECK(complete("swe") == "sweep\n");
  CHECK(complete("estimate --sched") == "estimate --schedule\n");
  CHECK(complete("check --format ju") == "check --format junit\n");
  CHECK(complete("schema r") == "schema run\n");
  CHECK(complete("estimate --model llama-3.1-4") == "estimate --model llama-3.1-405b\n");
  CHECK(complete("explain loss-sc") == "explain loss-scaling\n");
  CHECK(complete("solve lora-r") == "solve lora-rank\n");
}
