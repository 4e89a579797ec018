#include "trials.hpp"

#include <algorithm>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/plan/validate.hpp"

namespace shardplan::cli {
Shortage shortage_of(const Run& run, const Estimate& estimate) {
  const auto beyond = [](std::int64_t needed, double there) {
    return there > 0 ? needed - static_cast<std::int64_t>(there) : 0;
  };
  return {-estimate.headroom_bytes, beyond(estimate.host_bytes_per_node, run.cluster.host.memory_bytes),
          beyond(estimate.nvme_bytes_per_node, run.cluster.host.nvme_bytes)};
}

bool is_tight(const Run& run, const Estimate& estimate) {
  const Warnings warnings = warnings_of(run, estimate);
  return std::any_of(warnings.begin(), warnings.end(), [](const Warning& w) { return w.code == "tight_memory"; });
}

double missed_by(const std::vector<plan::Verdict>& verdicts, const Estimate& estimate) {
  double sum = 0;
  for (const plan::Verdict& verdict : verdicts) sum += plan::shortfall(verdict, estimate);
  return sum;
}

std::int64_t step_tokens(const Run& run) { return run.training.global_batch_size * run.training.seq_length; }

namespace {

/// What a step costs to simulate: a very long one is simulated shorter (plan/pipeline.cpp), to about a quarter of that.
std::int64_t simulated_passes(const Run& run) {
  constexpr std::int64_t longest = 1 << 22;
  const std::int64_t passes = run.microbatches() * run.parallel.pipeline * run.parallel.virtual_pipeline;
  return passes > longest ? longest / 4 : passes;
}

}  // namespace

bool Trials::run(const std::vector<const Lever*>& levers, std::vector<Tried>& tried) {
  change_of(draft_, levers, catalog_, change_);
  plan::resolve(change_.draft, run_);
  if (plan::broken_rules(change_.draft, run_).any()) return false;
  const std::int64_t passes = simulated_passes(run_);
  if (passes > passes_left_) {
    ++left_out_;
    return false;
  }
  passes_left_ -= passes;
  estimate(run_, workspace_, result_);
  std::vector<plan::Verdict> verdicts = plan::judge(run_.require, result_);
  const double missed = missed_by(verdicts, result_);
  tried.push_back({change_.flags, change_.reason, result_.fits,
                   result_.fits && result_.headroom_bytes > result_.capacity_bytes / 50, is_tight(run_, result_),
                   std::move(verdicts), missed, result_.peak_bytes, result_.headroom_bytes, shortage_of(run_, result_),
                   step_tokens(run_), result_.time.step_s, result_.throughput.tokens_per_s, result_.throughput.mfu});
  return true;
}

}  // namespace shardplan::cli
