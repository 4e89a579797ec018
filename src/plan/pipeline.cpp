// The simulated step: who waits for whom, and what is in flight where.
#include <algorithm>
#include <cmath>

#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/physics/layer_inputs.hpp"
#include "shardplan/plan/communication_formulas.hpp"
#include "shardplan/schedule/closed_form.hpp"

namespace shardplan {
namespace {

/// One stage: microbatches one after the other, nobody waits.
void run_single_stage(const EstimateWorkspace& w, double microbatches, schedule::PipelineResult& result) {
  const double busy = microbatches * (w.forward[0] + w.backward[0] + w.weight[0]);
  result.makespan = result.max_span = busy;
  result.busy.assign(1, busy);
  result.idle.assign(1, 0.0);
  result.exposed_p2p.assign(1, 0.0);
  result.first_start.assign(1, 0.0);
  result.last_end.assign(1, busy);
  result.peak_inflight.assign(1, 1.0);
  result.peak_bytes.assign(1, w.activation[0]);
  result.grad_ready.assign(1, busy);
  result.forward_bytes.assign(1, w.activation[0]);
  result.backward_bytes.assign(1, w.activation[0]);
  result.peak_live.assign(1, 1.0);
}

// Beyond this many microbatches x virtual stages the steady state is simulated once and repeated.
constexpr double most_simulated = 1 << 22;

/// Simulates a shorter step and extends its steady state: every further round of p microbatches costs the same.
void run_extended(EstimateWorkspace& w, double microbatches) {
  schedule::PipelineSpec& spec = w.spec;
  const int p = spec.shape.p, stages = spec.shape.virtual_stages();
  const int full = spec.shape.m;
  const int shorter =
      std::max(8 * stages, static_cast<int>(most_simulated / (4.0 * stages))) / (2 * p) * (2 * p) + full % (2 * p);
  spec.shape.m = shorter - 2 * p;
  schedule::simulate(spec, w.pipeline, w.ideal_result);
  spec.shape.m = shorter;
  schedule::simulate(spec, w.pipeline, w.simulated);
  spec.shape.m = full;
  const double rounds = (microbatches - shorter) / (2.0 * p);
  const auto extend = [rounds](double& value, double earlier) { value += rounds * (value - earlier); };
  extend(w.simulated.makespan, w.ideal_result.makespan);
  extend(w.simulated.max_span, w.ideal_result.max_span);
  for (std::size_t i = 0; i < w.simulated.busy.size(); ++i) {
    extend(w.simulated.busy[i], w.ideal_result.busy[i]);
    extend(w.simulated.exposed_p2p[i], w.ideal_result.exposed_p2p[i]);
    extend(w.simulated.last_end[i], w.ideal_result.last_end[i]);
    w.simulated.idle[i] = w.simulated.makespan - w.simulated.busy[i];
  }
  for (std::size_t i = 0; i < w.simulated.grad_ready.size(); ++i) {
    extend(w.simulated.grad_ready[i], w.ideal_result.grad_ready[i]);
  }
  // GPipe and its like hold every microbatch at once; of the others the two steps hold the same.
  for (std::vector<double> schedule::PipelineResult::*const held :
       {&schedule::PipelineResult::peak_bytes, &schedule::PipelineResult::peak_inflight,
        &schedule::PipelineResult::peak_live, &schedule::PipelineResult::forward_bytes,
        &schedule::PipelineResult::backward_bytes}) {
    std::vector<double>& values = w.simulated.*held;
    for (std::size_t i = 0; i < values.size(); ++i) extend(values[i], (w.ideal_result.*held)[i]);
  }
}

}  // namespace

double boundary_bytes(const Run& run) noexcept { return boundary_message(NoTrace{}, run); }

void build_pipeline_spec(const Run& run, EstimateWorkspace& w) noexcept {
  const int p = run.parallel.pipeline;
  w.spec.forward = w.forward;
  w.spec.backward = w.backward;
  w.spec.weight = w.weight;
  w.spec.activation_bytes = w.activation;
  w.spec.retain = 1;
  w.spec.alpha = 1;
  w.spec.p2p = 0;
  w.spec.p2p_mode = schedule::P2pMode::overlap;
  if (p > 1) {
    w.spec.p2p = send_time(NoTrace{}, run, w.topology);
    const bool blocks = facts_of(run.training.framework).waits_for_sends(run.parallel.schedule);
    if (blocks || !run.training.overlap.p2p) w.spec.p2p_mode = schedule::P2pMode::exposed;
  }
}

namespace {

/// Runs the step in whatever way suits it; `simulate` where neither a single stage nor an extended step does.
template <class Simulate>
void run_step(const Run& run, EstimateWorkspace& w, Simulate&& simulate) {
  const double microbatches = static_cast<double>(run.microbatches());
  if (run.parallel.pipeline == 1) {
    run_single_stage(w, microbatches, w.simulated);
  } else if (microbatches * w.spec.shape.virtual_stages() > most_simulated) {
    run_extended(w, microbatches);
  } else {
    simulate(w.spec, w.pipeline, w.simulated);
  }
}

}  // namespace

void fold_pipeline_memory(const Run& run, EstimateWorkspace& w) noexcept {
  run_step(run, w, schedule::fold_activations);
}

void simulate_pipeline(const Run& run, EstimateWorkspace& w) noexcept {
  if (run.parallel.pipeline > 1 && schedule::simulate_steady(w.spec, w.pipeline, w.simulated)) return;
  run_step(run, w,
           [](const auto& spec, auto& workspace, auto& result) { schedule::simulate(spec, workspace, result); });
}

void run_pipeline(const Run& run, EstimateWorkspace& w, Estimate& out) noexcept {
  out.pipeline.schedule = run.parallel.schedule;
  out.pipeline.num_microbatches = run.microbatches();
  build_pipeline_spec(run, w);
  simulate_pipeline(run, w);
  out.pipeline.ideal_bubble_fraction =
      run.parallel.pipeline > 1 ? schedule::ideal_bubble_fraction(w.spec.shape, w.ideal, w.ideal_result) : 0.0;
}

}  // namespace shardplan
