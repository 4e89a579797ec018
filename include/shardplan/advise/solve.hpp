// The largest, or smallest, value of one field of a run that still holds.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "shardplan/advise/solve_field.hpp"
#include "shardplan/io/catalog_source.hpp"
#include "shardplan/io/run_file.hpp"
#include "shardplan/plan/solve.hpp"

namespace shardplan::advise {

/// What is asked of a run.
struct SolveQuestion {
  io::RunInput input;
  std::string pointer;          ///< of a field without solve_field_problems(); the input's overrides do not state it
  std::optional<bool> largest;  ///< nothing: what is usual for the field
  bool otherwise = true;        ///< answers after other changes are told too
  const std::atomic<bool>* stop = nullptr;  ///< stops when true
};

struct SolveResult {
  plan::SolveAnswer answer;
  std::vector<std::string> notes;
  Diagnostics problems;  ///< no value is legal, or the run cannot be read
  bool stopped = false;  ///< no value is known to be the answer

  bool ok() const noexcept { return problems.empty(); }
};

/// What holds: it fits, and the run's requirements are met.
SolveResult solve(const SolveQuestion& question, const io::CatalogSource& catalog);

}  // namespace shardplan::advise
