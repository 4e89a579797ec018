// Everything that a search's answer says, as data: what text, JSON, markdown and CSV print.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shardplan/plan/search.hpp"
#include "shardplan/plan/why_not.hpp"

namespace shardplan::plan {

/// A layout with its run and its estimate.
struct SearchRow {
  Found found;
  Run run;
  Estimate estimate;
};

/// The search again on other hardware.
struct Sensitivity {
  std::string_view what;  ///< "memory x2"
  double step_s = 0;      ///< of the best layout then
  double gain = 0;        ///< GPU time of a step now over then, less 1
  std::string layout;     ///< what changes in the layout, as flags; empty: nothing
};

/// A change that makes something fit where nothing does, with the best layout then.
struct WayToFit {
  std::string flags;
  SearchRow row;
};

/// Stated values of a variable without which there would be legal layouts.
struct Refusal {
  std::string flags;   ///< "--dp 3"
  std::string reason;  ///< the rule that the first of them breaks: "3 does not divide 64 GPUs"
  std::string legal;   ///< the legal values next to it, the others as stated: "2,4"; empty: none
};

struct SearchReport {
  Objective objective = Objective::throughput;
  Run base;  ///< what all layouts have in common
  SearchResult result;
  std::vector<SearchRow> best;
  std::vector<SearchRow> pareto;     ///< where asked for
  std::optional<SearchRow> nearest;  ///< where nothing fits
  std::optional<SearchRow> stated;   ///< the run as stated, where it is legal
  std::string file;                  ///< of the run; empty: flags alone
  std::vector<WhyNot> neighbours;    ///< one step from the best
  std::vector<WhyNot> asked;         ///< --why-not
  std::vector<Sensitivity> sensitivity;
  std::vector<WayToFit> ways;
  std::vector<Refusal> refusals;  ///< where no layout is legal
  std::string use;                ///< flags that turn the run as stated into the best one
  bool gpus_vary = false;         ///< several numbers of GPUs were asked for
  bool attention_varies = false;
  bool framework_stated = true;
  bool batch_stated = true;
};

/// The row of a layout. `base`: of search_base().
SearchRow row_of(const Draft& base, const Found& found);

/// Options of a search that is asked beside another: its best layout alone, no progress.
SearchOptions for_best_alone(const SearchOptions& options);

}  // namespace shardplan::plan
