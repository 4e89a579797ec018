// Runs side by side, as data: `compare` fills it, its reports print it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "shardplan/core/run.hpp"
#include "shardplan/plan/estimate.hpp"

namespace shardplan::plan {

struct ComparedRun {
  std::string name;  ///< as the user calls it
  Run run;
  Estimate estimate;
};

/// The first run with this one field as in the second: what the field does on its own.
struct Alone {
  bool legal = false;
  bool fits = false;
  double tokens_per_s = 0;
  std::int64_t peak_bytes = 0;
};

/// A field of the resolved runs. Values are JSON texts, "" where a run has no such field.
struct InputRow {
  std::string path;  ///< JSON pointer
  std::vector<std::string> values;
  bool equal = false;
  bool stated = false;  ///< by one of the runs at least; the others follow from what was stated
  std::optional<Alone> alone;
};

struct Comparison {
  std::vector<ComparedRun> runs;
  std::vector<InputRow> inputs;  ///< every field, in the order of a run file
};

}  // namespace shardplan::plan
