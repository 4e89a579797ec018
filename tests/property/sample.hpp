// How many random runs a test looks at.
#pragma once

#include <cstdlib>
#include <string>

namespace test {

#if defined(SHARDPLAN_INSTRUMENTED) || !defined(NDEBUG)
constexpr int slow_build_divisor = 10;  // instrumented or with assertions: a tenth of the sample
#else
constexpr int slow_build_divisor = 1;
#endif

/// `usual` runs, fewer in a slow build; SHARDPLAN_RANDOM_RUNS overrides both.
inline int sample(int usual) {
  if (const char* const text = std::getenv("SHARDPLAN_RANDOM_RUNS")) return std::atoi(text);
  return usual / slow_build_divisor;
}

}  // namespace test
