// Work spread over the cores.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <system_error>
#include <thread>
#include <vector>

namespace shardplan {

/// Cores of this machine, from 1 to `most`.
inline std::size_t cores(std::size_t most = 256) noexcept {
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, most);
}

/// Calls work(thread, index) for each index below `count`; each of the threads takes the next index when it is done
/// with one. The caller is thread 0; it returns when all are done. What the work writes belongs to its index or its
/// thread, so that a result does not depend on the number of threads.
template <class Work>
void share_out(std::size_t threads, std::size_t count, Work&& work) {
  std::atomic<std::size_t> next{0};
  const auto run = [&](std::size_t thread) {
    for (std::size_t i = next++; i < count; i = next++) work(thread, i);
  };
  const std::size_t helpers = std::min(threads, count);
  std::vector<std::thread> others;
  try {
    for (std::size_t thread = 1; thread < helpers; ++thread) others.emplace_back(run, thread);
  } catch (const std::system_error&) {  // the machine gives no more: those that run share the work
  }
  run(0);
  for (std::thread& other : others) other.join();
}

}  // namespace shardplan
