// Bytes of what data and pipeline parallelism move, as one formula over numbers or text.
#pragma once

#include <algorithm>

#include "shardplan/core/run.hpp"
#include "shardplan/physics/states.hpp"
#include "shardplan/physics/symbols.hpp"

namespace shardplan {

/// Bytes of one group of a stage's weights (dense, or of experts) and of their gradients, before data sharding.
template <class N>
struct DataVolumes {
  N gradients{};  ///< as they are reduced
  N updated{};    ///< weights that a step changes, as they are gathered
  N gathered{};   ///< all weights as they are gathered
  N stored{};     ///< all weights as torch.nn.DataParallel copies them
};

/// `Elements`: Weights, or StateElements over numbers or text.
template <class N, class Elements>
DataVolumes<N> data_volumes(const StateRule& rule, const Training& training, const Elements& w) {
  const double compute = bytes_of(activation_dtype(training.precision));
  const double width = std::min(compute, rule.parameter_bytes);
  DataVolumes<N> v;
  v.gradients = N(rule.gradient_bytes) * w.trained + N(rule.adapter_gradient_bytes) * w.adapters;
  v.updated = N(width) * w.trained + N(std::min(compute, rule.adapter_parameter_bytes)) * w.adapters;
  if (training.fp8_param_gather) v.updated -= N(width - 1) * w.narrow;  // gathered as fp8
  v.gathered = v.updated + N(rule.frozen_bytes) * w.frozen + N(rule.quantized_bytes) * w.quantized;
  v.stored = N(rule.parameter_bytes) * (w.trained + w.frozen + w.quantized + w.adapters);
  return v;
}

/// Bytes of the gradient of a tied embedding that its two holders sum.
template <class N>
N embedding_gradient(const StateRule& rule, N vocab, N tensor, N hidden) {
  return N(rule.gradient_bytes) * vocab / tensor * hidden;
}

/// What a data-parallel collective carries.
enum class Carried : std::uint8_t { gradients, updated, gathered, stored, embedding_gradient };

struct Payload {
  Carried what = Carried::gradients;
  bool dense = true;     ///< of the weights that all ranks share
  bool experts = false;  ///< of the routed experts; both: their sum
  double narrower = 1;   ///< how much smaller it is as sent: qwZ 2, qgZ 4
  int cut = 1;           ///< ranks of a shard set that share it: a replica reduces its part alone
};

/// Bytes of a payload, the whole tensor over its group. `cut`: Payload::cut, as a number or a symbol.
template <class N>
N payload_bytes(const Payload& payload, const DataVolumes<N>& dense, const DataVolumes<N>& experts,
                N embedding_gradient, N cut) {
  if (payload.what == Carried::embedding_gradient) return embedding_gradient;
  const auto of = [&payload](const DataVolumes<N>& volumes) {
    switch (payload.what) {
      case Carried::updated: return volumes.updated;
      case Carried::gathered: return volumes.gathered;
      case Carried::stored: return volumes.stored;
      default: return volumes.gradients;
    }
  };
  N bytes = payload.dense && payload.experts ? of(dense) + of(experts) : payload.dense ? of(dense) : of(experts);
  if (payload.narrower > 1) bytes = bytes / payload.narrower;
  if (payload.cut > 1) bytes = bytes / cut;
  return bytes;
}

/// One microbatch's hidden state as a pipeline rank hands it on, bytes. `cut`: tensor ranks under sequence
/// parallelism, else 1.
template <class N>
N boundary_volume(double width, N tokens, N hidden, N cut) {
  return N(width) * tokens * hidden / cut;
}

template <class N>
N boundary_of(const Run& run, const Symbols<N>& v) {
  return boundary_volume(bytes_of(activation_dtype(run.training.precision)), v.s * v.b / v.c, v.h, v.t_sp);
}

}  // namespace shardplan
