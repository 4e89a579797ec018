// Terms of the step's time and of the pipeline's bubble.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "shardplan/schedule/closed_form.hpp"
#include "term_builder.hpp"

namespace shardplan::explain {
namespace {

constexpr std::array<std::string_view, names_of<GroupKind>.size()> group_words = {
    "TP exchange", "PP send",      "DP exchange",  "CP exchange",
    "EP exchange", "EDP exchange", "tied weights", "ETP exchange"};

}  // namespace

/// What each stage does with the time of the pipeline: it computes, waits for communication, and waits for others.
void TermBuilder::add_stage_times() {
  const double through = schedule::microbatches_per_chunk(w.spec.shape);
  const double chunks = schedule::chunks_per_rank(w.spec.shape);
  const double host_s = run.training.stack.timing.host_per_microbatch_s;
  const Sym makespan = of("makespan", "time.makespan");
  for (std::size_t i = 0; i < w.stages.size(); ++i) {
    const int stage = static_cast<int>(i);
    const UnitTime& unit = w.stages[i].total.time;
    StageTerms& out = stages[i];
    Sym forward, backward, recompute, gemm, attention;
    for (const ChunkTerms& chunk : out.chunks) {
      for (const Group& group : chunk.groups) {
        const Sym count(static_cast<double>(group.count));
        forward += count * group.unit->forward;
        backward += count * group.unit->backward;
        recompute += count * group.unit->recompute;
        gemm += count * group.unit->gemm;
        attention += count * group.unit->attention;
      }
    }
    const auto add_time = [&](std::string_view symbol, std::string_view address, std::string_view meaning, Sym formula,
                              double value) {
      if (value == 0 && formula.node() == nullptr) {
        return leaf(symbol, at_stage(address, stage), fmt::format("stage {}: {}", stage, meaning), "s", 0,
                    sources::timing);
      }
      return derived(symbol, at_stage(address, stage), fmt::format("stage {}: {}", stage, meaning), "s", formula, value,
                     sources::timing);
    };
    const Sym f = add_time("F", "time.forward", "forward, one microbatch", forward, unit.forward_s);
    const Sym g = add_time("B", "time.backward", "backward, one microbatch", backward, unit.backward_s);
    const Sym m = microbatches();
    out.compute = add_time("compute", "time.compute", "compute", m * (f + g + Sym(chunks) * host_work()),
                           through * (unit.forward_s + unit.backward_s + chunks * host_s));
    out.recompute =
        add_time("recompute", "time.recompute", "forward passes again", m * recompute, through * unit.recompute_s);
    out.gemm = add_time("gemm", "time.gemm", "matrix products", m * gemm, through * unit.gemm_s);
    out.attention = add_time("attention", "time.attention", "attention", m * attention, through * unit.attention_s);
    const Sym layers = of("in_layers", at_stage("time.communication_exposed.layers", stage));
    const Sym sends = of("sends", at_stage("time.communication_exposed.sends", stage));
    out.exposed =
        add("exposed", at_stage("time.communication_exposed", stage),
            fmt::format("stage {}: communication that its passes wait for", stage), "s", layers + sends, sources::sum);
    // DualPipe's pairs of passes run at once: what a stage is busy follows from the simulation alone.
    const double waits = w.simulated.idle[i] - w.simulated.exposed_p2p[i];
    const Sym parts = out.compute + out.recompute + layers;
    const bool sums = std::fabs(parts.value() - w.simulated.busy[i]) <= 1e-9 * w.simulated.busy[i];
    const Sym busy =
        add("busy", at_stage("time.busy", stage),
            fmt::format("stage {}: its passes, with the communication inside them{}", stage,
                        sums ? "" : ", forward and backward beside each other; simulated"),
            "s", sums ? Sym(w.simulated.busy[i], parts.node()) : Sym(w.simulated.busy[i]), sources::simulated);
    const std::string meaning = fmt::format(
        "stage {}: waits for other stages; simulated, no closed form: the makespan less what it is busy and blocked",
        stage);
    const Sym rest = makespan - busy - sends;
    out.bubble =
        derived("bubble", at_stage("time.bubble", stage), meaning, "s",
                waits > 0 ? Sym(waits, rest.node()) : max(Sym(0.0), rest), std::max(0.0, waits), sources::simulated);
  }
}

Sym TermBuilder::mean_of(std::string_view symbol, std::string_view address, std::string_view meaning,
                         Sym StageTerms::*part, double value, std::string_view source, Sym more) {
  Sym sum;
  for (const StageTerms& stage : stages) sum += stage.*part;
  return derived(symbol, std::string(address), meaning, "s", sum / stage_count() + more, value, source);
}

Sym TermBuilder::stage_count() {
  const double ranks = static_cast<double>(w.stages.size());
  return ranks > 1 ? terms.input("p", "pipeline stages", ranks, sources::run_file) : Sym(1.0);
}

void TermBuilder::add_pipeline_and_time() {
  const TimeEstimate& time = estimate.time;
  const Sym data = of("data", "time.communication_exposed.data");
  const std::string mean = stages.size() > 1 ? ", mean over stages" : "";
  const Sym compute = mean_of("compute", "time.compute", "matrix products, attention and the rest" + mean,
                              &StageTerms::compute, time.compute_s, sources::timing);
  const Sym recompute = mean_of("recompute", "time.recompute", "forward passes again" + mean, &StageTerms::recompute,
                                time.recompute_s, sources::timing);
  const Sym exposed = mean_of("communication", "time.communication_exposed",
                              "communication that nothing hides: inside passes and between stages" + mean +
                                  "; and the data-parallel traffic of the stage that waits longest for it",
                              &StageTerms::exposed, time.communication_exposed_s, sources::timing, data);
  const Sym bubble = mean_of("bubble", "time.bubble", "waiting for other stages" + mean, &StageTerms::bubble,
                             time.bubble_s, sources::simulated);
  const Sym optimizer = of("optimizer", "time.optimizer");
  const Sym offload = of("offload", "time.offload");
  derived("step", "time.step", "one optimizer step", "s", compute + recompute + exposed + bubble + optimizer + offload,
          time.step_s, sources::sum);

  const Sym gemm = mean_of("gemm", "time.gemm", "matrix products, of compute and recompute" + mean, &StageTerms::gemm,
                           time.gemm_s, sources::timing);
  const Sym attention = mean_of("attention", "time.attention", "attention, of compute and recompute" + mean,
                                &StageTerms::attention, time.attention_s, sources::timing);
  const Sym others = compute + recompute - gemm - attention;
  derived("rest", "time.other_compute", "norms, activations and what else moves bytes", "s",
          others.value() < 0 ? max(Sym(0.0), others) : others, time.other_compute_s, sources::timing);
  add_exposed_by_group();
  const double share = time.step_s > 0 ? std::fabs(time.band_high_s / time.step_s - 1) : 0.0;
  const bool measured = time.band_class == BandClass::known || time.band_class == BandClass::mixture_of_experts;
  const Sym spread = terms.input(
      "band", fmt::format("80% band of runs like this one ({})", name(time.band_class)), share,
      measured
          ? "docs/validation.md, verdicts and bands of step time"
          : "errors of sources that the fit had left out (docs/validation.md, fitted constants and sources left out)",
      "fraction");
  const Sym step = of("step", "time.step");
  derived("low", "time.band_low", "four of five steps lie above this", "s", step * (1.0 - spread), time.band_low_s,
          "docs/validation.md, verdicts and bands of step time");
  derived("high", "time.band_high", "four of five steps lie below this", "s", step * (1.0 + spread), time.band_high_s,
          "docs/validation.md, verdicts and bands of step time");
  add_bubble_fractions(bubble, step);
}

/// The rows of the page: who waits for whose communication.
void TermBuilder::add_exposed_by_group() {
  const TimeEstimate& time = estimate.time;
  for (std::size_t g = 0; g < group_words.size(); ++g) {
    const GroupKind kind = static_cast<GroupKind>(g);
    const double value = time.exposed_by_group_s[g];
    const std::string address = fmt::format("time.exposed.{}", name(kind));
    const std::string meaning =
        fmt::format("{}: communication of {} groups that the step waits for", group_words[g], name(kind));
    Sym sum, waits;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      Sym of_stage = stages[i].exposed_by_group[g];
      waits += stages[i].data_exposed;
      if (of_stage.value() == 0) continue;
      sum += derived(name(kind), at_stage(address, static_cast<int>(i)), fmt::format("stage {}: {}", i, meaning), "s",
                     of_stage, of_stage.value(), sources::sum);
    }
    if (value == 0) {
      leaf(name(kind), address, meaning, "s", 0, sources::timing);
      continue;
    }
    Sym formula = sum / stage_count();
    if (kind == GroupKind::data && stages.size() > 1) {
      // The wait for the slowest stage's traffic counts as that traffic.
      formula += of("data", "time.communication_exposed.data") - waits / stage_count();
    }
    derived(name(kind), address, meaning, "s", formula, value, sources::timing);
  }
}

void TermBuilder::add_bubble_fractions(Sym bubble, Sym step) {
  const double ranks = static_cast<double>(w.stages.size());
  const Sym makespan = of("makespan", "time.makespan");
  const Sym fraction = makespan.value() > 0 ? bubble / makespan : Sym(0.0);
  derived("bubble_fraction", "pipeline.bubble_fraction",
          "waiting for other stages, as a share of the pipeline's makespan", "fraction", fraction,
          estimate.pipeline.bubble_fraction, "arXiv:2104.04473 section 2.2; simulated with this run's times");
  if (step.value() > 0) {
    add("bubble_of_step", "time.bubble_share", "waiting for other stages, as a share of the step", "fraction",
        bubble / step, "the same waiting over the step, which has the optimizer and what follows the pipeline too");
  }
  const double count = static_cast<double>(run.microbatches());
  const Sym all = terms.input("m", "microbatches of a step", count, sources::run_file);
  const Sym ranks_in_line = terms.input("p", "pipeline stages", ranks, sources::run_file);
  const double v = run.parallel.virtual_pipeline;
  const Sym chunks = v > 1 ? terms.input("v", "model chunks of a rank", v, sources::run_file) : Sym(1.0);
  Sym ideal(estimate.pipeline.ideal_bubble_fraction);
  const Sym closed = run.parallel.schedule == ScheduleKind::naive
                         ? (ranks_in_line - 1.0) / ranks_in_line
                         : (ranks_in_line - 1.0) / (chunks * all + ranks_in_line - 1.0);
  if (std::fabs(closed.value() - ideal.value()) <= 1e-12) ideal = Sym(ideal.value(), closed.node());
  add("ideal", "pipeline.ideal_bubble_fraction",
      "of the makespan, with equal stages, F:B:W = 1:1:1 and no communication", "fraction", ideal,
      "arXiv:2104.04473 section 2.2; arXiv:1811.06965 section 2.3");
  const Sym gbs = terms.input("gbs", "sequences of a step (training.global_batch_size)",
                              static_cast<double>(run.training.global_batch_size), sources::run_file);
  const Sym mbs = terms.input("b", "sequences of a microbatch (training.micro_batch_size)",
                              static_cast<double>(run.training.micro_batch_size), sources::run_file);
  add_checked("m", "pipeline.num_microbatches", "microbatches of a step: gbs/(b x data)", "",
              gbs / (mbs * data_degree()), count, sources::run_file);
}

}  // namespace shardplan::explain
