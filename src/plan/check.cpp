#include "shardplan/plan/check.hpp"

#include <algorithm>
#include <cmath>

namespace shardplan::plan {

Figures figures_of(const Estimate& estimate) noexcept {
  Figures figures;
  figures.capacity_bytes = estimate.capacity_bytes;
  figures.peak_bytes = estimate.peak_bytes;
  figures.reserved_bytes = estimate.reserved_bytes;
  figures.headroom_bytes = estimate.headroom_bytes;
  figures.fits = estimate.fits;
  figures.step_s = estimate.time.step_s;
  figures.tokens_per_s_per_gpu = estimate.throughput.tokens_per_s_per_gpu;
  figures.mfu = estimate.throughput.mfu;
  figures.bubble_fraction = estimate.pipeline.bubble_fraction;
  figures.gpu_hours = estimate.throughput.gpu_hours_per_1e12_tokens;
  if (estimate.throughput.has_price) figures.price = estimate.throughput.price_per_1e12_tokens;
  return figures;
}

const std::string& place_of(const CheckedRun& run, const Diagnostic& problem) noexcept {
  return problem.line > 0 ? problem.file : run.path;
}

CheckCounts count(std::span<const CheckedRun> runs) noexcept {
  CheckCounts counts;
  for (const CheckedRun& run : runs) {
    if (run.status == CheckStatus::pass) ++counts.passed;
    if (run.status == CheckStatus::fail) ++counts.failed;
    if (run.status == CheckStatus::error) ++counts.errors;
  }
  return counts;
}

double badness(const CheckedRun& run) noexcept {
  if (run.status == CheckStatus::pass) return 0;
  if (run.status == CheckStatus::error) return 1e12;
  double sum = 0;
  for (const Checked& checked : run.requirements) {
    const Verdict& verdict = checked.verdict;
    if (verdict.holds) continue;
    if (verdict.requirement == Requirement::fits) {
      const double capacity = static_cast<double>(std::max<std::int64_t>(run.figures.capacity_bytes, 1));
      sum += 1e6 * (1 + std::max(0.0, -static_cast<double>(run.figures.headroom_bytes) / capacity));
    } else {
      sum += std::min(1e3, std::abs(verdict.actual - verdict.limit) / std::max(std::abs(verdict.limit), 1e-12));
    }
  }
  return sum;
}

}  // namespace shardplan::plan
