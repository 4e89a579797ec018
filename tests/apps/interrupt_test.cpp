// Ctrl-C at a terminal, in the middle of a search.
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/process.hpp"

namespace {

struct Ended {
  int status = -1;
  std::string seen;  ///< what the terminal showed
};

/// Runs a program with standard error on a terminal and presses Ctrl-C when `sign` has been seen there.
Ended interrupt_at(std::vector<std::string> arguments, const std::string& sign, const std::string& out) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  Ended ended;
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child < 0) return ended;
  if (child == 0) {
    if (std::freopen(out.c_str(), "w", stdout) == nullptr) _exit(127);
    execv(argv[0], argv.data());
    _exit(127);
  }
  bool pressed = false;
  std::array<char, 4096> buffer{};
  for (ssize_t count = 0; (count = read(terminal, buffer.data(), buffer.size())) > 0;) {
    ended.seen.append(buffer.data(), static_cast<std::size_t>(count));
    if (pressed || ended.seen.find(sign) == std::string::npos) continue;
    pressed = write(terminal, "\x03", 1) == 1;  // the terminal makes SIGINT of it
  }
  int status = 0;
  waitpid(child, &status, 0);
  close(terminal);
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

}  // namespace

TEST_CASE("a search that is interrupted prints the best so far and says that it is") {
  if (!test::has_terminals()) {
    WARN("skipped: this machine has no pseudo-terminals");
    return;
  }
  const test::TemporaryFolder folder;
  const std::string winner = folder.path() + "/best.json";
  const std::string page = folder.path() + "/page.txt";
  // With the front nothing is cut: minutes on any machine.
  const Ended ended =
      interrupt_at({SHARDPLAN_BINARY, "search", "--model", "deepseek-v3", "--cluster", "hgx-h800", "--gpus", "2048",
                    "--gbs", "15360", "--framework", "megatron", "--pareto", "--threads", "1", "-o", winner},
                   "/s, best so far", page);
  CAPTURE(ended.seen);
  CHECK(ended.status == 130);
  const std::string text = test::read_file(page);
  CAPTURE(text);
  CHECK(text.find("BEST SO FAR") == 0);
  const test::ProcessResult estimate = test::run_process({SHARDPLAN_BINARY, "estimate", winner, "--json"});
  REQUIRE(estimate.status == 0);
  CHECK(nlohmann::json::parse(estimate.out)["memory"]["fits"] == true);
}
