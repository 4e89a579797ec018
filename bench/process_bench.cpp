// What one call of a program costs: wall time and resident memory of many runs.
//   process_bench [--runs N] [--max-ms T] [--max-mib M] PROGRAM ARGUMENT...
// Prints median, least and largest; exits 1 when the median time or the largest memory passes its limit.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

struct Cost {
  double milliseconds = 0;
  double mebibytes = 0;
};

/// One run with its output thrown away; exits the bench when the program does not run or answers with an error.
Cost run_once(char** arguments) {
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    execv(arguments[0], arguments);
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
  if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) {
    std::fprintf(stderr, "%s failed (status %d)\n", arguments[0], status);
    std::exit(2);
  }
  return {time.count(), static_cast<double>(usage.ru_maxrss) / 1024};
}

}  // namespace

int main(int argc, char** argv) {
  int runs = 200;
  double max_ms = 0;
  double max_mib = 0;
  int at = 1;
  for (; at + 1 < argc && std::strncmp(argv[at], "--", 2) == 0; at += 2) {
    if (std::strcmp(argv[at], "--runs") == 0) runs = std::max(1, std::atoi(argv[at + 1]));
    if (std::strcmp(argv[at], "--max-ms") == 0) max_ms = std::atof(argv[at + 1]);
    if (std::strcmp(argv[at], "--max-mib") == 0) max_mib = std::atof(argv[at + 1]);
  }
  if (at >= argc) {
    std::fprintf(stderr, "process_bench [--runs N] [--max-ms T] [--max-mib M] PROGRAM ARGUMENT...\n");
    return 2;
  }
  for (int i = 0; i < 5; ++i) run_once(argv + at);  // page cache
  std::vector<double> times;
  double memory = 0;
  for (int i = 0; i < runs; ++i) {
    const Cost cost = run_once(argv + at);
    times.push_back(cost.milliseconds);
    memory = std::max(memory, cost.mebibytes);
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  std::printf("%d runs: median %.2f ms, least %.2f ms, largest %.2f ms; at most %.1f MiB resident\n", runs, median,
              times.front(), times.back(), memory);
  const bool within = (max_ms <= 0 || median <= max_ms) && (max_mib <= 0 || memory <= max_mib);
  if (!within) std::printf("over the limit of %.1f ms or %.1f MiB\n", max_ms, max_mib);
  return within ? 0 : 1;
}
