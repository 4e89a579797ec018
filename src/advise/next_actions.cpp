#include "shardplan/advise/next_actions.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace shardplan::advise {
namespace {

using plan::Draft;

/// The flags of a change without their values: "--recompute --tp". A framework goes with another change, and what only
/// --set says has no idea of its own.
std::string ideas_of(const Tried& tried) {
  const std::string flags = plan::flags_of(tried.change);
  std::string ideas;
  std::string_view rest = flags;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
    if (word.substr(0, 2) == "--" && word != "--framework" && word != "--set") ideas += std::string(word) + " ";
  }
  return ideas;
}

/// Of --zero 1, --zero 2 and --zero 3 the first: three lines are to be three ideas.
void keep_best_of_each_idea(std::vector<Tried>& tried) {
  for (auto kept = tried.begin(); kept != tried.end(); ++kept) {
    const std::string ideas = ideas_of(*kept);
    if (ideas.empty()) continue;
    tried.erase(std::remove_if(kept + 1, tried.end(), [&](const Tried& t) { return ideas_of(t) == ideas; }),
                tried.end());
  }
}

void sort_fastest(std::vector<Tried>& tried) {
  std::stable_sort(tried.begin(), tried.end(),
                   [](const Tried& a, const Tried& b) { return a.tokens_per_s > b.tokens_per_s; });
}

void sort_smallest(std::vector<Tried>& tried) {
  std::stable_sort(tried.begin(), tried.end(),
                   [](const Tried& a, const Tried& b) { return a.shortage.rank() < b.shortage.rank(); });
}

bool any_fits(const std::vector<Tried>& tried) {
  return std::any_of(tried.begin(), tried.end(), [](const Tried& t) { return t.fits; });
}

void keep_fitting(std::vector<Tried>& tried) {
  tried.erase(std::remove_if(tried.begin(), tried.end(), [](const Tried& t) { return !t.fits; }), tried.end());
}

std::vector<const Lever*> pointers_to(const std::vector<Lever>& levers) {
  std::vector<const Lever*> pointers;
  pointers.reserve(levers.size());
  for (const Lever& lever : levers) pointers.push_back(&lever);
  return pointers;
}

/// Levers alone and two by two. Three ideas of a pair are enough where they fit.
std::vector<Tried> try_pairs(const Draft& draft, const Run& run, Trials& trials) {
  const PairedLevers pairs = paired_levers(draft, run);
  std::vector<Tried> tried;
  for (const Lever& second : pairs.second) trials.run({&second}, tried);
  for (const Lever& first : pairs.first) {
    trials.run({&first}, tried);
    for (const Lever& second : pairs.second) trials.run({&first, &second}, tried);
  }
  for (std::size_t i = 0; i < pairs.first.size(); ++i) {
    for (std::size_t j = i + 1; j < pairs.first.size(); ++j) trials.run({&pairs.first[i], &pairs.first[j]}, tried);
  }
  return tried;
}

/// The fewest GPUs, in powers of two of the node, at which the run fits, with as little else changed as possible.
std::vector<Tried> try_more_gpus(const Draft& draft, const Run& run, Trials& trials) {
  constexpr int most_gpus = 65536;
  const int node = run.cluster.gpus_per_node;
  const std::vector<std::vector<Lever>> ladder = lever_ladder(draft, run);
  std::vector<Tried> tried;
  for (std::int64_t gpus = run.num_gpus < node ? 1 : node; gpus <= most_gpus; gpus *= 2) {
    if (gpus < node && gpus * 2 > node) gpus = node;
    if (gpus <= run.num_gpus) continue;
    const Lever more = more_gpus(static_cast<int>(gpus));
    for (const std::vector<Lever>& rung : ladder) {
      std::vector<const Lever*> levers = {&more};
      for (const Lever* const lever : pointers_to(rung)) levers.push_back(lever);
      if (!trials.run(levers, tried)) continue;
      if (tried.back().fits) return {tried.back()};
    }
  }
  return {};
}

constexpr std::size_t most_actions = 3;

void add_first(std::vector<Tried>& tried, std::size_t most, NextAction::Rank rank, std::vector<NextAction>& actions) {
  for (std::size_t i = 0; i < std::min(tried.size(), most); ++i) actions.push_back({std::move(tried[i]), rank});
}

/// What makes a run faster that fits.
std::vector<NextAction> speed_actions(std::vector<Tried> tried, const Estimate& now) {
  constexpr double worth_a_line = 1.01;
  const auto useless = [&](const Tried& t) {
    return !t.roomy || t.tokens_per_s < worth_a_line * now.throughput.tokens_per_s;
  };
  tried.erase(std::remove_if(tried.begin(), tried.end(), useless), tried.end());
  sort_fastest(tried);
  keep_best_of_each_idea(tried);
  std::vector<NextAction> actions;
  add_first(tried, most_actions, NextAction::Rank::good, actions);
  return actions;
}

/// What makes a run fit that does not: one change, two, more GPUs, or else the nearest to it.
std::vector<NextAction> memory_actions(std::vector<Tried> tried, const Draft& draft, const Run& run,
                                       const Estimate& now, Trials& trials) {
  std::vector<Tried> more;
  if (!any_fits(tried)) {
    std::vector<Tried> pairs = try_pairs(draft, run, trials);
    // What crawls is hardly a way out: more GPUs stand beside it.
    const bool crawls = std::none_of(pairs.begin(), pairs.end(), [&](const Tried& t) {
      return t.fits && 2 * t.tokens_per_s > now.throughput.tokens_per_s;
    });
    if (crawls) more = try_more_gpus(draft, run, trials);
    for (Tried& pair : pairs) tried.push_back(std::move(pair));
  }
  std::vector<NextAction> actions;
  if (any_fits(tried)) {
    for (Tried& t : more) tried.push_back(std::move(t));
    keep_fitting(tried);
    sort_fastest(tried);
    keep_best_of_each_idea(tried);
    add_first(tried, most_actions, NextAction::Rank::good, actions);
    return actions;
  }
  const Shortage shortage = shortage_of(run, now);
  const auto worse = [&](const Tried& t) { return t.shortage.rank() >= shortage.rank(); };
  tried.erase(std::remove_if(tried.begin(), tried.end(), worse), tried.end());
  sort_smallest(tried);
  keep_best_of_each_idea(tried);
  const bool none_fits = more.empty();
  add_first(more, 1, NextAction::Rank::fewest_gpus, actions);
  add_first(tried, none_fits ? 1 : most_actions - 1, none_fits ? NextAction::Rank::nearest : NextAction::Rank::good,
            actions);
  return actions;
}

}  // namespace

NextActions next_actions(const Draft& draft, const Run& run, const Estimate& estimate,
                         const io::CatalogSource& catalog) {
  const Draft open = open_statement(draft, run, estimate);
  EstimateWorkspace workspace;
  Trials trials(open, catalog, workspace);
  std::vector<Tried> tried;
  for (const Lever& lever : single_levers(open, run, estimate.fits)) trials.run({&lever}, tried);
  NextActions actions;
  actions.list = estimate.fits ? speed_actions(std::move(tried), estimate)
                               : memory_actions(std::move(tried), open, run, estimate, trials);
  actions.left_out = trials.left_out();
  return actions;
}

}  // namespace shardplan::advise
