// A pipeline schedule with given times: read, and printed with what its simulation gave.
#pragma once

#include <string>
#include <vector>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/io/json_text.hpp"
#include "shardplan/schedule/simulate.hpp"

namespace shardplan::io {

/// Owns the times that its PipelineSpec views.
struct ScheduleSpec {
  schedule::Shape shape;
  std::vector<double> forward;  ///< per virtual stage, as the next two
  std::vector<double> backward;
  std::vector<double> weight;
  double p2p = 0;
  schedule::P2pMode p2p_mode = schedule::P2pMode::overlap;
  double retain = 1;
  double alpha = 1;

  schedule::PipelineSpec view() const noexcept;
};

/// Most F, B and W that a spec may ask for: 3 * p * v * m.
inline constexpr long long max_schedule_ops = 10'000'000;

/// Reads `{"schedule": "zb-v", "p": 4, "m": 8, "v": 2, "F": [...], "B": [...], "W": [...], "p2p": 7, "p2p_mode":
/// "overlap", "retain": 1, "alpha": 1, "group": null, "bwd": null}`. Required: schedule, p, m, F, B, W; null is absent.
/// F, B, W: one number of 0 or more for all virtual stages, or p * v numbers in model order. Reports every problem; on
/// problems the value is not to be used.
Result<ScheduleSpec> read_schedule_spec(const JsonText& text);

/// The result as JSON (schema shardplan/schedule/v1): whole numbers without a point, what is not finite as null. Ops
/// are [name, start, end] per rank, named F<microbatch>@<virtual stage>, B, W, BW, and F..&BW.. for a pair.
std::string schedule_json(const schedule::PipelineResult& result, const schedule::Program& program,
                          const schedule::Timeline& timeline);

/// "F3@0&BW5@3".
std::string op_name(const schedule::Op& op);

}  // namespace shardplan::io
