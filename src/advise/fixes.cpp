#include "shardplan/advise/fixes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace shardplan::advise {
namespace {

using plan::Draft;
using plan::Field;
using plan::Requirement;
using plan::Verdict;

const Tried* fastest_that_meets(const std::vector<Tried>& tried) {
  const Tried* best = nullptr;
  for (const Tried& each : tried) {
    if (each.missed == 0 && (best == nullptr || each.tokens_per_s > best->tokens_per_s)) best = &each;
  }
  return best;
}

/// The changes that alone come nearest, with each other one beside them. `nearest`: by what each legal one misses.
void try_two(const std::vector<Lever>& levers, std::vector<std::pair<double, std::size_t>> nearest, Trials& trials,
             std::vector<Tried>& tried) {
  constexpr std::size_t most_first = 4;
  std::stable_sort(nearest.begin(), nearest.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  nearest.resize(std::min(nearest.size(), most_first));
  for (std::size_t k = 0; k < nearest.size(); ++k) {
    for (std::size_t j = 0; j < levers.size(); ++j) {
      const bool done = std::any_of(nearest.begin(), nearest.begin() + static_cast<std::ptrdiff_t>(k) + 1,
                                    [&](const auto& each) { return each.second == j; });
      if (!done) trials.run({&levers[nearest[k].second], &levers[j]}, tried);
    }
  }
}

/// What no two single steps reach: whole states on the host, degrees further than the next. The length of the
/// sequences is the run's purpose and stays.
void try_strong(const Draft& draft, const Run& run, Trials& trials, std::vector<Tried>& tried) {
  const PairedLevers pairs = paired_levers(draft, run);
  for (const Lever& second : pairs.second) {
    trials.run({&second}, tried);
    for (const Lever& first : pairs.first) {
      if (!first.change.has(Field::seq_length)) trials.run({&first, &second}, tried);
    }
  }
}

/// More GPUs, in powers of two of the node, with as little else changed as possible.
void try_more_gpus(const Draft& draft, const Run& run, Trials& trials, std::vector<Tried>& tried) {
  constexpr std::int64_t most_gpus = 65536;
  const int node = run.cluster.gpus_per_node;
  const std::vector<std::vector<Lever>> ladder = lever_ladder(draft, run);
  for (std::int64_t gpus = run.num_gpus < node ? node : std::int64_t{run.num_gpus} * 2; gpus <= most_gpus; gpus *= 2) {
    if (gpus <= run.num_gpus) continue;
    const Lever more = more_gpus(static_cast<int>(gpus));
    for (const std::vector<Lever>& rung : ladder) {
      std::vector<const Lever*> levers = {&more};
      for (const Lever& lever : rung) levers.push_back(&lever);
      if (trials.run(levers, tried) && tried.back().missed == 0) return;
    }
  }
}

/// Whether what is missed shrinks with more GPUs: memory and the length of a step do, shares and rates do not.
bool more_gpus_help(const std::vector<Verdict>& verdicts) {
  return std::all_of(verdicts.begin(), verdicts.end(), [](const Verdict& verdict) {
    return verdict.holds || verdict.requirement == Requirement::fits ||
           verdict.requirement == Requirement::min_headroom_gib || verdict.requirement == Requirement::max_step_s;
  });
}

}  // namespace

std::string gives_way(const plan::Change& fix, std::span<const io::Override> typed) {
  std::string text;
  for (const io::Override& earlier : typed) {
    const bool again = std::any_of(fix.values.begin(), fix.values.end(),
                                   [&](const plan::FieldValue& value) { return name(value.field) == earlier.pointer; });
    if (!again) continue;
    const std::string path = earlier.flag == "--set" || earlier.flag == "--offload"
                                 ? earlier.pointer.substr(earlier.flag == "--set" ? 1 : earlier.pointer.rfind('/') + 1)
                                 : std::string();
    text +=
        fmt::format("{}{} {}{}", text.empty() ? "" : " ", earlier.flag, path.empty() ? "" : path + "=", earlier.value);
  }
  return text;
}

FoundFix cheapest_fix(const Draft& draft, const Run& run, const Estimate& estimate,
                      const std::vector<Verdict>& verdicts, const io::CatalogSource& catalog,
                      EstimateWorkspace& workspace) {
  const Draft open = open_statement(draft, run, estimate);
  Trials trials(open, catalog, workspace);
  const std::vector<Lever> levers = single_levers(open, run, false);
  std::vector<Tried> tried;
  std::vector<std::pair<double, std::size_t>> nearest;
  for (std::size_t i = 0; i < levers.size(); ++i) {
    if (trials.run({&levers[i]}, tried)) nearest.emplace_back(tried.back().missed, i);
  }
  const std::vector<Lever> far = far_levers(open, run);
  for (const Lever& lever : far) trials.run({&lever}, tried);
  // What crawls is hardly a way out: two changes may be faster.
  const auto wanting = [&] {
    const Tried* const best = fastest_that_meets(tried);
    return best == nullptr || 2 * best->tokens_per_s < estimate.throughput.tokens_per_s;
  };
  if (wanting()) try_two(levers, std::move(nearest), trials, tried);
  if (wanting()) try_strong(open, run, trials, tried);
  if (fastest_that_meets(tried) == nullptr && more_gpus_help(verdicts)) try_more_gpus(open, run, trials, tried);
  const Tried* const best = fastest_that_meets(tried);
  FoundFix found;
  found.left_out = trials.left_out();
  if (best != nullptr) found.fix = *best;
  return found;
}

}  // namespace shardplan::advise
