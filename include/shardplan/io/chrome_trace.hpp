// A simulated step as Chrome trace events, which Perfetto and chrome://tracing open.
#pragma once

#include <string>
#include <string_view>

#include "shardplan/schedule/step.hpp"

namespace shardplan::io {

/// One process, one track (thread) a stage, one complete event ("X") an op, and a counter a stage for the activations
/// held. Time stamps are microseconds: `microseconds` is one unit of the step's times. `otherData` repeats makespan,
/// bubble and busy times of the simulation, in the step's own unit.
std::string chrome_trace(const schedule::StepView& step, double microseconds, std::string_view title);

}  // namespace shardplan::io
