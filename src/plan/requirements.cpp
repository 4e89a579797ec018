#include "shardplan/plan/requirements.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "shardplan/core/bytes.hpp"

namespace shardplan::plan {
namespace {

/// Calls visit(verdict) for each requirement that is stated.
template <class Visitor>
void each_verdict(const Requirements& require, const Estimate& estimate, const Visitor& visit) {
  if (require.fits.value_or(true)) visit(Verdict{Requirement::fits, 1, estimate.fits ? 1.0 : 0.0, estimate.fits});
  const auto number = [&](Requirement requirement, const std::optional<double>& limit, double actual) {
    if (!limit) return;
    visit(Verdict{requirement, *limit, actual, is_minimum(requirement) ? actual >= *limit : actual <= *limit});
  };
  const ThroughputEstimate& throughput = estimate.throughput;
  number(Requirement::min_headroom_gib, require.min_headroom_gib, static_cast<double>(estimate.headroom_bytes) / gib);
  number(Requirement::min_mfu, require.min_mfu, throughput.mfu);
  number(Requirement::max_bubble, require.max_bubble, estimate.pipeline.bubble_fraction);
  number(Requirement::max_step_s, require.max_step_s, estimate.time.step_s);
  number(Requirement::min_tokens_per_s_per_gpu, require.min_tokens_per_s_per_gpu, throughput.tokens_per_s_per_gpu);
  number(Requirement::max_gpu_hours_per_1e12_tokens, require.max_gpu_hours_per_1e12_tokens,
         throughput.gpu_hours_per_1e12_tokens);
}

}  // namespace

std::vector<Verdict> judge(const Requirements& require, const Estimate& estimate) {
  std::vector<Verdict> verdicts;
  each_verdict(require, estimate, [&](const Verdict& verdict) { verdicts.push_back(verdict); });
  return verdicts;
}

bool meets(const Requirements& require, const Estimate& estimate) noexcept {
  bool all = true;
  each_verdict(require, estimate, [&](const Verdict& verdict) { all = all && verdict.holds; });
  return all;
}

double shortfall(const Verdict& verdict, const Estimate& estimate) noexcept {
  if (verdict.holds) return 0;
  constexpr double least = 1e-6;  // host memory may be what is lacking
  if (verdict.requirement == Requirement::fits) {
    const double capacity = static_cast<double>(std::max<std::int64_t>(estimate.capacity_bytes, 1));
    return std::max(least, -static_cast<double>(estimate.headroom_bytes) / capacity);
  }
  const double limit = std::max(std::abs(verdict.limit), 1e-12);
  return std::max(least, std::abs(verdict.actual - verdict.limit) / limit);
}

}  // namespace shardplan::plan
