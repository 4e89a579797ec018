// What `shardplan solve` found, as JSON: schema shardplan/solve/v1.
#pragma once

#include <string>

#include "shardplan/plan/solve.hpp"

namespace shardplan::io {

/// One object, members in the schema's order; `value`, `next` and `estimate` are null where there is none. The estimate
/// is the whole document of `estimate --json`.
std::string solve_json(const plan::SolveAnswer& answer);

}  // namespace shardplan::io
