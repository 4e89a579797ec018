// Collectives that a layer or an end of the model makes for one microbatch: how long, and what passes wait for.
// Formulas over numbers or text (physics/trace.hpp).
#pragma once

#include "shardplan/physics/timing_formulas.hpp"
#include "shardplan/plan/step_names.hpp"
#include "shardplan/plan/step_rules.hpp"

namespace shardplan {

/// What of a call's time the pass waits for. `hides_behind`: seconds of compute that run beside it.
template <class Trace, class N = NumberOf<Trace>>
N exposed_time(const Trace& trace, const Run& run, CollectiveName name, N seconds, N hides_behind, bool backward) {
  using std::max;
  using std::min;
  if (value_of(seconds) <= 0) return 0.0;
  const StackTiming& timing = run.training.stack.timing;
  switch (name) {
    // Gathered again for the weight gradient, while the input gradient is computed.
    case CollectiveName::tp_regather: return backward ? max(N(0.0), seconds - hides_behind) : seconds;
    case CollectiveName::tp_all_reduce:
    case CollectiveName::tp_all_gather:
    case CollectiveName::tp_reduce_scatter:
      if (!run.training.overlap.tp) return seconds;
      return seconds * (1.0 - trace.stack(step_names::tp_hidden, timing.tp_hidden));
    case CollectiveName::cp_send: return max(N(0.0), seconds - hides_behind);
    // Interleaved with compute: hidden up to that, never more.
    case CollectiveName::ep_all_to_all:
      if (!overlaps_expert_exchange(run.parallel.schedule)) return seconds;
      return seconds - min(seconds, hides_behind) * trace.stack(step_names::expert_hidden, timing.expert_hidden);
    default: return seconds;
  }
}

/// Share of a token's copies that cross the network where the dispatcher sends one per destination node and copies it
/// there (DeepEP, HybridEP): expected distinct remote nodes over copies to remote nodes, top-k spread evenly.
template <class Trace, class N = NumberOf<Trace>>
N distinct_node_share(const Trace& trace, const RankGroup& group, double top_k) {
  using std::min;
  using std::pow;
  if (group.scope != Scope::inter_node || top_k <= 1) return 1.0;
  const N nodes = trace.run(step_names::expert_nodes, std::ceil(static_cast<double>(group.size) / group.per_domain));
  const N k = trace.config(step_names::top_k, top_k);
  return min(N(1.0), (1.0 - pow(1.0 - 1.0 / nodes, k)) * nodes / k);
}

/// layer_call_seconds of workspace.hpp.
template <class Trace, class N = NumberOf<Trace>>
N layer_call_time(const Trace& trace, const Run& run, const Topology& topology, const LayerCollective<N>& call,
                  double top_k) {
  using namespace step_constants;
  const RankGroup& group = topology.group(call.group);
  const StackTiming& timing = run.training.stack.timing;
  N share = 1.0;
  if (call.name == CollectiveName::ep_all_to_all && timing.expert_hidden > 0) {
    share = distinct_node_share(trace, group, top_k);
    if (group.scope == Scope::inter_node) {
      share = share * (trace.gpu(timing_names::nic_share, run.cluster.inter_node_efficiency()) /
                       trace.input(step_names::node_aware, node_aware_efficiency));
    }
    if (run.training.precision == Precision::fp8)
      share = share * trace.input(step_names::fp8_dispatch, fp8_dispatch_share);
  }
  const N sent = trace.step(step_names::call_bytes, share * call.sent);
  N seconds = collective_time(trace.in("call"), run.cluster, call.op, group, sent);
  // Beyond the eight ranks of a switch that were measured, more peers make smaller pieces.
  if (call.op == Collective::all_to_all && group.scope == Scope::intra_node && group.size > 8) {
    seconds = seconds *
              (trace.stack(step_names::all_to_all_spread, timing.all_to_all_spread) * N(std::cbrt(group.size / 8.0)));
  }
  return trace.step(step_names::call, seconds);
}

/// Adds calls of one kind, forward and backward of one microbatch, and what of each the pass waits for.
template <class Trace, class N = NumberOf<Trace>>
void add_calls(const Trace& here, CollectiveName name, N message, N sent, N seconds, double forward, double backward,
               N wait_forward, N wait_backward, UnitOf<N>& unit) {
  const std::string_view word = shardplan::name(name);
  const N calls = forward + backward;
  CollectiveSumOf<N>& sum = unit.collectives[static_cast<std::size_t>(name)];
  sum.calls += calls;
  sum.message = larger(sum.message, message);
  sum.sent += calls * sent;
  sum.time_s += calls * seconds;
  const N ahead =
      here.step({word, "exposed_forward", "what the forward pass waits for", "s", step_names::timing}, wait_forward);
  const N behind =
      here.step({word, "exposed_backward", "what the backward pass waits for", "s", step_names::timing}, wait_backward);
  sum.exposed_s += ahead + behind;
  unit.forward_exposed_s += ahead;
  unit.backward_exposed_s += behind;
}

/// What collectives of one name send, forward and backward, under one address.
template <class Trace, class N = NumberOf<Trace>>
void name_sent(const Trace& trace, const OperatorList<N>& list) {
  std::array<N, collective_count> sent{};
  for (const LayerCollective<N>& call : list.collectives) {
    sent[static_cast<std::size_t>(call.name)] +=
        N(static_cast<double>(call.forward_calls + call.backward_calls)) * call.sent;
  }
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const std::string_view word = name(static_cast<CollectiveName>(i));
    trace.in(word, word)
        .step({word, "sent", "bytes sent by one GPU, forward and backward", "B", step_names::ring}, sent[i]);
  }
}

/// A layer's collectives, as its list has them. `unit` has the operators' times.
template <class Trace, class N = NumberOf<Trace>>
void fold_collectives(const Trace& trace, const Run& run, const Topology& topology, const OperatorList<N>& list,
                      bool layer_recomputed, double top_k, UnitOf<N>& unit) {
  const UnitTimeOf<N>& time = unit.time;
  if constexpr (Trace::records) name_sent(trace, list);
  for (const LayerCollective<N>& call : list.collectives) {
    const std::string_view word = name(call.name);
    const Trace here = trace.in(word, word);
    const N seconds = layer_call_time(here, run, topology, call, top_k);
    const bool again = layer_recomputed || covered_by_modules(run.training.recompute, call.covered);
    const double forward = call.forward_calls;
    const double backward = call.backward_calls + (again ? forward : 0.0);
    const bool ring = call.name == CollectiveName::cp_send;
    const bool experts = call.name == CollectiveName::ep_all_to_all;
    const N beside_forward = ring ? time.attention_s / 3.5 : experts ? time.forward_s : time.forward_s / 2.0;
    const N beside_backward = ring ? time.attention_s / 1.4 : experts ? time.backward_s : time.forward_s / 2.0;
    add_calls(here, call.name, call.message, call.sent, seconds, forward, backward,
              exposed_time(here, run, call.name, forward * seconds, beside_forward, false),
              exposed_time(here, run, call.name, backward * seconds, beside_backward, true), unit);
  }
}

/// Collectives of vocabulary-parallel ends: the embedding's output, the head's input gradient. Passes wait for them.
template <class Trace, class N = NumberOf<Trace>>
void end_collective(const Trace& trace, const Run& run, const Topology& topology, CollectiveName name, Collective op,
                    N message, double forward, double backward, UnitOf<N>& unit) {
  const RankGroup& group = topology.group(GroupKind::tensor);
  if (group.size <= 1) return;
  const std::string_view word = shardplan::name(name);
  const Trace here = trace.in(word, word);
  const N share = sent_share_of<N>(op, trace.degree(step_names::tensor, group.size));
  const N sent = here.step(step_names::call_bytes, share * message);
  const N seconds = here.step(step_names::call, collective_time(here.in("call"), run.cluster, op, group, sent));
  add_calls(here, name, message, sent, seconds, forward, backward, forward * seconds, backward * seconds, unit);
}

/// A unit's sums over its collectives as steps.
template <class Trace, class N = NumberOf<Trace>>
void name_collectives(const Trace& trace, UnitOf<N>& unit) {
  for (std::size_t i = 0; i < collective_count; ++i) {
    CollectiveSumOf<N>& sum = unit.collectives[i];
    if (value_of(sum.calls) <= 0) continue;
    const std::string_view word = name(static_cast<CollectiveName>(i));
    const Trace here = trace.in(word, word);
    sum.sent = here.step({word, "sent_with_recomputation", "sent by one GPU for one microbatch, recomputation included",
                          "B", step_names::ring},
                         sum.sent);
    sum.time_s = here.step({word, "time", "calls of one microbatch", "s", step_names::timing}, sum.time_s);
    sum.exposed_s = here.step({word, "exposed", "what passes wait for", "s", step_names::timing}, sum.exposed_s);
  }
  unit.forward_exposed_s = trace.step(step_names::exposed_forward, unit.forward_exposed_s);
  unit.backward_exposed_s = trace.step(step_names::exposed_backward, unit.backward_exposed_s);
}

}  // namespace shardplan
