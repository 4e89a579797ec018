// An estimate as JSON: schema shardplan/estimate/v1.
#pragma once

#include <string>
#include <string_view>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/plan/estimate.hpp"
#include "shardplan/plan/suspect.hpp"

namespace shardplan::io {

/// What a user's own measurement says in the estimate's conventions (`--measured`).
struct Measured {
  double mfu = 0;
  double mfu_causal = 0;
  double hfu = 0;
  double ratio_to_estimate = 0;  ///< measured tokens/s over estimated
  bool in_band = true;           ///< the step lies in the estimate's band
  double step_s = 0;             ///< the measurement as a step
  Suspect suspect;               ///< what is most likely off
};

/// Everything that a document holds besides the estimate itself.
struct EstimateContext {
  std::string_view run_json;  ///< the run as resolved, JSON text of one object
  const Warnings* warnings = nullptr;
  const EstimateDetail* detail = nullptr;  ///< --detail
  const Measured* measured = nullptr;      ///< --measured
};

/// One object, members in the schema's order, with a line feed at its end. Bytes and counts are integers; a number that
/// is not finite becomes null and gets a warning `unknown_value`.
std::string estimate_json(const Run& run, const Estimate& estimate, const EstimateContext& context);

}  // namespace shardplan::io
