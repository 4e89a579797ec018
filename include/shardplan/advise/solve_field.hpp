// Which values a field that is solved for can have.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/core/run.hpp"
#include "shardplan/plan/solve.hpp"

namespace shardplan::advise {

struct SolveField {
  std::string pointer;      ///< /training/seq_length
  std::string word;         ///< seq_length
  bool largest = true;      ///< what is asked for without --largest or --smallest
  bool monotone = false;    ///< memory grows with it
  bool step_grows = false;  ///< and the step
  plan::SolveValues values;
  std::string limit;  ///< what the last value is
};

/// A pointer, a dotted path, a flag's name, "layers", or the last word of a field: "seq_length".
std::optional<std::string> solve_pointer(std::string_view field);

/// What can be solved for besides the model's fields, as flags' names: "layers", "gpus", "tp".
std::vector<std::string_view> solve_words();

/// Why a word is no field that can be solved for; empty where it is one.
Diagnostics solve_field_problems(std::string_view field);

/// The values of a field for a run: those that its layout can have where that follows from the run, so that they are
/// legal. `pointer`: of a field without problems. `run`: resolved, not necessarily legal. `batch_stated`: whether
/// global_batch_size was.
SolveField solve_field(std::string_view pointer, const Run& run, bool batch_stated);

}  // namespace shardplan::advise
