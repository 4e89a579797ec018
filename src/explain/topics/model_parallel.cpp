// Cards of tensor, sequence, context and expert parallelism.
#include <algorithm>

#include "shardplan/physics/layer.hpp"
#include "shardplan/physics/layer_inputs.hpp"
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

}  // namespace shardplan::explain
