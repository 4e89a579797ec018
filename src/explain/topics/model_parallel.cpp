// Cards of tensor, sequence, context, expert and pipeline parallelism and of whole layouts.
#include <algorithm>

#include "shardplan/physics/layer.hpp"
#include "shardplan/physics/layer_inputs.hpp"
#include "shardplan/physics/states.hpp"
#include "shardplan/schedule/closed_form.hpp"
#include "topics.hpp"

namespace shardplan::explain {
namespace {

/// The run's layer kind that most of its layers are like.
const LayerKind& usual_layer(const Run& run) { return run.model.layer(run.model.layers() - 1); }

/// Symbols of the run's usual layer with a tensor group, all cut by it.
Symbols<double> cut_by_tensor(const Run& run) {
  Symbols<double> v = symbols_for(run, usual_layer(run));
  v.t = std::max(2, run.parallel.tensor);
  return v;
}

/// Bytes that one rank sends for these collectives, forward and backward.
Sym sent_by(const OperatorList<Sym>& list, GroupKind group) {
  Sym sum;
  for (const LayerCollective<Sym>& call : list.collectives) {
    if (call.group == group) sum += Sym(static_cast<double>(call.forward_calls + call.backward_calls)) * call.sent;
  }
  return sum;
}

std::string mib(double bytes) { return fmt::format("{:.4g} MiB", bytes / 1048576); }

/// Says where a card's numbers are not the run's.
void example_where(Card& c, bool missing, std::string text) {
  if (c.stated() && missing) c.remark("this run", std::move(text));
}

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

/// Idle share of a schedule with equal stages and F = B = W, where m is large enough for a closed form
/// (schedule::uniform_makespan).
struct IdealBubble {
  Sym share;
  std::string_view formula;
  double work = 0;  ///< the share is (p - 1)/(work m + p - 1); 0: it has another form
};

IdealBubble ideal_bubble(ScheduleKind kind, Sym p, Sym m, Sym v) {
  switch (kind) {
    case ScheduleKind::naive: return {(p - 1.0) / p, "(p-1)/p"};
    case ScheduleKind::interleaved:
    case ScheduleKind::bfs: return {(p - 1.0) / (v * m + p - 1.0), "(p-1)/(vm+p-1)", v.value()};
    case ScheduleKind::zb_h1:
    case ScheduleKind::zb_h2: return {(p - 1.0) / (3.0 * m + p - 1.0), "(p-1)/(3m+p-1)", 3};
    case ScheduleKind::zb_v: return {(p - 1.0) / (6.0 * m + p - 1.0), "(p-1)/(6m+p-1)", 6};
    case ScheduleKind::dualpipe:  // 1.5p + (p + 1) + 3 + 3 (m - p/2 - 2) against 3m
      return {(p - 2.0) / (3.0 * m + p - 2.0), "(p-2)/(3m+p-2)"};
    case ScheduleKind::dualpipe_v:  // 3p + (2p + 1) + 3 + 3 (2m - p - 2) against 6m
      return {(p - 1.0) / (3.0 * m + p - 1.0), "(p-1)/(3m+p-1)", 3};
    default: return {(p - 1.0) / (v * m + p - 1.0), "(p-1)/(vm+p-1)", v.value()};
  }
}

}  // namespace

void tensor_parallel(Card& c) {
  example_where(c, c.run().parallel.tensor == 1, "has no tensor parallelism; t = 2 is an example");
  LayerOptions o;
  o.tensor = true;
  OperatorList<Sym> list;
  const Symbols<Sym> v = c.layer(cut_by_tensor(c.run()));
  for (const Covered block : {Covered::none, Covered::mlp}) tensor_collectives(v, o, block, list);
  const Sym bytes = sent_by(list, GroupKind::tensor);
  c.title("bytes that one rank sends for one layer and microbatch");
  c.collected(bytes, "B", mib(bytes.value()) + " a layer and microbatch", "4 all-reduces x 2 (t-1)/t x 2sbh");
  c.remark("blocks", "one behind attention, one behind the MLP, twice that backward: 2 a block, 4 a layer");
  const Run& run = c.run();
  if (run.parallel.sequence_parallel && run.training.kernels.sp_input == SequenceParallelInput::regather) {
    c.remark("with SP", fmt::format("the same {} split in two, and two inputs gathered again backward: {}",
                                    mib(bytes.value()), mib(bytes.value() * 1.25)));
  }
  c.remark("heads", "q, k, v by heads, gate and up by columns, o and down by rows; t > k copies KV heads");
  c.remark("weights", "matrices and inner activations fall by t; norms and their inputs do not");
  c.beware(
      "\"2 all-reduces a layer\" counts one block, or one pass: 2 + 2 a layer. Each waits for its product, so it is "
      "exposed unless overlapped; t stays inside NVLink");
  c.source("Shoeybi et al. 2019 (1909.08053) section 3");
  c.next("shardplan estimate RUN.json --explain communication");
}

void column_parallel(Card& c) {
  const Sym x = c.symbol("x", "input", 2, {}, Domain::any), a1 = c.symbol("a1", "column 1 of A", 1, {}, Domain::any),
            a2 = c.symbol("a2", "column 2 of A", -3, {}, Domain::any);
  const Sym b1 = c.symbol("b1", "row 1 of B", 5, {}, Domain::any),
            b2 = c.symbol("b2", "row 2 of B", 7, {}, Domain::any);
  const Sym y = max(Sym(0.0), x * a1) * b1 + max(Sym(0.0), x * a2) * b2;
  c.title("Y = f(XA)B with A cut by columns and B by rows: each rank computes one addend, one all-reduce sums them");
  c.result(y, "");
  c.remark("rank 1", fmt::format("f({} x {}) x {} = {}", number(x.value()), number(a1.value()), number(b1.value()),
                                 number(std::max(0.0, x.value() * a1.value()) * b1.value())));
  c.remark("rank 2", fmt::format("f({} x {}) x {} = {}", number(x.value()), number(a2.value()), number(b2.value()),
                                 number(std::max(0.0, x.value() * a2.value()) * b2.value())));
  const double wrong = std::max(0.0, x.value() * a1.value() + x.value() * a2.value());
  c.beware(fmt::format(
      "A cut by rows would need its all-reduce before f: f is not additive, f(x a1 + x a2) = {} is not "
      "f(x a1) + f(x a2) = {}. f is relu here; GeLU and SwiGLU behave alike",
      number(wrong), number(std::max(0.0, x.value() * a1.value()) + std::max(0.0, x.value() * a2.value()))));
  c.source("Shoeybi et al. 2019 (1909.08053) section 3, equations 1 to 3");
  c.next("shardplan explain tensor-parallel");
}

void sequence_parallel(Card& c) {
  example_where(c, c.run().parallel.tensor == 1, "has no tensor parallelism; t = 2 is an example");
  // The layer's own list without and with: what it no longer keeps.
  const Run& run = c.run();
  const LayerKind& kind = usual_layer(run);
  Symbols<double> numbers = cut_by_tensor(run);
  numbers.t_kv = std::min(numbers.t, std::max(1.0, numbers.k));
  const auto saved = [&](bool sequence) {
    Run variant = run;
    variant.parallel.tensor = static_cast<int>(numbers.t);
    variant.parallel.sequence_parallel = sequence;
    Symbols<double> of = numbers;
    of.t_sp = sequence ? of.t : 1.0;
    of.t_in = sequence && run.training.kernels.sp_input == SequenceParallelInput::regather ? of.t : 1.0;
    const LayerOptions o = options_for(variant, kind, false);
    OperatorList<Sym> list;
    layer_operators(c.layer(of), o, kind, run.parallel.context, run.parallel.expert_tensor, list);
    Sym sum;
    for (const Operator<Sym>& op : list.operators) sum += op.saved;
    return sum;
  };
  const Sym less = saved(false) - saved(true);
  c.title("norms, dropout and residuals are cut along the sequence: what a layer no longer keeps");
  c.collected(less, "B", mib(less.value()) + " a layer less");
  c.remark("parts", "two norm inputs and two inputs of column-cut products, 2sbh each, and the norms' statistics");
  c.remark("traffic",
           "an all-reduce becomes a reduce-scatter and an all-gather of the same volume; backward gathers the input "
           "again: one more all-gather a block, beside a product");
  c.beware("\"no extra communication\" leaves out that all-gather in backward; it usually hides");
  c.source("Korthikanti et al. 2022 (2205.05198) 4.2.2; Megatron-Core tensor_parallel/layers.py");
  c.next(run.parallel.tensor > 1 ? "shardplan estimate RUN.json --no-sp"
                                 : "shardplan estimate configs/runs/llama-3.1-70b-128xh100.json --no-sp");
}

void context_parallel(Card& c) {
  Symbols<Sym> v;
  v.w = 2.0;
  const Run& run = c.run();
  const bool own = c.stated();
  const AttentionShape& attention = usual_layer(run).attention;
  const double heads = static_cast<double>(std::max<std::int64_t>(1, attention.kv_heads));
  const double here = std::max(1.0, heads / run.parallel.tensor) * static_cast<double>(attention.head_dim);
  example_where(c, run.parallel.context == 1, "has no context parallelism; c = 8 is an example");
  if (!own) c.numbers("Llama-3.1-8B at 131,072 tokens");
  v.s = c.count("s", "sequence", own ? static_cast<double>(run.training.seq_length) : 131072);
  v.b = c.count("b", "microbatch", own ? static_cast<double>(run.training.micro_batch_size) : 1);
  v.c = c.count("c", "context parallel", own && run.parallel.context > 1 ? run.parallel.context : 8);
  const Sym K = c.count("K", "elements of a token's keys on a rank, k d/t", own ? here : 1024);
  const double queries = own ? std::max(1.0, static_cast<double>(attention.heads) / heads) : 4;
  const auto sent = [&](ContextComm way, double query_heads) {
    LayerOptions o;
    o.context = true;
    o.context_comm = way;
    OperatorList<Sym> list;
    context_collectives(v, o, query_heads * K, K, K, query_heads * K, static_cast<int>(v.c.value()), list);
    return sent_by(list, GroupKind::context);
  };
  const Sym ring = sent(ContextComm::ring, queries), exchange = sent(ContextComm::a2a, queries);
  c.title("ring attention: bytes one rank sends for one layer and microbatch, 16-bit keys and values");
  c.collected(ring, "B", gb(ring.value()) + " a layer and microbatch", "12 (c-1) T K");
  c.remark("passes", "forward 4 (c-1) T K: keys and values go round, T = s b/c; backward twice that");
  c.remark("a2a", fmt::format("heads exchanged instead (Ulysses), 8 (c-1)/c T (Q + K), Q = {}: {}",
                              count(queries * K.value()), gb(exchange.value())));
  c.remark("divides", "activations by c; not weights, which context ranks share: they join the shard group");
  c.beware("the sequence must divide by 2c: under a causal mask a rank takes a first and a last chunk");
  c.source("Liu et al. 2023 (2310.01889); Jacobs et al. 2023 (2309.14509)");
  c.next("shardplan estimate --model llama-3.2-1b --cluster dgx-h100 --gpus 8 --cp 8 --seq 32768");
}

void expert_parallel(Card& c) {
  Symbols<Sym> v;
  v.w = 2.0;
  v.b = v.c = v.t = v.t_sp = v.t_in = v.x = v.capacity = v.u = 1.0;
  const Run& run = c.run();
  const MlpShape& mlp = usual_layer(run).mlp;
  const bool own = c.stated() && mlp.kind == MlpKind::moe;
  const int shared = run.parallel.context * (run.parallel.sequence_parallel ? run.parallel.tensor : 1);
  const double tokens = static_cast<double>(run.training.seq_length * run.training.micro_batch_size) / shared;
  if (!own) c.numbers("a layer of Mixtral-8x7B");
  example_where(c, !own, "has no experts: the numbers are those of a layer of Mixtral-8x7B");
  example_where(c, own && run.parallel.expert == 1, "has no expert parallelism; e = 8 is an example");
  v.s = c.count("T", "tokens that this rank routes", own ? tokens : 4096);
  v.k_top = c.count("k", "experts a token goes to", own ? static_cast<double>(mlp.top_k) : 2);
  v.h = c.count("h", "hidden size", own ? static_cast<double>(run.model.hidden_size) : 4096);
  v.e = c.count("e", "expert parallel", own && run.parallel.expert > 1 ? run.parallel.expert : 8);
  v.E = v.e;
  v.f_e = v.h;
  LayerOptions o;
  o.expert = true;
  OperatorList<Sym> list;
  expert_mlp(v, o, MlpShape{}, false, 1, list);
  const Sym bytes = sent_by(list, GroupKind::expert);
  c.title("all-to-alls of one layer and microbatch: dispatch and combine, forward and backward, 16 bit");
  c.collected(bytes, "B", mib(bytes.value()) + " a layer and microbatch", "4 (e-1)/e T k h x 2 B");
  c.remark(
      "weights",
      "routed experts are divided by e (and expert_tensor), everything else by t: two shard groups, two gradients' "
      "reductions");
  c.remark("memory", "activations follow T k rows: capacity and imbalance scale them, the busiest rank decides");
  c.beware(
      "all experts are held, gradients and states included, though a token visits k of them: memory follows total, "
      "FLOP "
      "active parameters");
  c.source("Lepikhin et al. 2020 (2006.16668); Fedus et al. 2021 (2101.03961); Megatron-Core MoE");
  c.next("shardplan estimate configs/runs/mixtral-8x7b-64xh100.json");
}

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
  const IdealBubble its = ideal_bubble(kind, p, m, v);
  c.title("idle share of the step with equal stages");
  c.result(its.share, "fraction", percent(its.share.value(), 2), std::string(its.formula));
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
  if (its.work > 0) {
    const auto at = [&](double mm) { return percent((pp - 1) / (its.work * mm + pp - 1)); };
    const double least = 19 * (pp - 1) / its.work;
    c.remark("m for 5%", fmt::format("m >= 19 (p-1){} = {}; m = 4p = {:.0f} gives {}, m = 20p = {:.0f} gives {}",
                                     its.work == 1 ? "" : fmt::format("/{}", number(its.work)),
                                     its.work == 1 ? fmt::format("{} exactly", number(least))
                                                   : fmt::format("{:.1f}, so {}", least, number(std::ceil(least))),
                                     4 * pp, at(4 * pp), 20 * pp, at(20 * pp)));
  }
  const auto plain = [&](double mm) { return percent((pp - 1) / (mm + pp - 1)); };
  const double half = std::max(1.0, std::floor(m.value() / 2));
  c.remark("more D", fmt::format("at one global batch leaves fewer microbatches: twice D is m = {}{} {}", number(half),
                                 its.work > 0 ? "," : ", under 1F1B",
                                 percent((pp - 1) / (std::max(1.0, its.work) * half + pp - 1))));
  c.beware(fmt::format(
      "some divide by ideal time, (p-1)/m: at m = 4 {} becomes {}. 1F1B has GPipe's bubble, not less: it saves "
      "memory (in flight min(m, p-i), not m)",
      plain(4), percent((pp - 1) / 4, 0)));
  c.source("Narayanan et al. 2021 (2104.04473) section 2.2; Huang et al. 2018 (1811.06965)");
  if (kind == ScheduleKind::zb_h1 || kind == ScheduleKind::zb_h2) c.source("Qi et al. 2023 (2401.10241)");
  if (kind == ScheduleKind::zb_v) c.source("Qi et al. 2024 (2405.15362)");
  if (kind == ScheduleKind::dualpipe || kind == ScheduleKind::dualpipe_v) c.source("DeepSeek-V3 2024 (2412.19437)");
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

namespace {

/// The run's chunks a rank; of one that has none, a number that its layers divide into.
int chunks_of(const Run& run) {
  if (run.parallel.virtual_pipeline > 1) return run.parallel.virtual_pipeline;
  for (const int v : {5, 4, 2, 3}) {
    if (run.model.layers() % (run.parallel.pipeline * v) == 0) return v;
  }
  return 2;
}

}  // namespace

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

namespace {

/// States of the uncut model, bytes.
double model_states_bytes(Card& c) {
  StateRule whole = c.workspace().rule;
  for (double* const shards :
       {&whole.parameter_shards, &whole.gradient_shards, &whole.optimizer_shards, &whole.expert_parameter_shards,
        &whole.expert_gradient_shards, &whole.expert_optimizer_shards}) {
    *shards = 1;
  }
  const Parallel& parallel = c.run().parallel;
  UnitWeights all;
  for (const Stage& stage : c.workspace().stages) {
    all.dense += stage.weights.dense.times(parallel.tensor);
    all.expert += stage.weights.expert.times(parallel.expert * parallel.expert_tensor);
  }
  const StateBytes bytes = state_bytes(whole, all, *c.workspace().optimizer);
  return (bytes.parameters + bytes.gradients + bytes.optimizer) / copies_of_stages(c.run());
}

/// "every 32nd rank".
std::string every(double distance) {
  const auto n = static_cast<long long>(distance);
  const bool teens = n % 100 >= 11 && n % 100 <= 13;
  const char* const tail = teens ? "th" : n % 10 == 1 ? "st" : n % 10 == 2 ? "nd" : n % 10 == 3 ? "rd" : "th";
  return fmt::format("every {}{} rank", n, tail);
}

}  // namespace

void three_d(Card& c) {
  const Parallel& parallel = c.run().parallel;
  const Sym D = c.count("D", "data parallel", parallel.data), t = c.count("t", "tensor parallel", parallel.tensor);
  const Sym p = c.count("p", "pipeline stages", parallel.pipeline),
            n = c.count("c", "context parallel", parallel.context);
  const Sym gpus = D * t * p * n;
  const Estimate& e = c.estimate();
  c.title("3D parallelism: every GPU is one (data, tensor, pipeline) rank");
  c.result(gpus, "", number(gpus.value()) + " GPUs", "D x t x p x c");
  const MemoryParts& held = e.stages[0].peak();
  const double cut = parallel.expert * parallel.expert_tensor;
  c.remark("states",
           fmt::format("{} of the model; weights over t p = {}{}; {} on a rank of stage 0, {}",
                       gib(model_states_bytes(c)), number(t.value() * p.value()),
                       cut > 1 ? fmt::format(", experts over p e x = {}", number(p.value() * cut)) : "",
                       gib(static_cast<double>(held.parameters + held.gradients + held.optimizer)),
                       parallel.fsdp != Fsdp::none ? fmt::format("cut over D ({})", name(parallel.fsdp))
                       : parallel.zero_stage > 0 ? fmt::format("optimizer states over D (ZeRO-{})", parallel.zero_stage)
                                                 : std::string("nothing cut over D")));
  std::string sends;
  const auto add = [&sends](std::string_view what, std::int64_t bytes) {
    if (bytes <= 0) return;
    sends += fmt::format("{}{} {}", sends.empty() ? "" : ", ", what, gib(static_cast<double>(bytes), 1));
  };
  add("tensor", e.sent.tensor);
  add("expert", e.sent.expert);
  add("context", e.sent.context);
  add("data", e.sent.data);
  add("pipeline", e.sent.pipeline);
  c.remark("sends", sends.empty() ? std::string("nothing: it is one GPU")
                                  : fmt::format("a step, one GPU of stage {}: {}", e.communication_stage, sends));
  c.remark("choose", "t up to a node, p until it fits, the rest D; then trade t against p (search)");
  c.beware(
      "expert parallelism multiplies nothing: experts lie on ranks of the same grid. More D at one global batch means "
      "fewer microbatches, so a larger bubble");
  c.source("Narayanan et al. 2021 (2104.04473) section 3");
  c.next("shardplan estimate RUN.json --detail");
}

void rank_order(Card& c) {
  const Parallel& parallel = c.run().parallel;
  const Sym t = c.count("t", "tensor parallel", parallel.tensor),
            n = c.count("c", "context parallel", parallel.context);
  const Sym D = c.count("D", "data parallel", parallel.data), p = c.count("p", "pipeline stages", parallel.pipeline);
  const auto place = [&c](std::string_view name, std::string_view meaning, double wanted, Sym size) {
    return c.index(name, meaning, std::min(wanted, size.value() - 1), size.value());
  };
  const Sym it = place("i_t", "place in the tensor group", 3, t), id = place("i_d", "in the data group", 2, D),
            ip = place("i_p", "stage", 1, p);
  const Sym rank = it + t * n * (id + D * ip);
  c.title("order tp-cp-ep-dp-pp: tensor ranks are neighbours, stages lie furthest apart");
  c.result(rank, "", "rank " + number(rank.value()), "i_t + t c (i_d + D i_p)");
  c.note(fmt::format("of {}, from 0 on", number(t.value() * n.value() * D.value() * p.value())));
  const auto group = [](std::string_view what, Sym size, double distance) {
    if (size.value() == 1) return fmt::format("{}: no group", what);
    if (distance == 1) return fmt::format("{}: neighbours, ranks 0-{}", what, number(size.value() - 1));
    return fmt::format("{}: {}", what, every(distance));
  };
  c.remark("groups", fmt::format("{}; {}; {}", group("tensor", t, 1), group("data", D, t.value() * n.value()),
                                 group("pipeline", p, t.value() * n.value() * D.value())));
  example_where(c, parallel.order != Parallel{}.order,
                "has another order (parallel.order): the numbers are those of the usual one");
  c.remark("why",
           "tensor groups send in every layer, data groups once a step, pipeline groups one hidden state a microbatch");
  c.beware(
      "another order puts tensor groups across nodes: 450 GB/s become 50. NVLink's 600 or 900 GB/s count both "
      "directions, InfiniBand's 400 are bits: 50 GB/s");
  c.source("Megatron-LM core/parallel_state.py");
  c.next("shardplan estimate RUN.json --set parallel/order=dp-tp-cp-ep-pp");
}

}  // namespace shardplan::explain
