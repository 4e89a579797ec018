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
  double milliseconds = 0;      ///< from fork to exit
  double cpu_milliseconds = 0;  ///< of it, the process's own
  double mebibytes = 0;
};

double milliseconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

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
  return {time.count(), milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime),
          static_cast<double>(usage.ru_maxrss) / 1024};
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
  std::vector<double> times, cpu;
  double memory = 0;
  for (int i = 0; i < runs; ++i) {
    const Cost cost = run_once(argv + at);
    times.push_back(cost.milliseconds);
    cpu.push_back(cost.cpu_milliseconds);
    memory = std::max(memory, cost.mebibytes);
  }
  const double middle = median(times);
  std::printf("%d runs: median %.2f ms (%.2f ms of CPU), least %.2f ms, largest %.2f ms; at most %.1f MiB resident\n",
              runs, middle, median(cpu), *std::min_element(times.begin(), times.end()),
              *std::max_element(times.begin(), times.end()), memory);
  const bool within = (max_ms <= 0 || middle <= max_ms) && (max_mib <= 0 || memory <= max_mib);
  if (!within) std::printf("over the limit of %.1f ms or %.1f MiB\n", max_ms, max_mib);
  return within ? 0 : 1;
}
