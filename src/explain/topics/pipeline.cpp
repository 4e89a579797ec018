// Cards of pipeline parallelism: its schedules and their bubbles.
#include <algorithm>

#include "shardplan/schedule/closed_form.hpp"
#include "topics.hpp"

namespace shardplan::explain {
namespace {

Sym stages(Card& c) {
  example_where(c, c.run().parallel.pipeline == 1, "has one stage, so no bubble; the numbers are an example's");
  return c.count("p", "stages", c.run().parallel.pipeline > 1 ? c.run().parallel.pipeline : 4);
}

Sym microbatches(Card& c) {
  return c.count("m", "microbatches, gbs/(mbs D)",
                 c.run().parallel.pipeline > 1 ? static_cast<double>(c.run().microbatches()) : 8);
}

/// The ideal bubble; sizes that would have to be simulated at length are left out.
std::string ideal(ScheduleKind kind, double p, double m, double v) {
  if (p * m * v > 2e5) return "-";
  return percent(schedule::ideal_bubble_fraction(kind, static_cast<int>(p), static_cast<int>(m), static_cast<int>(v)));
}

/// Of the form (p - 1)/(work m + p - 1) the work; 0: the bubble has another form.
double work_of(ScheduleKind kind, Sym v) {
  const schedule::ScheduleFacts& facts = schedule::facts_of(kind);
  if (facts.one_at_a_time || facts.bubble.less != 1) return 0;
  return facts.bubble.passes > 0 ? facts.bubble.passes : v.value();
}

/// The run's chunks a rank; of one that has none, a number that its layers divide into.
int chunks_of(const Run& run) {
  if (run.parallel.virtual_pipeline > 1) return run.parallel.virtual_pipeline;
  for (const int v : {5, 4, 2, 3}) {
    if (run.model.layers() % (run.parallel.pipeline * v) == 0) return v;
  }
  return 2;
}

}  // namespace

void pipeline(Card& c) {
  const Sym p = stages(c), m = microbatches(c);
  const Sym naive = (p - 1.0) / p;
  c.title("naive: one stage works at a time");
  c.result(naive, "fraction", percent(naive.value()) + " idle", "(p-1)/p");
  const auto row = [&](ScheduleKind kind, double v) { return ideal(kind, p.value(), m.value(), v); };
  c.remark("GPipe", fmt::format("{}, all {} microbatches in flight", row(ScheduleKind::gpipe, 1), number(m.value())));
  c.remark("1F1B", fmt::format("{}, p - stage in flight: {} on stage 0", row(ScheduleKind::one_f_one_b, 1),
                               number(std::min(p.value(), m.value()))));
  if (std::fmod(m.value(), p.value()) == 0) {
    c.remark("interleaved", fmt::format("v = 2: {}, twice the sends", row(ScheduleKind::interleaved, 2)));
  }
  c.remark("zb-h1", fmt::format("{}, weight gradients fill the drain", row(ScheduleKind::zb_h1, 1)));
  const double message = boundary_bytes(c.run());
  c.remark("send",
           fmt::format("{} a microbatch, far less than tensor parallelism: stages may lie nodes apart", mib(message)));
  c.beware(
      "\"1F1B (interleaved)\" names plain 1F1B: interleaving is another schedule. Stages are rarely equal: everybody "
      "waits for the one with the head");
  c.source("Huang et al. 2018 (1811.06965); Narayanan et al. 2021 (2104.04473)");
  c.next("shardplan schedule --compare --pp 4 --microbatches 8");
}

void bubble(Card& c) {
  const Sym p = stages(c), m = microbatches(c);
  const Run& run = c.run();
  const bool piped = run.parallel.pipeline > 1;
  const Sym v = c.count("v", "chunks a rank", run.parallel.virtual_pipeline);
  const ScheduleKind kind = piped ? run.parallel.schedule : ScheduleKind::one_f_one_b;
  const bool plain_kind = kind == ScheduleKind::one_f_one_b || kind == ScheduleKind::gpipe;
  if (kind == ScheduleKind::dualpipe) {
    c.expect(std::fmod(p.value(), 2) == 0, "p", "DualPipe has an even number of stages", "2, 4, 8");
  }
  const Sym share = schedule::ideal_bubble(kind, p, m, v);
  const double work = work_of(kind, v);
  c.title("idle share of the step with equal stages");
  c.result(share, "fraction", percent(share.value(), 2), schedule::bubble_text(kind, true));
  c.note(plain_kind && v.value() == 1 ? "1f1b, gpipe; interleaved: vm for m"
         : plain_kind                 ? "interleaved"
                                      : std::string(name(kind)));
  const double pp = p.value();
  if (piped) {
    const Estimate& e = c.estimate();
    double most = 0;
    for (const StageEstimate& s : e.stages) most = std::max(most, s.forward_s + s.backward_s);
    c.remark("simulated",
             fmt::format("{} of the pipeline's time with this run's stages ({:.1f} ms a microbatch at most, stage 0 "
                         "{:.1f}); estimate says {} of the step, schedule counts sends as idle too",
                         percent(e.pipeline.bubble_fraction, 2), most * 1e3,
                         (e.stages.front().forward_s + e.stages.front().backward_s) * 1e3,
                         percent(e.time.bubble_s / e.time.step_s)));
  }
  if (work > 0) {
    const auto at = [&](double mm) { return percent((pp - 1) / (work * mm + pp - 1)); };
    const double least = 19 * (pp - 1) / work;
    c.remark("m for 5%", fmt::format("m >= 19 (p-1){} = {}; m = 4p = {:.0f} gives {}, m = 20p = {:.0f} gives {}",
                                     work == 1 ? "" : fmt::format("/{}", number(work)),
                                     work == 1 ? fmt::format("{} exactly", number(least))
                                               : fmt::format("{:.1f}, so {}", least, number(std::ceil(least))),
                                     4 * pp, at(4 * pp), 20 * pp, at(20 * pp)));
  }
  const auto plain = [&](double mm) { return percent((pp - 1) / (mm + pp - 1)); };
  const double half = std::max(1.0, std::floor(m.value() / 2));
  c.remark("more D",
           fmt::format("at one global batch leaves fewer microbatches: twice D is m = {}{} {}", number(half),
                       work > 0 ? "," : ", under 1F1B", percent((pp - 1) / (std::max(1.0, work) * half + pp - 1))));
  c.beware(fmt::format(
      "some divide by ideal time, (p-1)/m: at m = 4 {} becomes {}. 1F1B has GPipe's bubble, not less: it saves "
      "memory (in flight min(m, p-i), not m)",
      plain(4), percent((pp - 1) / 4, 0)));
  c.source("Narayanan et al. 2021 (2104.04473) section 2.2; Huang et al. 2018 (1811.06965)");
  if (schedule::facts_of(kind).bubble.passes > 0) c.source(std::string(schedule::facts_of(kind).source));
  c.next(piped && c.stated() ? "shardplan schedule RUN.json"
                             : "shardplan schedule --schedule 1f1b --pp 4 --microbatches 8");
}

void one_f_one_b(Card& c) {
  const Sym p = stages(c), m = microbatches(c), i = c.index("i", "stage", 0, p.value());
  const Sym live = min(m, p - i);
  c.title("1F1B: microbatches whose activations a stage holds");
  c.result(live, "", number(live.value()) + " in flight", "min(m, p - i)");
  c.remark("GPipe", fmt::format("holds all m = {}; both have the same bubble", number(m.value())));
  if (c.stated() && c.run().parallel.pipeline > 1 && c.run().parallel.schedule != ScheduleKind::one_f_one_b) {
    c.remark("this run", fmt::format("has {}: stage 0 holds {} microbatches", name(c.run().parallel.schedule),
                                     c.estimate().stages.front().in_flight_microbatches));
  }
  c.remark("order", "warm-up p - i - 1 forwards, then one forward, one backward in turn, then the drain");
  c.beware(
      "the saving is memory, not time; the first stage holds most, so it is the one to recompute or to give fewer "
      "layers");
  c.source("Narayanan et al. 2019 (PipeDream), 2021 (2104.04473) section 2.2");
  c.next("shardplan schedule --schedule 1f1b --pp 4 --microbatches 8");
}

void interleaved(Card& c) {
  const Sym p = stages(c), m = microbatches(c), v = c.count("v", "chunks a rank", chunks_of(c.run()));
  example_where(c, c.run().parallel.pipeline > 1 && c.run().parallel.virtual_pipeline == 1,
                fmt::format("has one chunk a rank; v = {} is an example", number(v.value())));
  const Sym share = (p - 1.0) / (v * m + p - 1.0);
  c.title("each rank holds v chunks of layers: warm-up and drain take 1/v as long");
  c.result(share, "fraction", percent(share.value(), 2), "(p-1)/(vm+p-1)");
  c.remark("v = 1", percent((p.value() - 1) / (m.value() + p.value() - 1), 2));
  c.remark("memory",
           fmt::format("stage i holds p (v + 1) - 1 - 2i chunks' worth; stage 0 1 + (p-1)/(pv) = {:.3g} of 1F1B's",
                       1 + (p.value() - 1) / (p.value() * v.value())));
  c.beware(
      "v times the sends, m a multiple of p (Megatron-LM), layers a multiple of p v. The bubble is 1/v of (p-1)/m, not "
      "of "
      "(p-1)/(m+p-1)");
  c.source("Narayanan et al. 2021 (2104.04473) section 2.2.2");
  const Run& run = c.run();
  const bool runs = run.parallel.pipeline > 1 && run.microbatches() % run.parallel.pipeline == 0 &&
                    run.model.layers() % (run.parallel.pipeline * static_cast<std::int64_t>(v.value())) == 0;
  c.next(runs ? fmt::format("shardplan estimate RUN.json --schedule interleaved --vpp {}", number(v.value()))
              : "shardplan schedule --schedule interleaved --vpp 2 --pp 4 --microbatches 8");
}

void zero_bubble(Card& c) {
  const bool own = c.stated() && c.run().parallel.pipeline > 1;
  if (!own) c.numbers("an example");
  example_where(c, !own, "has one stage, so no bubble; the numbers are an example's");
  const Sym p = own ? stages(c) : c.count("p", "stages", 4);
  const Sym m = own ? microbatches(c) : c.count("m", "microbatches", 8);
  const Sym share = (p - 1.0) / (3.0 * m + p - 1.0);
  c.title("zb-h1: backward is cut into B (input gradient) and W (weight gradient); W fills the drain");
  c.result(share, "fraction", percent(share.value()), "(p-1)/(3m+p-1)");
  c.note("F = B = W");
  c.remark("1f1b", fmt::format("{}: a third of its idle time is left",
                               ideal(ScheduleKind::one_f_one_b, p.value(), m.value(), 1)));
  c.remark("others",
           fmt::format("a step that stands alone keeps its ramp: zb-h2 {}, with nearly twice the activations; "
                       "zb-v {}, with 1F1B's; with steps back to back both reach 0",
                       ideal(ScheduleKind::zb_h2, p.value(), m.value(), 1),
                       ideal(ScheduleKind::zb_v, p.value(), m.value(), 2)));
  c.beware(
      "zero at F = B = W only: with attention heavy B, or a heavy last stage, bubbles come back. W must keep inputs "
      "and "
      "output gradients until it runs");
  c.source("Qi et al. 2023 (2401.10241); Qi et al. 2024 (2405.15362)");
  c.next("shardplan schedule --schedule zb-h1 --pp 4 --microbatches 8");
}

void dualpipe(Card& c) {
  const bool own = c.stated() && c.run().parallel.pipeline % 2 == 0;
  if (!own) c.numbers("an example");
  example_where(c, !own, "has no even number of stages, which DualPipe needs; p = 8 is an example");
  const Sym p = c.count("p", "stages", own ? c.run().parallel.pipeline : 8);
  c.expect(std::fmod(p.value(), 2) == 0, "p", "DualPipe has an even number of stages", "2, 4, 8");
  const Sym FB = c.symbol("FB", "a forward and a backward side by side", 3);
  const Sym B = c.symbol("B", "a whole backward", 2), W = c.symbol("W", "weight gradient", 1);
  const Sym time = (p / 2.0 - 1.0) * (FB + B - 3.0 * W);
  c.title("DualPipe: microbatches enter at both ends; idle time of a rank, in units of one forward");
  c.result(time, "", number(time.value()) + " forwards' time", "(p/2-1)(F&B + B - 3W)");
  c.remark("1f1b", fmt::format("(p-1)(F + B) = {} forwards' time", number((p.value() - 1) * (1 + B.value()))));
  c.remark("memory", "each rank holds two stages: parameters twice, activations p + 1; dualpipe-v keeps one copy");
  c.beware(
      "twice the parameters is small only where experts are spread over many ranks; without expert exchange to hide it "
      "gains little");
  c.source("DeepSeek-V3 2024 (2412.19437) table 2");
  c.next("shardplan schedule --schedule dualpipe --pp 8 --microbatches 20");
}

}  // namespace shardplan::explain
