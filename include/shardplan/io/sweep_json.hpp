// A sweep for programs: schema shardplan/sweep/v1.
#pragma once

#include <string>

#include "shardplan/plan/sweep.hpp"

namespace shardplan::io {

/// One object with a line feed at its end; one line a point. Beside peak_bytes, step_s, mfu and tokens_per_s a point
/// has the figures that are shown; those of an illegal point are null.
std::string sweep_json(const plan::Sweep& sweep);

}  // namespace shardplan::io
