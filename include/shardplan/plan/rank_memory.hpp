// What lies on one rank at each moment of a step, as one formula over numbers or text.
#pragma once

#include <algorithm>
#include <array>

#include "shardplan/plan/estimate.hpp"

namespace shardplan {

/// What shapes the formula of a rank.
struct RankFacts {
  bool textbook = false;
  bool has_head = false;
  bool gradients_from_start = false;  ///< gradients exist while the first microbatch runs forward
  bool retains_inputs = false;        ///< FSDP1 keeps the inputs of frozen units until backward ends
  bool placeholder_gradients = false;
  bool full_initialisation = false;
};

/// The bytes that the moments are sums of.
template <class N>
struct RankBytes {
  // From step to step.
  N parameters{}, gradients{}, optimizer{}, framework{};
  N workspaces{};  ///< cuBLAS, inside the allocator
  // Activations.
  N in_flight{};    ///< of all microbatches in flight, what the card holds
  N current{};      ///< of the microbatch whose backward runs, in one chunk
  N first_layer{};  ///< of it, the first layer's
  N retained{};     ///< inputs' gradients that pile up where inputs are retained
  N final_norm{};   ///< what the final norm keeps
  N head_input{};   ///< the final norm's output as the head keeps it
  N head_saved{};   ///< that, and what the loss keeps
  // Within a pass.
  N recomputed{};       ///< activations that a segment's recomputation makes again
  N layer{};            ///< the largest transient of one layer's backward
  N layer_output{};     ///< a reentrant checkpoint's output, held again
  N loss{};             ///< logits and what the loss makes of them
  N head_product{};     ///< backward of the head's product
  N head_weight{};      ///< its weight's gradient or a placeholder of that size
  N head_gradient{};    ///< the head's weight gradient in 16 bit
  N root_gradient{};    ///< the same, unsharded, from the loss on
  N gradients_apart{};  ///< gradients of a microbatch, in the weights' type beside their fp32 sums
  N placeholders{};     ///< cached placeholder gradients
  N kept_logits{};
  N step{};         ///< temporaries of the optimizer's step
  N whole_model{};  ///< what a full initialisation holds
  // Buffers.
  N gathered{}, gathered_at_loss{}, cached{}, collectives{}, collectives_at_loss{}, lasting{};
};

template <class N>
struct MomentBytes {
  bool exists = false;
  N parameters{}, gradients{}, optimizer{}, activations{}, transient{}, communication_buffers{}, framework{};
};

template <class N>
using RankMoments = std::array<MomentBytes<N>, moment_count>;

template <class N>
RankMoments<N> rank_moments(const RankFacts& facts, const RankBytes<N>& r) {
  using std::max;
  using std::min;
  const N none = 0.0;
  RankMoments<N> moments;
  const auto at = [&](Moment moment, bool gradients) -> MomentBytes<N>& {
    MomentBytes<N>& parts = moments[static_cast<std::size_t>(moment)];
    parts.exists = true;
    parts.parameters = r.parameters;
    parts.gradients = gradients ? r.gradients : none;
    parts.optimizer = r.optimizer;
    parts.framework = r.framework;
    return parts;
  };
  if (facts.textbook) {
    MomentBytes<N>& backward = at(Moment::backward, true);
    backward.activations = r.in_flight + (facts.has_head ? r.final_norm + r.head_saved : none);
    backward.transient = r.recomputed;
    at(Moment::optimizer_step, true);
    return moments;
  }
  if (facts.has_head) {
    MomentBytes<N>& parts = at(Moment::loss, facts.gradients_from_start);
    parts.activations = r.in_flight + r.final_norm + r.head_input;
    // Cached placeholders of weight gradients are counted once, among the others.
    const N made = facts.placeholder_gradients ? none : r.head_weight;
    const N most = max(max(r.loss, r.head_product + made), r.head_saved - r.head_input);
    parts.transient = r.gathered_at_loss + most + r.placeholders + r.cached + r.workspaces;
    parts.communication_buffers = r.collectives_at_loss;
  }
  const N inside = r.recomputed + r.layer + r.layer_output;
  const N held = r.gathered + inside + r.root_gradient + r.placeholders + r.kept_logits + r.cached + r.workspaces;
  {
    MomentBytes<N>& parts = at(Moment::backward, facts.gradients_from_start);
    if (!facts.gradients_from_start && facts.has_head && !(r.root_gradient > none)) {
      // One GPU, no accumulation: the head's gradient is the first to exist.
      parts.gradients = min(r.gradients, r.head_gradient);
    }
    parts.activations = r.in_flight;
    parts.transient = held;
    parts.communication_buffers = r.collectives;
  }
  {
    MomentBytes<N>& parts = at(Moment::backward_end, true);
    // FSDP1 hangs its hook on the inputs of frozen units: nothing is freed, each layer passed adds its input's
    // gradient.
    parts.activations =
        facts.retains_inputs ? r.in_flight + r.retained : max(none, r.in_flight - r.current) + r.first_layer;
    parts.transient = held + r.gradients_apart;
    parts.communication_buffers = r.collectives;
  }
  {
    MomentBytes<N>& parts = at(Moment::optimizer_step, true);
    parts.transient = r.step + r.placeholders + r.cached + r.workspaces;
    parts.communication_buffers = r.lasting;
  }
  if (facts.full_initialisation) {
    MomentBytes<N>& parts = at(Moment::initialisation, false);
    parts.optimizer = none;
    parts.transient = r.whole_model;
  }
  return moments;
}

/// A rank's formula with its numbers; `host` and `nvme` is what it puts elsewhere.
template <class N>
struct RankMemoryOf {
  RankFacts facts;
  RankBytes<N> bytes;
  N host_bytes{};
  N nvme_bytes{};
  N offloaded_activations{};
};

}  // namespace shardplan
