// Random run files: every framework, kind of model and option, most of them legal.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace test {

/// SplitMix64: the same numbers on every machine and library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  /// One of 0 .. n-1.
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(n)); }
  /// True in `percent` of 100 cases.
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  T pick(const std::vector<T>& choices) {
    return choices[static_cast<std::size_t>(below(static_cast<std::int64_t>(choices.size())))];
  }

 private:
  std::uint64_t state_;
};

/// A model of the generic type whose widths suit `tensor`, `expert` and the pipeline.
struct Degrees {
  std::int64_t tensor = 1, pipeline = 1, virtual_pipeline = 1, context = 1, data = 1, expert = 1, expert_tensor = 1;

  std::int64_t world() const { return tensor * pipeline * context * data; }
};

/// A model object: dense (multi-head, grouped-query), latent attention, experts, sliding windows, any norm and
/// position.
nlohmann::json random_model(Random& random, const Degrees& degrees, std::int64_t longest_sequence);

/// A whole run file; `framework` is one of the six, or "" for any.
nlohmann::json random_run(Random& random, const std::string& framework = {});

}  // namespace test
