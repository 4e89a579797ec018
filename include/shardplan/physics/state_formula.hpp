// Bytes of parameters, gradients and optimizer states, as one formula over numbers or text.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>

#include "shardplan/physics/optimizers.hpp"
#include "shardplan/physics/states.hpp"
#include "shardplan/physics/trace.hpp"

namespace shardplan {

/// What states are a function of.
template <class N>
using StateElements = WeightsOf<N>;

/// Bytes per element of each state: a rule's, or symbols in their place.
template <class N>
struct StateWidths {
  N parameter{}, gradient{}, master{}, moment{}, frozen{}, quantized{};
  N adapter_parameter{}, adapter_gradient{}, adapter_master{}, adapter_moment{};
};
template <class N>
StateWidths<N> widths_of(const StateRule& rule) {
  return {rule.parameter_bytes,
          rule.gradient_bytes,
          rule.master_bytes,
          rule.moment_bytes,
          rule.frozen_bytes,
          rule.quantized_bytes,
          rule.adapter_parameter_bytes,
          rule.adapter_gradient_bytes,
          rule.adapter_master_bytes,
          rule.adapter_moment_bytes};
}

/// Ranks that share one copy of each state.
template <class N>
struct StateShards {
  N parameter{}, gradient{}, optimizer{}, replicas{};
};

template <class N>
struct StateSums {
  N parameters{}, gradients{}, optimizer{};
  N moments{};  ///< of it, without a master copy
  N unpaged{};  ///< of that, what is too small to page
};

/// Elements in a buffer padded to the least common multiple of its shards and 128 (Megatron-LM param_and_grad_buffer).
template <class N>
N padded_elements(N elements, N shards) {
  using std::ceil;
  const double unit = static_cast<double>(std::lcm(static_cast<long long>(value_of(shards)), 128LL));
  return value_of(elements) == std::ceil(value_of(elements) / unit) * unit ? elements : ceil(elements / unit) * unit;
}

/// Adds one group of weights. A shard is rounded up to whole elements, for textbook the sum of bytes is.
template <class N>
void add_states(const StateRule& rule, const StateWidths<N>& width, const Optimizer& optimizer,
                const StateElements<N>& w, const StateShards<N>& shards, StateSums<N>& bytes) {
  using std::ceil;
  using std::max;
  const bool one_layer = optimizer.form == StateForm::block_coordinate;
  const auto shard = [&rule](N elements, N ranks) {
    using std::ceil;
    if (value_of(ranks) <= 1) return elements;
    return rule.rounds_bytes ? elements / ranks : ceil(elements / ranks);
  };
  N trained_buffer = w.trained;
  if (rule.padded_buffers) trained_buffer = padded_elements(w.trained, shards.optimizer);
  bytes.parameters += width.parameter * shard(trained_buffer, shards.parameter);
  if (rule.narrow_parameter_bytes > 0) {
    bytes.parameters += (N(rule.narrow_parameter_bytes) - width.parameter) * shard(w.narrow, shards.parameter);
  }
  if (optimizer.weight_bytes > 0 && value_of(w.treated) > 0) {
    bytes.parameters -= (width.parameter - N(optimizer.weight_bytes)) * shard(w.treated, shards.parameter);
  }
  // Of the layer that it is about, active_layer_bytes.
  if (!one_layer) {
    if (rule.keeps_gradients) bytes.gradients += width.gradient * shard(trained_buffer, shards.gradient);
    const N elementwise = max(N(0.0), trained_buffer - w.counted);
    N counted = w.counted_bytes / shards.optimizer;
    if (rule.whole_matrices) counted = max(counted, w.largest_bytes);
    const N moments = width.moment * shard(elementwise, shards.optimizer) + counted +
                      N(rule.replica_share_bytes) * w.trained / shards.replicas;
    bytes.moments += moments;
    bytes.optimizer += width.master * shard(trained_buffer, shards.optimizer) + moments;
  }
  // Frozen weights: stored once, never with gradients or states.
  bytes.parameters += width.frozen * shard(w.frozen, shards.parameter);
  if (value_of(w.quantized) > 0) {
    bytes.parameters += width.quantized * shard(w.quantized, shards.parameter);
    const N constants =
        ceil(N(rule.quantized_constant_bytes) * w.quantized + N(rule.quantized_row_bytes) * w.quantized_rows);
    bytes.parameters += rule.constants_sharded ? shard(constants, shards.parameter) : constants;
  }
  if (value_of(w.adapters) > 0) {
    const bool cut = rule.adapters_sharded;
    const N one = 1.0;
    const N buffer = rule.padded_buffers ? padded_elements(w.adapters, shards.optimizer) : w.adapters;
    bytes.parameters += width.adapter_parameter * shard(buffer, cut ? shards.parameter : one);
    const N gradients = rule.keeps_gradients ? width.adapter_gradient : N(0.0);
    bytes.gradients += gradients * shard(buffer, cut ? shards.gradient : one);
    const N states = cut ? shards.optimizer : one;
    const N elementwise = max(N(0.0), buffer - w.adapter_counted);
    const N moments = width.adapter_moment * shard(elementwise, states) + w.adapter_counted_bytes / states;
    bytes.moments += moments;
    bytes.optimizer += width.adapter_master * shard(buffer, states) + moments;
  }
  if (optimizer.paged) bytes.unpaged += w.unpaged_bytes / shards.optimizer;
}
template <class N>
void add_states(const StateRule& rule, const Optimizer& optimizer, const StateElements<N>& w,
                const StateShards<N>& shards, StateSums<N>& bytes) {
  add_states(rule, widths_of<N>(rule), optimizer, w, shards, bytes);
}

/// Ranks that share the states of a unit's dense and expert weights.
template <class N>
struct UnitShards {
  StateShards<N> dense, expert;
};
template <class Trace, class N = NumberOf<Trace>>
UnitShards<N> shards_of(const Trace& trace, const StateRule& rule) {
  const auto dense = [&](double ranks) { return trace.ranks(GroupKind::data, ranks); };
  const auto expert = [&](double ranks) { return trace.ranks(GroupKind::expert_data, ranks); };
  return {{dense(rule.parameter_shards), dense(rule.gradient_shards), dense(rule.optimizer_shards),
           dense(rule.dense_replicas)},
          {expert(rule.expert_parameter_shards), expert(rule.expert_gradient_shards),
           expert(rule.expert_optimizer_shards), expert(rule.expert_replicas)}};
}

/// state_bytes of states.hpp.
template <class Trace, class N = NumberOf<Trace>>
StateBytesOf<N> unit_state_bytes(const Trace& trace, const StateRule& rule, const UnitWeightsOf<N>& unit,
                                 const Optimizer& optimizer) {
  using std::ceil;
  const UnitShards<N> shards = shards_of(trace, rule);
  StateSums<N> sums;
  add_states(rule, optimizer, unit.dense, shards.dense, sums);
  add_states(rule, optimizer, unit.expert, shards.expert, sums);
  StateBytesOf<N> bytes;
  bytes.moments = sums.moments;
  if (optimizer.paged) {
    using std::floor;
    using std::max;
    bytes.paged = max(N(0.0), floor(sums.moments - sums.unpaged));
  }
  bytes.parameters = ceil(sums.parameters);
  bytes.gradients = ceil(sums.gradients);
  bytes.optimizer = ceil(sums.optimizer);
  return bytes;
}

/// active_layer_bytes of states.hpp.
template <class Trace, class N = NumberOf<Trace>>
StateBytesOf<N> active_layer_states(const Trace& trace, const StateRule& rule, N elements) {
  using std::ceil;
  const StateShards<N> shards = shards_of(trace, rule).dense;
  StateBytesOf<N> bytes;
  bytes.gradients = ceil(N(rule.gradient_bytes) * elements / shards.gradient);
  bytes.moments = N(rule.moment_bytes) * elements / shards.optimizer;
  bytes.optimizer = ceil(N(rule.parameter_bytes < 4 ? 4.0 : 0.0) * elements / shards.optimizer + bytes.moments);
  return bytes;
}

}  // namespace shardplan
