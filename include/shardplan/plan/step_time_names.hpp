// What the rows of a step's time are called where formulas are shown.
#pragma once

#include "shardplan/physics/collective.hpp"
#include "shardplan/plan/step_names.hpp"

namespace shardplan::step_names {

inline constexpr InputName stages = {"p", "pipeline stages"};
inline constexpr InputName chunks = {"v", "model chunks of a rank"};
inline constexpr InputName band = {"band", "80% band of runs like this one",
                                   "docs/validation.md, verdicts and bands of step time", "fraction"};

inline constexpr std::string_view bands = "docs/validation.md, verdicts and bands of step time";

inline constexpr StepName forward_of_stage = {"F", "time.forward", "forward, one microbatch", "s", timing};
inline constexpr StepName backward_of_stage = {"B", "time.backward", "backward, one microbatch", "s", timing};
inline constexpr StepName compute = {"compute", "time.compute", "matrix products, attention and the rest", "s", timing};
inline constexpr StepName recomputed = {"recompute", "time.recompute", "forward passes again", "s", timing};
inline constexpr StepName gemm = {"gemm", "time.gemm", "matrix products, of compute and recompute", "s", timing};
inline constexpr StepName attention = {"attention", "time.attention", "attention, of compute and recompute", "s",
                                       timing};
inline constexpr StepName other_compute = {"rest", "time.other_compute", "norms, activations and what else moves bytes",
                                           "s", timing};
inline constexpr StepName exposed = {"communication", "time.communication_exposed",
                                     "communication that nothing hides: inside passes and between stages", "s", timing};
inline constexpr StepName data_longest = {"data", "time.communication_exposed.data",
                                          "data-parallel traffic that all wait for: that of stage ", "s", timing};
inline constexpr StepName idle = {"idle", "time.simulated.idle",
                                  "the makespan less what its passes take: waits and sends", "s", simulated};
inline constexpr StepName bubble = {"bubble", "time.bubble", "waiting for other stages", "s", simulated};
inline constexpr StepName step = {"step", "time.step", "one optimizer step", "s", sum};
inline constexpr StepName bubble_fraction = {
    "bubble_fraction", "pipeline.bubble_fraction", "waiting for other stages, as a share of the pipeline's makespan",
    "fraction", "arXiv:2104.04473 section 2.2; simulated with this run's times"};
inline constexpr StepName bubble_of_step = {
    "bubble_of_step", "time.bubble_share", "waiting for other stages, as a share of the step", "fraction",
    "the same waiting over the step, which has the optimizer and what follows the pipeline too"};
inline constexpr StepName band_low = {"low", "time.band_low", "four of five steps lie above this", "s", bands};
inline constexpr StepName band_high = {"high", "time.band_high", "four of five steps lie below this", "s", bands};

/// Communication of a kind of group that the step waits for.
constexpr StepName exposed_of(GroupKind group) noexcept {
  switch (group) {
    case GroupKind::tensor:
      return {"tensor", "time.exposed.tensor", "TP exchange: communication of tensor groups that the step waits for",
              "s", timing};
    case GroupKind::pipeline:
      return {"pipeline", "time.exposed.pipeline", "PP send: communication of pipeline groups that the step waits for",
              "s", timing};
    case GroupKind::data:
      return {"data", "time.exposed.data", "DP exchange: communication of data groups that the step waits for", "s",
              timing};
    case GroupKind::context:
      return {"context", "time.exposed.context", "CP exchange: communication of context groups that the step waits for",
              "s", timing};
    case GroupKind::expert:
      return {"expert", "time.exposed.expert", "EP exchange: communication of expert groups that the step waits for",
              "s", timing};
    case GroupKind::expert_data:
      return {"expert_data", "time.exposed.expert_data",
              "EDP exchange: communication of expert_data groups that the step waits for", "s", timing};
    case GroupKind::embedding:
      return {"embedding", "time.exposed.embedding",
              "tied weights: communication of embedding groups that the step waits for", "s", timing};
    case GroupKind::expert_tensor:
      return {"expert_tensor", "time.exposed.expert_tensor",
              "ETP exchange: communication of expert_tensor groups that the step waits for", "s", timing};
  }
  return {};
}

}  // namespace shardplan::step_names
