// --measured: a user's own throughput in the estimate's conventions.
#pragma once

#include <optional>
#include <string_view>

#include "shardplan/core/diagnostic.hpp"
#include "shardplan/io/estimate_json.hpp"

namespace shardplan::cli {

/// What was measured.
enum class MeasuredKind : std::uint8_t { tokens_per_s_per_gpu, step_s, tflops_per_gpu };

struct Measurement {
  MeasuredKind kind = MeasuredKind::tokens_per_s_per_gpu;
  double value = 0;  ///< positive
};

/// "step_s=32.4"
Result<Measurement> parse_measurement(std::string_view text);

/// The measurement's MFU in each convention. TFLOP/s count as `model_tflops_per_gpu` does. More than the GPU's dense
/// peak is a problem.
Result<io::Measured> measured_against(const Measurement& measurement, const Run& run, const Estimate& estimate);

}  // namespace shardplan::cli

namespace shardplan {
template <>
inline constexpr std::array<std::string_view, 3> names_of<cli::MeasuredKind> = {"tokens_per_s_per_gpu", "step_s",
                                                                                "tflops_per_gpu"};
}  // namespace shardplan
