// Terms of communication, of the step's time and of the pipeline: the estimate's own functions run with symbols, and
// the other addresses of what they name.
#include <fmt/format.h>

#include <cmath>

#include "recorder.hpp"
#include "shardplan/plan/communication_formulas.hpp"
#include "shardplan/plan/step_time_formulas.hpp"
#include "shardplan/schedule/closed_form.hpp"
#include "term_builder.hpp"

namespace shardplan::explain {
namespace {

constexpr InputName all_stages = {"p", "pipeline stages"};
constexpr InputName step_sequences = {"gbs", "sequences of a step (training.global_batch_size)"};
constexpr InputName micro_sequences = {"b", "sequences of a microbatch (training.micro_batch_size)"};

constexpr StepName ideal_bubble = {"ideal", "pipeline.ideal_bubble_fraction",
                                   "of the makespan, with equal stages, F:B:W = 1:1:1 and no communication", "fraction",
                                   "arXiv:2104.04473 section 2.2; arXiv:1811.06965 section 2.3"};
constexpr StepName microbatch_count = {"m", "pipeline.num_microbatches", "microbatches of a step: gbs/(b x data)", "",
                                       sources::run_file};

/// Addresses of a row of communication without a stage are those of the stage whose rows are printed; what each unit
/// sends is beside it.
void alias_rows(Terms& terms, const Estimate& estimate) {
  for (const CommunicationCall& row : estimate.communication) {
    const std::string path = fmt::format("communication.{}", row.name);
    terms.alias(path, path + ".sent_bytes_per_step");
    for (const std::string_view what : {".time", ".exposed", ".hidden", ".call", ".call_bytes", ".calls", ".bytes"}) {
      const std::string address = path + std::string(what);
      terms.alias(address, at_stage(address, estimate.communication_stage));
    }
    for (const std::string_view unit : {"layers.dense", "layers.moe", "embedding", "head", "mtp"}) {
      terms.alias(fmt::format("{}.{}", path, unit), fmt::format("{}.{}.sent_with_recomputation", unit, row.name));
    }
  }
  for (const std::string_view word : {"tensor", "pipeline", "data", "context", "expert", "total"}) {
    terms.alias(fmt::format("communication.{}", word), fmt::format("communication.sent_bytes_per_step.{}", word));
  }
}

}  // namespace

void TermBuilder::add_time() {
  const Recorder trace(terms, run);
  Estimate numbers = estimate;
  fold_communication(trace, run, text, numbers);
  alias_rows(terms, numbers);
  fold_time(trace, run, text, numbers);
  add_pipeline();
}

void TermBuilder::add_pipeline() {
  const Recorder trace(terms, run);
  const double count = static_cast<double>(run.microbatches());
  const Sym m = trace.run(step_names::microbatches, count);
  const Sym p = trace.run(all_stages, static_cast<double>(w.stages.size()));
  const Sym v = trace.degree(step_names::chunks, run.parallel.virtual_pipeline);
  // A closed form where the schedule has one; else it is simulated.
  const double ideal = estimate.pipeline.ideal_bubble_fraction;
  const Sym closed = run.parallel.schedule == ScheduleKind::naive ? (p - 1.0) / p : (p - 1.0) / (v * m + p - 1.0);
  const bool given = std::fabs(closed.value() - ideal) <= 1e-12;
  if (given || ideal == 0) {
    trace.figure(ideal_bubble, given ? Sym(ideal, closed.node()) : Sym(0.0));
  } else {
    trace.simulated(ideal_bubble, ideal);
  }
  const Sym gbs = trace.run(step_sequences, static_cast<double>(run.training.global_batch_size));
  const Sym mbs = trace.run(micro_sequences, static_cast<double>(run.training.micro_batch_size));
  trace.step(microbatch_count, gbs / (mbs * data_degree()));
}

}  // namespace shardplan::explain
