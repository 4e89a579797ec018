// The rows of a comparison: inputs that differ, then results, with what is said of each change.
#pragma once

#include <string>
#include <vector>

#include "shardplan/plan/compare.hpp"
#include "shardplan/report/number.hpp"
#include "shardplan/report/text.hpp"

namespace shardplan::report {

/// A row of the table: label, one text a run, what is said of the change.
struct ComparisonRow {
  std::string label;
  std::vector<Text> values;
  Text change;
  bool equal = false;
  bool follows = false;  ///< from the layout: it differs, and says nothing of its own
};

std::vector<ComparisonRow> input_rows(const plan::Comparison& comparison, Units units);
std::vector<ComparisonRow> result_rows(const plan::Comparison& comparison, Units units);

/// A JSON value without the quotes of a text; nothing as "-".
std::string plain_value(const std::string& value);

bool same_gpus(const plan::Comparison& comparison);
bool same_model(const plan::Comparison& comparison);

/// Runs of other sizes or models compare by what a GPU does.
bool per_gpu(const plan::Comparison& comparison);

}  // namespace shardplan::report
