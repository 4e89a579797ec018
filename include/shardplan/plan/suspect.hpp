// Which term of an estimated step is most likely off, given a measured one.
#pragma once

#include <string_view>

#include "shardplan/plan/estimate.hpp"

namespace shardplan {

struct Suspect {
  std::string_view term;   ///< static text; empty: no single term could explain the difference
  double estimated_s = 0;  ///< what the estimate has for it
  double would_have_to_be_s = 0;
};

/// The term whose error, alone, would explain the measured step with the least surprise: the change that it needs, in
/// units of how far off such terms usually are. Terms of a step: matrix products, attention, other kernels,
/// recomputation, the bubble, each group's exposed traffic, the optimizer, offloading.
Suspect most_likely_off(const TimeEstimate& time, double measured_step_s) noexcept;

}  // namespace shardplan
