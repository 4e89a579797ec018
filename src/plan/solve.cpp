#include "shardplan/plan/solve.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "shardplan/core/bytes.hpp"

namespace shardplan::plan {

std::int64_t SolveValues::count() const noexcept {
  if (!values.empty()) return static_cast<std::int64_t>(values.size());
  return last < first ? 0 : (last - first) / step + 1;
}

std::int64_t SolveValues::at(std::int64_t index) const noexcept {
  return values.empty() ? first + index * step : values[static_cast<std::size_t>(index)];
}

namespace {

/// Values in the order in which the search goes: from those that hold to those that do not.
class Line {
 public:
  Line(const SolveValues& values, bool largest) : values_(values), largest_(largest), count_(values.count()) {}

  std::int64_t count() const noexcept { return count_; }
  std::int64_t value(std::int64_t i) const noexcept { return values_.at(largest_ ? i : count_ - 1 - i); }

 private:
  const SolveValues& values_;
  bool largest_;
  std::int64_t count_;
};

/// Every value. The last one that holds, whatever is between.
Solution scan(const Line& line, const std::function<Holds(std::int64_t)>& test, std::int64_t tried) {
  Solution solution;
  solution.scanned = true;
  solution.tried = tried;
  std::optional<std::int64_t> first_legal;
  for (std::int64_t i = 0; i < line.count(); ++i) {
    const std::int64_t value = line.value(i);
    const Holds holds = test(value);
    ++solution.tried;
    if (holds == Holds::illegal) continue;
    if (!first_legal) first_legal = value;
    if (holds == Holds::yes) {
      solution.value = value;
      solution.next.reset();
    } else if (!solution.next) {
      solution.next = value;
    }
  }
  if (!solution.value) solution.next = first_legal;
  return solution;
}

}  // namespace

Solution solve(const SolveValues& values, bool largest, bool monotone, const std::function<Holds(std::int64_t)>& test) {
  const Line line(values, largest);
  if (!monotone) return scan(line, test, 0);
  Solution solution;
  std::int64_t low = -1, high = line.count();  // line[low] holds, line[high] does not
  const auto probe = [&](std::int64_t i) {
    ++solution.tried;
    return test(line.value(i));
  };
  // Doubling first: the answer is often far below the limit.
  for (std::int64_t i = 0, stride = 1; i < high; i += stride, stride *= 2) {
    const Holds holds = probe(i);
    if (holds == Holds::illegal) return scan(line, test, solution.tried);
    if (holds == Holds::no) {
      high = i;
      break;
    }
    low = i;
  }
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    const Holds holds = probe(middle);
    if (holds == Holds::illegal) return scan(line, test, solution.tried);
    (holds == Holds::no ? high : low) = middle;
  }
  // Below the first value that is too much, the last one that holds.
  for (; low >= 0; --low) {
    const Holds holds = probe(low);
    if (holds == Holds::yes) {
      solution.value = line.value(low);
      break;
    }
    if (holds != Holds::illegal) high = low;
  }
  if (high < line.count()) solution.next = line.value(high);
  return solution;
}

namespace {

/// Of two numbers that differ the first, with as many digits as tell them apart. `text`: (number, digits more).
template <class Text>
std::string apart(double actual, double limit, const Text& text) {
  constexpr int most = 12;
  int more = 0;
  while (more < most && text(actual, more) == text(limit, more)) ++more;
  return text(actual, more);
}

std::string percent_apart(double actual, double limit) {
  return apart(100 * actual, 100 * limit,
               [](double value, int more) { return fmt::format("{:.{}f}%", value, 1 + more); });
}

std::string number_apart(double actual, double limit) {
  return apart(actual, limit, [](double value, int more) { return fmt::format("{:.{}g}", value, 4 + more); });
}

}  // namespace

std::string missed(const Run& run, const Estimate& estimate) {
  std::string words;
  const auto add = [&](const std::string& what) { words += (words.empty() ? "" : ", ") + what; };
  const auto size = [](std::int64_t bytes) {
    const auto value = static_cast<double>(bytes);
    return value < gib / 10 ? fmt::format("{:.1f} MiB", 1024 * value / gib) : fmt::format("{:.2f} GiB", value / gib);
  };
  const Requirements& require = run.require;
  const double headroom = static_cast<double>(estimate.headroom_bytes) / gib;
  const ThroughputEstimate& t = estimate.throughput;
  if (!estimate.fits_gpu) {
    add(size(-estimate.headroom_bytes) + " over");
  } else if (!estimate.fits) {
    add("too much for the host");
  } else if (require.min_headroom_gib && headroom < *require.min_headroom_gib) {
    const std::string free = headroom < 0.1 ? size(estimate.headroom_bytes)
                                            : apart(headroom, *require.min_headroom_gib, [](double value, int more) {
                                                return fmt::format("{:.{}f} GiB", value, 2 + more);
                                              });
    add(fmt::format("{} free, below min_headroom_gib {:.10g}", free, *require.min_headroom_gib));
  }
  if (require.min_mfu && t.mfu < *require.min_mfu) {
    add(fmt::format("MFU {}, below min_mfu {:.10g}%", percent_apart(t.mfu, *require.min_mfu), 100 * *require.min_mfu));
  }
  if (require.max_bubble && estimate.pipeline.bubble_fraction > *require.max_bubble) {
    add(fmt::format("bubble {}, above max_bubble {:.10g}%",
                    percent_apart(estimate.pipeline.bubble_fraction, *require.max_bubble), 100 * *require.max_bubble));
  }
  if (require.max_step_s && estimate.time.step_s > *require.max_step_s) {
    add(fmt::format("step {} s, above max_step_s {:.10g}", number_apart(estimate.time.step_s, *require.max_step_s),
                    *require.max_step_s));
  }
  if (require.min_tokens_per_s_per_gpu && t.tokens_per_s_per_gpu < *require.min_tokens_per_s_per_gpu) {
    add(fmt::format("{} tokens/s/GPU, below min_tokens_per_s_per_gpu {:.10g}",
                    number_apart(t.tokens_per_s_per_gpu, *require.min_tokens_per_s_per_gpu),
                    *require.min_tokens_per_s_per_gpu));
  }
  if (require.max_gpu_hours_per_1e12_tokens && t.gpu_hours_per_1e12_tokens > *require.max_gpu_hours_per_1e12_tokens) {
    add(fmt::format("{} GPU-hours per 1e12 tokens, above max_gpu_hours_per_1e12_tokens {:.10g}",
                    number_apart(t.gpu_hours_per_1e12_tokens, *require.max_gpu_hours_per_1e12_tokens),
                    *require.max_gpu_hours_per_1e12_tokens));
  }
  return words;
}

}  // namespace shardplan::plan
