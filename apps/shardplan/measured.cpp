#include "measured.hpp"

#include <fmt/format.h>

#include <string>

#include "command.hpp"
#include "shardplan/core/number_text.hpp"
#include "shardplan/io/suggest.hpp"

namespace shardplan::cli {
namespace {

Diagnostic problem(std::string message, std::string way_out = {}) {
  return {std::string(command_line_file), "", std::move(message), std::move(way_out), 0, 0};
}

/// Tokens/s of one GPU. What the run computes for a token and how long a step is are given by `estimate`.
double tokens_per_s_per_gpu(const Measurement& measurement, const Run& run, const ThroughputEstimate& estimated) {
  switch (measurement.kind) {
    case MeasuredKind::tokens_per_s_per_gpu: return measurement.value;
    case MeasuredKind::step_s: {
      const double tokens =
          static_cast<double>(run.training.global_batch_size) * static_cast<double>(run.training.seq_length);
      return tokens / measurement.value / static_cast<double>(run.num_gpus);
    }
    case MeasuredKind::tflops_per_gpu: return measurement.value * 1e12 / estimated.model_flop_per_token;
  }
  return 0;
}

/// The estimate's own figure of what was measured: "34.84 s".
std::string estimated_text(MeasuredKind kind, const Estimate& estimate) {
  switch (kind) {
    case MeasuredKind::tokens_per_s_per_gpu:
      return fmt::format("{:.4g} tokens/s/GPU", estimate.throughput.tokens_per_s_per_gpu);
    case MeasuredKind::step_s: return fmt::format("{:.4g} s", estimate.time.step_s);
    case MeasuredKind::tflops_per_gpu:
      return fmt::format("{:.4g} TFLOP/s", estimate.throughput.model_flop_per_s_per_gpu / 1e12);
  }
  return {};
}

}  // namespace

Result<Measurement> parse_measurement(std::string_view text) {
  Result<Measurement> result;
  const std::size_t equals = text.find('=');
  const std::string_view key = text.substr(0, equals);
  const std::string_view digits = equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1);
  const std::optional<MeasuredKind> kind = parse_name<MeasuredKind>(key);
  if (!kind) {
    const std::vector<std::string_view> legal(names_of<MeasuredKind>.begin(), names_of<MeasuredKind>.end());
    result.problems.push_back(
        problem(fmt::format("--measured: \"{}\" is not {}{}", key, io::list_of(legal), io::did_you_mean(key, legal)),
                "for example --measured step_s=32.4"));
    return result;
  }
  result.value.kind = *kind;
  result.value.value = double_from_chars(digits).value_or(0);
  if (result.value.value <= 0) {
    result.problems.push_back(problem(fmt::format("--measured {}: \"{}\" is not a positive number", key, digits)));
  }
  return result;
}

Result<io::Measured> measured_against(const Measurement& measurement, const Run& run, const Estimate& estimate) {
  const ThroughputEstimate& estimated = estimate.throughput;
  const double ratio = tokens_per_s_per_gpu(measurement, run, estimated) / estimated.tokens_per_s_per_gpu;
  Result<io::Measured> result;
  // A run may well be many times slower than it could be; beyond this the number is of something else.
  constexpr double slowest = 1.0 / 100;
  if (ratio < slowest) {
    result.problems.push_back(problem(
        fmt::format("--measured {}={:g}: {:.3g} times slower than the estimate ({}) is no speed of this run",
                    name(measurement.kind), measurement.value, 1 / ratio, estimated_text(measurement.kind, estimate)),
        "the unit? step_s is seconds of one optimizer step, tokens_per_s_per_gpu and tflops_per_gpu are of one GPU"));
    return result;
  }
  const double step_s = estimate.time.step_s / ratio;
  const bool in_band = step_s >= estimate.time.band_low_s && step_s <= estimate.time.band_high_s;
  result.value = {estimated.mfu * ratio,
                  estimated.mfu_causal * ratio,
                  estimated.hfu * ratio,
                  ratio,
                  in_band,
                  step_s,
                  most_likely_off(estimate.time, step_s)};
  const auto check = [&](std::string_view field, double value) {
    if (value <= 1) return;
    result.problems.push_back(
        problem(fmt::format("measured.{}: {:.2f} exceeds the GPU's dense peak", field, value),
                fmt::format("the peak is {:.1f} dense {} TFLOP/s for each of {} GPUs", estimated.peak_flop_per_s / 1e12,
                            name(run.training.precision), run.num_gpus)));
  };
  check("mfu", result.value.mfu);
  if (result.ok()) check("hfu", result.value.hfu);
  return result;
}

}  // namespace shardplan::cli
