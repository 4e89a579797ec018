// Changes of one run, each tried: what its estimate would be.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "shardplan/advise/levers.hpp"
#include "shardplan/io/catalog_source.hpp"
#include "shardplan/plan/estimate.hpp"
#include "shardplan/plan/legality.hpp"
#include "shardplan/plan/requirements.hpp"
#include "shardplan/plan/resolve.hpp"
#include "shardplan/plan/workspace.hpp"

namespace shardplan::advise {

/// What a run lacks, in bytes; 0 or less where it has enough. One of the host or the NVMe is of a whole node.
struct Shortage {
  std::int64_t gpu = 0;
  std::int64_t host = 0;
  std::int64_t nvme = 0;

  bool none() const noexcept { return gpu <= 0 && host <= 0 && nvme <= 0; }
  /// Of what the run lacks on the card first: host memory is cheaper to add.
  std::pair<std::int64_t, std::int64_t> rank() const noexcept {
    return {std::max<std::int64_t>(gpu, 0), std::max<std::int64_t>(host, 0) + std::max<std::int64_t>(nvme, 0)};
  }
};
Shortage shortage_of(const Run& run, const Estimate& estimate);

/// A legal change and its estimate, as far as a choice among changes needs it.
struct Tried {
  plan::Change change;  ///< with the framework that it moves, where nobody stated one
  std::string reason;   ///< why it helps; may be empty
  bool fits = false;
  bool roomy = false;                   ///< fits with 2% of the card to spare
  bool tight = false;                   ///< warning tight_memory
  std::vector<plan::Verdict> verdicts;  ///< what the run requires
  double missed = 0;                    ///< the shares by which requirements are missed, summed; 0: all hold
  std::int64_t peak_bytes = 0;
  std::int64_t headroom_bytes = 0;
  Shortage shortage;
  std::int64_t step_tokens = 0;
  double step_s = 0;
  double tokens_per_s = 0;
  double mfu = 0;
};

/// The shares by which requirements are missed, summed.
double missed_by(const std::vector<plan::Verdict>& verdicts, const Estimate& estimate);

/// Whether an estimate has the warning tight_memory.
bool is_tight(const Run& run, const Estimate& estimate);

/// Sequences times tokens of a step.
std::int64_t step_tokens(const Run& run);

/// The framework that holds when none was stated may rest on what was changed, and with it the stack's constants.
/// Returns whether it did.
bool follow_framework(plan::Draft& draft, const io::CatalogSource& catalog);

/// One run after another in the same buffers: resolved, held against the rules, estimated.
class Trial {
 public:
  Trial() = default;
  /// `workspace`: of the caller, so that many share one.
  explicit Trial(EstimateWorkspace& workspace) : shared_(&workspace) {}

  /// Resolves a statement; false where the run breaks a rule.
  bool resolve(const plan::Draft& draft);
  const Run& run() const noexcept { return run_; }
  const plan::RuleSet& broken() const noexcept { return broken_; }

  /// Of the run at hand, which has to be legal.
  const Estimate& estimate() { return estimate(run_); }
  const Estimate& estimate(const Run& run);

 private:
  EstimateWorkspace own_;
  EstimateWorkspace* shared_ = nullptr;
  Run run_;
  plan::RuleSet broken_;
  Estimate estimate_;
};

/// Estimates changes of one run. A step of a hundred thousand microbatches takes a while to simulate: what is tried is
/// bounded, by work and not by time, so that the same run always gets the same answer.
class Trials {
 public:
  /// `draft` and `catalog` outlive it.
  Trials(const plan::Draft& draft, const io::CatalogSource& catalog, EstimateWorkspace& workspace)
      : draft_(draft), catalog_(catalog), trial_(workspace) {}

  /// The levers together; nothing where the change is not legal, or more work than is left.
  bool run(const std::vector<const Lever*>& levers, std::vector<Tried>& tried);

  /// Legal changes that were not tried, since too little work was left.
  std::size_t left_out() const noexcept { return left_out_; }

 private:
  const plan::Draft& draft_;
  const io::CatalogSource& catalog_;
  Trial trial_;
  std::int64_t passes_left_ = 8'000'000;
  std::size_t left_out_ = 0;
  plan::Draft changed_;
};

/// The statement from which changes of a run are tried. ddp and dp shard nothing: what does not fit there needs another
/// framework, so that theirs is left open, unless a stack states it too; each change then names it.
plan::Draft open_statement(const plan::Draft& draft, const Run& run, const Estimate& estimate);

}  // namespace shardplan::advise
