#include "next_actions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "changes.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/report/number.hpp"
#include "trials.hpp"

namespace shardplan::cli {
namespace {

using plan::Draft;
using plan::Field;

/// The flags of a change without their values: "--recompute --tp".
std::string ideas_of(const Tried& tried) {
  std::string ideas;
  std::string_view rest = tried.flags;
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

/// Says what changes bring, beside the run as it is.
class Effects {
 public:
  Effects(const Run& run, const Estimate& now, report::Units units)
      : run_(run), now_(now), shortage_(shortage_of(run, now)), tight_(is_tight(run, now)), units_(units) {}

  report::Action action(const Tried& tried) const {
    return {tried.flags, now_.fits ? faster(tried) : smaller(tried), tried.reason};
  }

  double tokens_per_s() const noexcept { return now_.throughput.tokens_per_s; }
  const Shortage& shortage() const noexcept { return shortage_; }

 private:
  std::string size(std::int64_t bytes) const { return report::size_with_unit(bytes, units_, 1); }

  /// "28.6 s (-12.0%)", or tokens/s where the step's tokens changed as well.
  std::string speed(const Tried& tried, std::string_view step) const {
    if (tried.step_tokens == step_tokens(run_)) {
      return fmt::format("{}{} ({:+.1f}%)", step, report::seconds_text(tried.step_s),
                         100 * (tried.step_s / now_.time.step_s - 1));
    }
    return fmt::format("{} tokens/s ({:+.1f}%)", report::short_count(tried.tokens_per_s),
                       100 * (tried.tokens_per_s / now_.throughput.tokens_per_s - 1));
  }

  std::string tight(const Tried& tried) const { return tried.tight && !tight_ ? ", tight_memory" : ""; }

  std::string faster(const Tried& tried) const {
    return fmt::format("MFU {}, {}, peak {}{}", report::percent_text(tried.mfu), speed(tried, ""),
                       size(tried.peak_bytes), tight(tried));
  }

  /// What was lacking and what is, each on the card, in host memory or on NVMe.
  std::string smaller(const Tried& tried) const {
    std::string effect;
    if (shortage_.gpu > 0) {
      effect = fmt::format("frees {}", size(tried.headroom_bytes - now_.headroom_bytes));
    } else if (shortage_.host > 0) {
      effect = fmt::format("frees {} of host memory a node", size(shortage_.host - tried.shortage.host));
    } else {
      effect = fmt::format("frees {} of NVMe a node", size(shortage_.nvme - tried.shortage.nvme));
    }
    if (tried.fits) return effect + ", " + speed(tried, "step ") + tight(tried);
    const auto lacks = [&](std::int64_t bytes, std::string_view where) {
      if (bytes > 0) effect += fmt::format(", still {} over{}", size(bytes), where);
    };
    lacks(tried.shortage.gpu, "");
    lacks(tried.shortage.host, " in host memory a node");
    lacks(tried.shortage.nvme, " on NVMe a node");
    return effect;
  }

  const Run& run_;
  const Estimate& now_;
  Shortage shortage_;
  bool tight_;
  report::Units units_;
};

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

std::vector<report::Action> actions_of(const std::vector<Tried>& tried, std::size_t most, const Effects& effects) {
  std::vector<report::Action> actions;
  for (std::size_t i = 0; i < std::min(tried.size(), most); ++i) actions.push_back(effects.action(tried[i]));
  return actions;
}

constexpr std::size_t most_actions = 3;

/// What makes a run faster that fits.
std::vector<report::Action> speed_actions(std::vector<Tried> tried, const Estimate& estimate, const Effects& effects) {
  constexpr double worth_a_line = 1.01;
  const auto useless = [&](const Tried& t) {
    return !t.roomy || t.tokens_per_s < worth_a_line * estimate.throughput.tokens_per_s;
  };
  tried.erase(std::remove_if(tried.begin(), tried.end(), useless), tried.end());
  sort_fastest(tried);
  keep_best_of_each_idea(tried);
  return actions_of(tried, most_actions, effects);
}

/// What makes a run fit that does not: one change, two, more GPUs, or else the nearest to it.
std::vector<report::Action> memory_actions(std::vector<Tried> tried, const Draft& draft, const Run& run, Trials& trials,
                                           const Effects& effects) {
  std::vector<Tried> more;
  if (!any_fits(tried)) {
    std::vector<Tried> pairs = try_pairs(draft, run, trials);
    // What crawls is hardly a way out: more GPUs stand beside it.
    const bool crawls = std::none_of(pairs.begin(), pairs.end(), [&](const Tried& t) {
      return t.fits && 2 * t.tokens_per_s > effects.tokens_per_s();
    });
    if (crawls) more = try_more_gpus(draft, run, trials);
    for (Tried& pair : pairs) tried.push_back(std::move(pair));
  }
  if (any_fits(tried)) {
    for (Tried& t : more) tried.push_back(std::move(t));
    keep_fitting(tried);
    sort_fastest(tried);
    keep_best_of_each_idea(tried);
    return actions_of(tried, most_actions, effects);
  }
  const auto worse = [&](const Tried& t) { return t.shortage.rank() >= effects.shortage().rank(); };
  tried.erase(std::remove_if(tried.begin(), tried.end(), worse), tried.end());
  sort_smallest(tried);
  keep_best_of_each_idea(tried);
  std::vector<report::Action> actions = actions_of(more, 1, effects);
  for (report::Action& action : actions) {
    action.effect = "the fewest GPUs tried that fit: " + action.effect;
  }
  for (report::Action& action : actions_of(tried, more.empty() ? 1 : most_actions - 1, effects)) {
    if (more.empty()) action.effect = "nothing that was tried fits; the nearest " + action.effect;
    actions.push_back(std::move(action));
  }
  return actions;
}

}  // namespace

std::vector<report::Action> next_actions(const Draft& draft, const Run& run, const Estimate& estimate,
                                         report::Units units, const io::CatalogSource& catalog, std::size_t* left_out) {
  // ddp and dp shard nothing: what does not fit there needs another framework, which each line then names.
  Draft open = draft;
  const bool leave = !estimate.fits && facts_of(run.training.framework).data_only;
  if (leave && !draft.given.has(Field::stack)) open.given.remove(Field::framework);
  EstimateWorkspace workspace;
  Trials trials(open, catalog, workspace);
  const Effects effects(run, estimate, units);
  const std::vector<Lever> levers = single_levers(open, run, estimate.fits);
  std::vector<Tried> tried;
  for (const Lever& lever : levers) trials.run({&lever}, tried);
  std::vector<report::Action> actions = estimate.fits ? speed_actions(std::move(tried), estimate, effects)
                                                      : memory_actions(std::move(tried), open, run, trials, effects);
  if (left_out != nullptr) *left_out = trials.left_out();
  return actions;
}

}  // namespace shardplan::cli
