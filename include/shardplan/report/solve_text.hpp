// What `shardplan solve` found, as text.
#pragma once

#include <string>

#include "shardplan/plan/solve.hpp"
#include "shardplan/report/style.hpp"

namespace shardplan::report {

/// The value and what it needs, what the next value breaks and how memory grows, how fast it is there. `quiet`: the
/// first line only.
std::string solve_text(const plan::SolveAnswer& answer, const Style& style, bool quiet);

}  // namespace shardplan::report
