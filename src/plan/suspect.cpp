#include "shardplan/plan/suspect.hpp"

#include <cmath>

namespace shardplan {
namespace {

struct Term {
  std::string_view name;
  double seconds = 0;
  double usual_error = 0;  // of log(time): what the fits of docs/validation.md leave, by kind of term
};

}  // namespace

Suspect most_likely_off(const TimeEstimate& time, double measured_step_s) noexcept {
  const auto exposed = [&](GroupKind group) { return time.exposed_by_group_s[static_cast<std::size_t>(group)]; };
  const Term terms[] = {
      {"matrix products", time.gemm_s, 0.06},
      {"attention", time.attention_s, 0.25},
      {"element-wise kernels and the host", time.other_compute_s, 0.35},
      {"bubble", time.bubble_s, 0.15},
      {"tensor-parallel exchange", exposed(GroupKind::tensor), 0.25},
      {"context-parallel exchange", exposed(GroupKind::context), 0.4},
      {"expert exchange", exposed(GroupKind::expert) + exposed(GroupKind::expert_tensor), 0.5},
      {"pipeline sends", exposed(GroupKind::pipeline), 0.4},
      {"data-parallel exchange", exposed(GroupKind::data) + exposed(GroupKind::expert_data), 0.5},
      {"optimizer", time.optimizer_s, 0.5},
      {"offload", time.offload_s, 0.5},
  };
  const double difference = measured_step_s - time.step_s;
  Suspect best;
  double least = 0;
  for (const Term& term : terms) {
    const double needed = term.seconds + difference;
    if (term.seconds <= 0 || needed <= 0) continue;
    const double surprise = std::abs(std::log(needed / term.seconds)) / term.usual_error;
    if (!best.term.empty() && surprise >= least) continue;
    least = surprise;
    best = {term.name, term.seconds, needed};
  }
  return best;
}

}  // namespace shardplan
