#include "shardplan/advise/trials.hpp"

#include <fmt/format.h>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/io/stack_file.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/plan/validate.hpp"

namespace shardplan::advise {

using plan::Draft;
using plan::Field;

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

bool follow_framework(Draft& draft, const io::CatalogSource& catalog) {
  Training& training = draft.run.training;
  const Framework before = training.stack.framework;
  if (!draft.given.has(Field::framework)) training.framework = plan::default_framework(draft);
  if (training.framework == before) return false;
  if (!draft.given.has(Field::stack)) training.stack = io::default_stack(training.framework, catalog);
  return true;
}

Draft open_statement(const Draft& draft, const Run& run, const Estimate& estimate) {
  Draft open = draft;
  const bool leave = !estimate.fits && facts_of(run.training.framework).data_only;
  if (leave && !draft.given.has(Field::stack)) open.given.remove(Field::framework);
  return open;
}

bool Trial::resolve(const Draft& draft) {
  plan::resolve(draft, run_);
  broken_ = plan::broken_rules(draft, run_);
  return broken_.none();
}

const Estimate& Trial::estimate(const Run& run) {
  shardplan::estimate(run, shared_ != nullptr ? *shared_ : own_, estimate_);
  return estimate_;
}

namespace {

/// What a step costs to simulate: a very long one is simulated shorter (plan/pipeline.cpp), to about a quarter of that.
std::int64_t simulated_passes(const Run& run) {
  constexpr std::int64_t longest = 1 << 22;
  const std::int64_t passes = run.microbatches() * run.parallel.pipeline * run.parallel.virtual_pipeline;
  return passes > longest ? longest / 4 : passes;
}

/// Applies levers to a statement. Where they move a framework that nobody stated, the change and the reason say so:
/// what is gained may then be the framework's doing.
void change_by(const std::vector<const Lever*>& levers, const Draft& draft, const io::CatalogSource& catalog,
               Draft& changed, Tried& tried) {
  for (const Lever* const lever : levers) {
    tried.change += lever->change;
    if (!lever->reason.empty()) tried.reason += (tried.reason.empty() ? "" : ", ") + std::string(lever->reason);
  }
  changed = draft;
  plan::apply(tried.change, changed);
  follow_framework(changed, catalog);
  const Framework before = draft.run.training.framework, after = changed.run.training.framework;
  if (after == before) return;
  if (!tried.change.has(Field::framework)) tried.change.set(Field::framework, after);
  changed.given.add(Field::framework);
  tried.reason =
      fmt::format("{} in place of {}{}{}", name(after), name(before), tried.reason.empty() ? "" : ": ", tried.reason);
}

}  // namespace

bool Trials::run(const std::vector<const Lever*>& levers, std::vector<Tried>& tried) {
  Tried one;
  change_by(levers, draft_, catalog_, changed_, one);
  if (!trial_.resolve(changed_)) return false;
  const Run& run = trial_.run();
  const std::int64_t passes = simulated_passes(run);
  if (passes > passes_left_) {
    ++left_out_;
    return false;
  }
  passes_left_ -= passes;
  const Estimate& result = trial_.estimate();
  one.verdicts = plan::judge(run.require, result);
  one.missed = missed_by(one.verdicts, result);
  one.fits = result.fits;
  one.roomy = result.fits && result.headroom_bytes > result.capacity_bytes / 50;
  one.tight = is_tight(run, result);
  one.peak_bytes = result.peak_bytes;
  one.headroom_bytes = result.headroom_bytes;
  one.shortage = shortage_of(run, result);
  one.step_tokens = step_tokens(run);
  one.step_s = result.time.step_s;
  one.tokens_per_s = result.throughput.tokens_per_s;
  one.mfu = result.throughput.mfu;
  tried.push_back(std::move(one));
  return true;
}

}  // namespace shardplan::advise
