// An estimate as a page of text, as markdown, and as CSV. Nothing is computed here but sums, shares and roundings.
#pragma once

#include <string>
#include <vector>

#include "shardplan/core/run.hpp"
#include "shardplan/plan/estimate.hpp"
#include "shardplan/report/style.hpp"

namespace shardplan::report {

/// One change of the run, estimated: flags to paste, what they bring, why.
struct Action {
  std::string flags;
  std::string effect;
  std::string reason;
};

struct EstimateTextOptions {
  Style style;
  bool quiet = false;                         ///< the first line only, however long
  bool detail = false;                        ///< every stage, moments, communication, and operators where given
  const EstimateDetail* operators = nullptr;  ///< the operators behind the estimate, for `detail`
  std::vector<std::string> defaults;          ///< JSON pointers of the fields that the run left to their defaults
  std::vector<Action> actions;                ///< what to do next, best first; at most three are printed
  bool explain_hints = false;                 ///< section heads end in the flag that explains them
};

/// The first line: does it fit, peak of the capacity, where and when, tokens/s, MFU, what binds.
std::string estimate_headline(const Run& run, const Estimate& estimate, Units units = Units::gib);

/// The page: the answer, the run, memory per stage, the step's time, MFU, what to do next. At most 30 lines of
/// `style.width` columns without `detail`.
std::string estimate_text(const Run& run, const Estimate& estimate, const EstimateTextOptions& options);

/// The same facts as GitHub markdown.
std::string estimate_markdown(const Run& run, const Estimate& estimate, const EstimateTextOptions& options);

/// One row per pipeline stage: exact integers and seconds, the run's totals repeated in each row. docs/output.md lists
/// the columns.
std::string estimate_csv(const Run& run, const Estimate& estimate);

}  // namespace shardplan::report
