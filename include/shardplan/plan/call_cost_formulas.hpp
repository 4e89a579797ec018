// How long each data-parallel collective of a rank takes in a step, and what of it the step waits for. A rank that is
// done before the others reduces while they finish, one that starts after them gathers while they begin: of both only
// the rest is waited for. Formulas over numbers or text (physics/trace.hpp).
#pragma once

#include <algorithm>

#include "shardplan/plan/data_call_formulas.hpp"

namespace shardplan {

/// Seconds of a step's calls.
template <class Trace, class N = NumberOf<Trace>>
N call_time(const Trace& stage, const Run& run, DataCallOf<N>& call) {
  const Trace here = stage.in("communication").in(call.name, call.name);
  call.bytes = here.step(step_names::pass_bytes, call.bytes);
  const N units = here.degree(step_names::units, call.units);
  const N share = sent_share_of<N>(call.op, here.ranks(call.group, call.ranks.size));
  const N sent = here.step(step_names::call_bytes, share * (call.bytes / units));
  const N one = here.step(step_names::call, collective_time(here.in("call"), run.cluster, call.op, call.ranks, sent));
  return here.degree(step_names::microbatches, call.passes) * units * one;
}

/// The share of a call that overlap hides at most.
template <class Trace, class N>
NumberOf<Trace> hidden_share(const Trace& trace, const Run& run, const DataCallOf<N>& call) {
  const bool each = in_each_pass(call.hides) || call.hidden != run.training.stack.timing.grad_reduce_hidden;
  return trace.stack(each ? step_names::fsdp_hidden : step_names::reduce_hidden, call.hidden);
}

/// What a reduction that is made once a step sticks out behind the rank's last backward. Each chunk's part starts in
/// its last backward, bucket by bucket, and the parts follow one another.
template <class Trace, class N = NumberOf<Trace>>
N reduce_tail(const Trace& stage, const Run& run, const EstimateWorkspaceOf<N>& w, std::size_t rank,
              const DataCallOf<N>& call, N seconds) {
  using std::max;
  const int chunks = schedule::chunks_per_rank(w.spec.shape);
  const std::size_t first = rank * static_cast<std::size_t>(chunks);
  N elements = 0.0;
  for (int c = 0; c < chunks; ++c) elements += w.chunks[first + static_cast<std::size_t>(c)].elements;
  N done = 0.0;
  // The chunk that is done first is the last one of the model.
  for (int c = chunks - 1; c >= 0; --c) {
    const ChunkOf<N>& chunk = w.chunks[first + static_cast<std::size_t>(c)];
    const Trace here = stage.at_chunk(c);
    const N share =
        value_of(elements) > 0 ? here.step(step_names::chunk_share, chunk.elements / elements) : N(1.0 / chunks);
    const N ready =
        here.simulated(step_names::reduces_from, gradient_reduce_start(run, w.spec.shape, w.simulated, rank, c));
    const N during =
        here.input(step_names::pass_share, step_constants::hidden_behind_pass) * (chunk.forward_s + chunk.backward_s);
    done = max(done, ready - during) + share * seconds;
  }
  const N end = stage.simulated(step_names::last_end, w.simulated.last_end[rank]);
  return max(seconds * (1.0 - hidden_share(stage, run, call)), done - end);
}

/// What the step waits for; the flush and the warm-up of the pipeline, and calls that share a pass, hide more.
template <class Trace, class N = NumberOf<Trace>>
N exposed_alone(const Trace& stage, const Run& run, const EstimateWorkspaceOf<N>& w, std::size_t rank,
                const DataCallOf<N>& call, N seconds) {
  using std::max;
  if (!call.overlaps) return seconds;
  const StageOf<N>& of = w.stages[rank];
  switch (call.hides) {
    case Hides::behind_last_backward: return reduce_tail(stage, run, w, rank, call, seconds);
    case Hides::behind_first_forward:
      return max(seconds * (1.0 - hidden_share(stage, run, call)),
                 seconds - stage.input(step_names::pass_share, step_constants::hidden_behind_pass) *
                               (of.forward_s + of.backward_s));
    default: return seconds;
  }
}

/// Per-layer traffic of all microbatches' forward or backward passes: it shares the links, so it hides as one. What
/// runs beside compute takes multiprocessors and HBM from it.
template <class Trace, class N = NumberOf<Trace>>
void hide_in_passes(const Trace& stage, const Run& run, N compute, Hides pass, DataCallsOf<N>& calls) {
  using std::min;
  N sum = 0.0, hidden_part = 0.0;
  for (const DataCallOf<N>& call : calls) {
    if (call.hides != pass || !call.overlaps) continue;
    sum += call.seconds;
    hidden_part += hidden_share(stage, run, call) * call.seconds;
  }
  if (value_of(sum) <= 0) return;
  const bool forward = pass == Hides::behind_each_forward;
  const Trace here = stage.in(forward ? "communication.in_forward" : "communication.in_backward",
                              forward ? "traffic of all forward passes" : "traffic of all backward passes");
  const N total = here.step(step_names::pass_traffic, sum);
  const N beside = min(total, compute);
  const N contention = here.stack(step_names::contention, run.training.stack.timing.fsdp_contention);
  const N waits =
      here.step(step_names::pass_traffic_exposed, total - beside + (1.0 - hidden_part / total + contention) * beside);
  const N share = min(N(1.0), waits / total);
  for (DataCallOf<N>& call : calls) {
    if (call.hides == pass && call.overlaps) call.exposed = share * call.seconds;
  }
}

/// The share of what sticks out that the pipeline's flush or warm-up does not cover.
template <class Trace, class N = NumberOf<Trace>>
N seen_share(const Trace& stage, const StepName& name, const StepName& tail, N exposed, N gap) {
  using std::max;
  if (value_of(exposed) <= 0) return 1.0;
  if (value_of(gap) == 0) return 1.0;
  const N all = stage.step(tail, exposed);
  return stage.step(name, max(N(0.0), all - gap) / all);
}

/// cost_calls of step_rules.hpp.
template <class Trace, class N = NumberOf<Trace>>
void cost_calls(const Trace& stage, const Run& run, const EstimateWorkspaceOf<N>& w, std::size_t rank,
                DataCallsOf<N>& calls) {
  N reduce = 0.0, gather = 0.0;
  for (DataCallOf<N>& call : calls) {
    call.seconds = call_time(stage, run, call);
    call.exposed = exposed_alone(stage, run, w, rank, call, call.seconds);
    if (in_each_pass(call.hides)) continue;
    (call.hides == Hides::behind_first_forward ? gather : reduce) += call.exposed;
  }
  const N m = stage.degree(step_names::microbatches, static_cast<double>(run.microbatches()));
  hide_in_passes(stage, run, m * w.stages[rank].forward_s, Hides::behind_each_forward, calls);
  hide_in_passes(stage, run, m * w.stages[rank].backward_s, Hides::behind_each_backward, calls);
  const N makespan = stage.of_run().simulated(step_names::makespan, w.simulated.makespan);
  const N end = stage.simulated(step_names::last_end, w.simulated.last_end[rank]);
  const N of_reduce = seen_share(stage, step_names::reduce_seen, step_names::reduce_sticks_out, reduce, makespan - end);
  const N of_gather = seen_share(stage, step_names::gather_seen, step_names::gather_sticks_out, gather,
                                 stage.simulated(step_names::first_start, w.simulated.first_start[rank]));
  for (DataCallOf<N>& call : calls) {
    if (call.hides == Hides::behind_last_backward) call.exposed = call.exposed * of_reduce;
    if (call.hides == Hides::behind_first_forward) call.exposed = call.exposed * of_gather;
  }
}

}  // namespace shardplan
