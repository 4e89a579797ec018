// The step: the simulated pipeline, then data-parallel traffic, optimizer and offload that nothing hides. Formulas over
// numbers or text (physics/trace.hpp).
#pragma once

#include <algorithm>

#include "shardplan/plan/optimizer_formulas.hpp"
#include "shardplan/plan/stage_formulas.hpp"
#include "shardplan/plan/step_time_names.hpp"

namespace shardplan {

/// What one stage does with the time of a step.
template <class N>
struct StageTimeOf {
  N compute{}, recompute{}, gemm{}, attention{};
  N exposed{};  ///< communication that its passes wait for, sends included
  N sends{};    ///< of it, time blocked sending to neighbours
  N bubble{};
  N optimizer{};
};

template <class Trace, class N = NumberOf<Trace>>
StageTimeOf<N> stage_time(const Trace& trace, const Run& run, const EstimateWorkspaceOf<N>& w, std::size_t rank) {
  using std::max;
  const StageOf<N>& stage = w.stages[rank];
  const UnitTimeOf<N>& unit = stage.total.time;
  const N through = trace.run(step_names::microbatches, schedule::microbatches_per_chunk(w.spec.shape));
  const N chunks = trace.degree(step_names::chunks, schedule::chunks_per_rank(w.spec.shape));
  const N forward = trace.step(step_names::forward_of_stage, unit.forward_s);
  const N backward = trace.step(step_names::backward_of_stage, unit.backward_s);
  StageTimeOf<N> time;
  time.compute = trace.figure(step_names::compute, through * (forward + backward + chunks * host_work(trace, run)));
  time.recompute = trace.figure(step_names::recomputed, through * unit.recompute_s);
  const N layers = trace.step(step_names::layers_exposed,
                              through * (stage.total.forward_exposed_s + stage.total.backward_exposed_s));
  time.sends = trace.simulated(step_names::sends_exposed, w.simulated.exposed_p2p[rank]);
  time.exposed = trace.figure(step_names::exposed, layers + time.sends);
  time.gemm = trace.figure(step_names::gemm, through * unit.gemm_s);
  time.attention = trace.figure(step_names::attention, through * unit.attention_s);
  const N idle = trace.simulated(step_names::idle, w.simulated.idle[rank]);
  time.bubble = trace.figure(step_names::bubble, max(N(0.0), idle - time.sends));
  time.optimizer = trace.figure(step_names::optimizer, optimizer_time(trace, run, w, stage));
  return time;
}

/// Sums over the stages, divided by their number.
template <class N>
struct StepSumsOf {
  N compute{}, recompute{}, exposed{}, bubble{}, gemm{}, attention{};
  std::array<N, 8> by_group{};  ///< by GroupKind
  N data{};                     ///< data-parallel traffic that stages would wait for, their mean
  N data_longest{};             ///< of the stage that waits longest: every stage waits for its tail
  N optimizer{};                ///< the longest
  N offload{};                  ///< the longest
};

template <class Trace, class N = NumberOf<Trace>>
void add_stage(const Trace& trace, const Run& run, const EstimateWorkspaceOf<N>& w, std::size_t rank, N ranks,
               StepSumsOf<N>& sums, Estimate& out) {
  const StageOf<N>& stage = w.stages[rank];
  const StageTimeOf<N> time = stage_time(trace, run, w, rank);
  sums.compute += time.compute / ranks;
  sums.recompute += time.recompute / ranks;
  sums.exposed += time.exposed / ranks;
  sums.gemm += time.gemm / ranks;
  sums.attention += time.attention / ranks;
  constexpr std::size_t pipeline = static_cast<std::size_t>(GroupKind::pipeline);
  for (std::size_t g = 0; g < sums.by_group.size(); ++g) {
    N waits = stage.exposed_by_group_s[g];
    if (g != pipeline) waits = trace.step(step_names::exposed_of(static_cast<GroupKind>(g)), waits);
    sums.by_group[g] += waits / ranks;
  }
  sums.by_group[pipeline] += time.sends / ranks;
  sums.bubble += time.bubble / ranks;
  sums.data += stage.data_exposed_s / ranks;
  if (rank == 0 || value_of(stage.data_exposed_s) > value_of(sums.data_longest)) {
    sums.data_longest = stage.data_exposed_s;
    out.time.data_exposed_stage = static_cast<int>(rank);
    out.time.data_hidden_s = std::max(0.0, value_of(stage.data_s) - value_of(stage.data_exposed_s));
  }
  sums.optimizer = larger(sums.optimizer, time.optimizer);
  const N paged = paged_bytes(trace, run, stage, out.stages[rank], static_cast<double>(out.capacity_bytes));
  const OffloadWorkOf<N> work = offload_work(trace, run, w, rank, paged);
  const N waits = trace.figure(step_names::offload, offload_time(trace, work, time.compute + time.recompute));
  if (rank == 0 || value_of(waits) > value_of(sums.offload)) {
    out.offload = {value_of(work.to_host),      value_of(work.from_host), value_of(work.nvme_read),
                   value_of(work.nvme_written), value_of(work.step),      value_of(work.passes)};
  }
  sums.offload = larger(sums.offload, waits);
}

/// The rows of the page: who waits for whose communication.
template <class Trace, class N = NumberOf<Trace>>
void conclude_groups(const Trace& trace, N data, StepSumsOf<N>& sums, TimeEstimate& time) {
  // The wait for the slowest stage's traffic counts as that traffic.
  sums.by_group[static_cast<std::size_t>(GroupKind::data)] += data - sums.data;
  for (std::size_t g = 0; g < sums.by_group.size(); ++g) {
    const N waits = trace.figure(step_names::exposed_of(static_cast<GroupKind>(g)), sums.by_group[g]);
    time.exposed_by_group_s[g] = value_of(waits);
  }
}

/// How well the time of a run like this is known, and the band around it.
BandClass band_class(const Run& run) noexcept;
double band_share(BandClass of) noexcept;

/// estimate_time of workspace.hpp.
template <class Trace, class N = NumberOf<Trace>>
void fold_time(const Trace& trace, const Run& run, const EstimateWorkspaceOf<N>& w, Estimate& out) {
  using std::max;
  TimeEstimate& time = out.time;
  time = TimeEstimate{};
  const N ranks = trace.degree(step_names::stages, static_cast<double>(w.stages.size()));
  StepSumsOf<N> sums;
  for (std::size_t i = 0; i < w.stages.size(); ++i) add_stage(trace.at_stage(i), run, w, i, ranks, sums, out);
  const auto put = [&trace](const StepName& name, N formula, double& to) {
    const N figure = trace.same_or_sum(name, formula);
    to = value_of(figure);
    return figure;
  };
  const N data = trace.same_or_sum(step_names::data_longest, sums.data_longest,
                                   static_cast<double>(out.time.data_exposed_stage), ", which waits longest");
  const N compute = put(step_names::compute, sums.compute, time.compute_s);
  const N recompute = put(step_names::recomputed, sums.recompute, time.recompute_s);
  const N exposed = put(step_names::exposed, sums.exposed + data, time.communication_exposed_s);
  const N bubble = put(step_names::bubble, sums.bubble, time.bubble_s);
  const N optimizer = put(step_names::optimizer, sums.optimizer, time.optimizer_s);
  const N offload = put(step_names::offload, sums.offload, time.offload_s);
  const N gemm = put(step_names::gemm, sums.gemm, time.gemm_s);
  const N attention = put(step_names::attention, sums.attention, time.attention_s);
  put(step_names::other_compute, max(N(0.0), compute + recompute - gemm - attention), time.other_compute_s);
  conclude_groups(trace, data, sums, time);
  const N step = put(step_names::step, compute + recompute + exposed + bubble + optimizer + offload, time.step_s);
  const N makespan = trace.simulated(step_names::makespan, w.simulated.makespan);
  put(step_names::bubble_fraction, value_of(makespan) > 0 ? bubble / makespan : N(0.0), out.pipeline.bubble_fraction);
  if (Trace::records && value_of(step) > 0) trace.step(step_names::bubble_of_step, bubble / step);
  time.band_class = band_class(run);
  const N spread = trace.input(step_names::band, band_share(time.band_class));
  put(step_names::band_low, step * (1.0 - spread), time.band_low_s);
  put(step_names::band_high, step * (1.0 + spread), time.band_high_s);
}

}  // namespace shardplan
