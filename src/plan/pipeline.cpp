// The simulated step: who waits for whom, and what is in flight where.
#include <algorithm>
#include <cmath>

#include "shardplan/physics/layer_inputs.hpp"
#include "shardplan/plan/workspace.hpp"
#include "shardplan/schedule/closed_form.hpp"

namespace shardplan {
namespace {

/// Bytes of one microbatch's hidden state as a pipeline rank sends it.
double boundary_bytes(const Run& run) noexcept {
  const Training& training = run.training;
  const double width = bytes_of(activation_dtype(training.precision));
  const double tokens =
      static_cast<double>(training.seq_length) * static_cast<double>(training.micro_batch_size) / run.parallel.context;
  const double cut = run.parallel.sequence_parallel ? run.parallel.tensor : 1.0;
  return width * tokens * static_cast<double>(run.model.hidden_size) / cut;
}

}  // namespace

void run_pipeline(const Run& run, EstimateWorkspace& w, Estimate& out) noexcept {
  const int p = run.parallel.pipeline;
  out.pipeline.schedule = run.parallel.schedule;
  out.pipeline.num_microbatches = run.microbatches();
  w.spec.forward = w.forward;
  w.spec.backward = w.backward;
  w.spec.weight = w.weight;
  w.spec.activation_bytes = w.activation;
  w.spec.retain = 1;
  w.spec.alpha = 1;
  w.spec.p2p = 0;
  w.spec.p2p_mode = schedule::P2pMode::overlap;
  if (p > 1) {
    // Megatron sends 1/t from each tensor rank and gathers inside the node.
    const bool scatter = run.training.framework == Framework::megatron && !run.parallel.sequence_parallel;
    const double bytes = boundary_bytes(run) / (scatter ? run.parallel.tensor : 1.0);
    w.spec.p2p = collective_seconds(run.cluster, Collective::send, w.topology.group(GroupKind::pipeline), bytes);
    // Plain 1F1B blocks on its sends; the schedules with more to run in between hide them.
    const ScheduleKind kind = run.parallel.schedule;
    const bool blocks = kind == ScheduleKind::one_f_one_b || kind == ScheduleKind::naive || kind == ScheduleKind::gpipe;
    if (blocks || !run.training.overlap.p2p) w.spec.p2p_mode = schedule::P2pMode::exposed;
  }
  schedule::simulate(w.spec, w.pipeline, w.simulated);
  out.pipeline.ideal_bubble_fraction =
      p > 1 ? schedule::ideal_bubble_fraction(w.spec.shape, w.ideal, w.ideal_result) : 0.0;
}

}  // namespace shardplan
