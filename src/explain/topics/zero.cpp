// Cards of ZeRO: states of each stage, traffic, ZeRO++.
#include <algorithm>

#include "shardplan/physics/collective.hpp"
#include "states.hpp"
#include "traffic.hpp"

namespace shardplan::explain {
namespace {

/// The stage that was asked for by name ("zero-3"); 0: none was.
int stage_of_word(std::string_view word) {
  for (const char letter : word) {
    if (letter >= '1' && letter <= '3') return letter - '0';
  }
  return 0;
}

/// Bytes of stage 3's step over those of DDP's all-reduce, a microbatch.
double stage3_ratio(double weight, double gradient) {
  return gradient > 0 ? (2 * weight + gradient) / (2 * gradient) : 0;
}

/// Bytes that DDP's all-reduce of the busiest stage would send.
double all_reduce_bytes(Card& c, const StateRule& rule, double ranks) {
  const Training& training = c.run().training;
  const Stage& busiest = c.workspace().stages[static_cast<std::size_t>(c.estimate().communication_stage)];
  const DataVolumes<double> dense = data_volumes<double>(rule, training, busiest.weights.dense);
  const DataVolumes<double> expert = data_volumes<double>(rule, training, busiest.weights.expert);
  return sent_share(Collective::all_reduce, ranks) * dense.gradients +
         sent_share(Collective::all_reduce, rule.expert_replicas) * expert.gradients;
}

/// Ranks that share each state, of the stage that was asked for or as the rule has them.
StateShards<Sym> shards_of(Card& c, std::string_view symbol, std::string_view meaning, const Sym& all, double replicas,
                           int asked, const StateShards<double>& shards) {
  const auto over = [&](int from, double ranks) {
    if (asked > 0) return asked >= from ? all : Sym(1.0);
    if (ranks <= 1) return Sym(1.0);
    return ranks == replicas ? all : c.count(symbol, meaning, ranks);
  };
  return {over(3, shards.parameter), over(2, shards.gradient), over(1, shards.optimizer), all};
}

/// States of stage 0 on one rank; `asked`: under this stage of ZeRO; `example`: of 7e9 parameters.
StateSums<Sym> zero_sums(Card& c, const StateRule& rule, double ranks, int asked, bool example) {
  const Sym N = c.count("N", example ? "ranks that share the states" : "ranks that share the states, D c", ranks);
  const StateShards<Sym> shards =
      shards_of(c, "S", "ranks of a shard set", N, ranks, asked,
                {rule.parameter_shards, rule.gradient_shards, rule.optimizer_shards, rule.dense_replicas});
  const StateWidths<Sym> widths = width_symbols(c, rule);
  const UnitWeights& weights = c.workspace().stages.front().weights;
  if (example) return states_of(rule, widths, adam(), StateElements<Sym>{c.symbol("P", "parameters", 7e9)}, shards);
  const Optimizer& optimizer = *c.workspace().optimizer;
  StateSums<Sym> sums = states_of(rule, widths, optimizer, element_symbols(c, weights.dense), shards);
  if (weights.expert.held() <= 0) return sums;
  const double replicas = rule.expert_replicas;
  const Sym N_e = c.count("N_e", "ranks that share the experts' states, G/(p e x)", replicas);
  const StateShards<Sym> of_experts =
      shards_of(c, "S_e", "ranks of an experts' shard set", N_e, replicas, asked,
                {rule.expert_parameter_shards, rule.expert_gradient_shards, rule.expert_optimizer_shards, replicas});
  const StateSums<Sym> more = states_of(rule, widths, optimizer, element_symbols(c, weights.expert, "_e"), of_experts);
  sums.parameters += more.parameters;
  sums.gradients += more.gradients;
  sums.optimizer += more.optimizer;
  return sums;
}

}  // namespace

void zero(Card& c) {
  const int asked = stage_of_word(c.word());
  const bool example = asked > 0 && !c.stated();  // stage 3 of a model that people know; of a run: its own weights
  if (asked > 0) c.out.topic = fmt::format("zero-{}", asked);
  if (example) c.numbers("7B on 8 GPUs");
  const StateRule rule = example ? StateRule{} : c.workspace().rule;
  const double n = example ? 8 : rule.dense_replicas;
  const StateSums<Sym> sums = zero_sums(c, rule, n, asked, example);
  const Sym total = sums.parameters + sums.gradients + sums.optimizer;
  c.title("stage 1 divides the optimizer's states, stage 2 gradients too, stage 3 weights too");
  c.collected(total, "B", example ? gb(total.value()) : gib(total.value()));
  if (example) {
    c.note(fmt::format("stage {}, a rank", asked));
  } else if (asked > 0) {
    c.note(fmt::format("stage 0's weights under ZeRO-{}; the run: {}, {}", asked, name(c.run().training.framework),
                       sharding(c.run())));
  } else {
    c.note(fmt::format("stage 0, {}, {}", name(c.run().training.framework), sharding(c.run())));
  }
  c.remark("textbook", fmt::format("7e9 x 16 = 112 GB; N = 8: stage 1 {:.4g}, stage 2 {:.4g}, stage 3 {:.4g} GB",
                                   7 * (4 + 12 / 8.0), 7 * (2 + 14 / 8.0), 7 * 16 / 8.0));
  if (n <= 1) c.remark("this run", "has one rank that could share: nothing is cut");
  const std::string traffic = example ? std::string() : data_traffic(c);
  if (!traffic.empty()) {
    c.remark("sends", fmt::format("a step: {}; DDP {}", traffic, gib(all_reduce_bytes(c, rule, n))));
  }
  const Moved of = moved(c);
  const double ratio = example ? 1.5 : stage3_ratio(of.weight, of.gradient);
  c.beware(fmt::format(
      "\"same traffic as DDP\": for one type, without accumulation. Stage 2 reduces every microbatch; stage 3 "
      "sends m (2w + g)/2g{} times DDP's",
      example                       ? " = 1.5 m"
      : ratio > 0 && of.frozen == 0 ? fmt::format(" = {:.3g} m here, 1.5 m at w = g,", ratio)
                                    : ""));
  c.source("Rajbhandari et al. 2019 (1910.02054) section 5; Megatron-LM dist_optimizer.md");
  c.next("shardplan explain zero-traffic");
}

void zero_traffic(Card& c) {
  const bool own = c.stated();
  if (!own) c.numbers("7B on 8 GPUs");
  const UnitWeights& weights = c.workspace().stages.front().weights;
  const Moved of = own ? moved(c) : Moved{7e9, 2, 2, 0};
  const StateRule& rule = c.workspace().rule;
  const Sym m = c.count("m", "microbatches of a step", own ? static_cast<double>(c.run().microbatches()) : 8);
  Sym ddp_bytes = 0.0, stage1 = 0.0, stage2 = 0.0, stage3 = 0.0;
  const auto add = [&](const Moved& each, std::string_view tail, std::string_view kind, double ranks) {
    const auto named = [&](std::string_view name) { return fmt::format("{}{}", name, tail); };
    const Sym P =
        c.symbol(named("P"), fmt::format("{}{}", kind, own ? "parameters that train" : "parameters"), each.trained);
    const Sym N = c.count(named("N"), fmt::format("{}ranks", kind), ranks);
    const Sym w = c.symbol(named("w"), "weight", each.weight, "B"),
              g = c.symbol(named("g"), "gradient", each.gradient, "B");
    const Sym frozen =
        each.frozen > 0 ? c.symbol(named("F"), "frozen weights, gathered with them", each.frozen, "B") : Sym(0.0);
    const Sym gather = sent_share_of(Collective::all_gather, N), scatter = sent_share_of(Collective::reduce_scatter, N);
    ddp_bytes += 2.0 * scatter * g * P;
    stage1 += scatter * g * P + gather * w * P;
    stage2 += m * scatter * g * P + gather * w * P;
    stage3 += m * (2.0 * gather * (w * P + frozen) + scatter * g * P);
  };
  add(of, "", "", own ? std::max(2, c.run().parallel.dense_replicas()) : 8);
  if (own && weights.expert.held() > 0) {
    add(moved(c, weights.expert), "_e", "experts' ", std::max(1.0, rule.expert_replicas));
  }
  c.title("bytes that one rank sends in a step under stage 3: two gathers and a reduce-scatter a microbatch");
  c.result(stage3, "B", gb(stage3.value()), of.frozen > 0 ? "m (N-1)/N (2(wP + F) + gP)" : "m (N-1)/N (2w + g) P");
  const auto ratio = [&](Sym bytes) {
    return ddp_bytes.value() > 0 ? fmt::format("{} ({:.4g}x)", gb(bytes.value()), bytes.value() / ddp_bytes.value())
                                 : gb(bytes.value());
  };
  c.remark("DDP, 0", ratio(ddp_bytes) + ": one all-reduce a step");
  c.remark("stage 1", ratio(stage1) + ": reduce-scatter, all-gather");
  c.remark("stage 2", ratio(stage2) + ": DeepSpeed reduces every microbatch");
  c.remark("stage 3", ratio(stage3));
  if (own) {
    const std::string traffic = data_traffic(c);
    c.remark("this run", fmt::format("{}, {}: {}", name(c.run().training.framework), sharding(c.run()),
                                     traffic.empty() ? std::string("sends none") : "a step " + traffic));
  }
  c.beware(fmt::format(
      "\"1.5x\" is for one microbatch a step and one type: it is m (2w + g)/2g times DDP{}{}; stage 2's \"no extra "
      "communication\" fails with accumulation too",
      own && of.frozen > 0 ? "" : fmt::format(", {:.4g} m here", stage3_ratio(of.weight, of.gradient)),
      of.frozen > 0 ? ", and frozen weights are gathered besides" : ""));
  c.source("Rajbhandari et al. 2019 (1910.02054) section 7; DeepSpeed stage_1_and_2.py");
  c.next("shardplan explain zeropp");
}

void zeropp(Card& c) {
  const bool own = c.stated();
  const bool hpz = c.word().size() == 3 && (c.word().back() == 'z' || c.word().back() == 'Z') &&
                   (c.word().front() == 'h' || c.word().front() == 'H');
  if (hpz) c.out.topic = "hpz";
  if (!own) c.numbers("7B on 64 GPUs");
  const Moved of = moved(c);
  const Sym P = c.symbol("P", own ? "parameters that train" : "parameters", own ? of.trained : 7e9);
  const Sym w = c.symbol("w", "weight", 2, "B");
  const Sym frozen =
      own && of.frozen > 0 ? c.symbol("F", "frozen weights, gathered with them", of.frozen, "B") : Sym(0.0);
  const double node = own ? std::max(1, std::min(c.run().cluster.gpus_per_node, c.run().num_gpus)) : 8;
  c.beware(
      "hpZ is not hybrid sharding: only a secondary copy of the weights lies in each node, optimizer states stay cut "
      "over all ranks. qwZ and qgZ round what they send");
  c.source("Wang et al. 2023 (2306.10209) section 3");
  if (hpz) {
    const Sym S = c.count("S", "GPUs of a node", node);
    const Sym copy = (w * P + frozen) / S;
    c.title("hpZ: a secondary copy of the weights in each node, so that backward gathers inside it");
    c.result(copy, "B", gb(copy.value()) + " more a rank", of.frozen > 0 && own ? "(w P + F)/S" : "w P/S");
    c.remark("gains", "the backward gather leaves the node's network: 1 + 0 + 1 of ZeRO-3's 1 + 1 + 1");
    c.remark("ZeRO++", "qwZ sends the forward gather as int8, qgZ gradients as int4: explain zeropp");
    c.next(
        "shardplan estimate --model llama-3.1-8b --cluster dgx-h100 --gpus 64 --framework deepspeed --zero 3 --set "
        "parallel.zeropp.hpz=true");
    return;
  }
  const Sym N = c.count("N", "ranks", own ? std::max(2, c.run().parallel.dense_replicas()) : 64);
  const Sym f = c.symbol("f", "forward gather: qwZ sends int8", 0.5, {}, Domain::fraction);
  const Sym b = c.symbol("b", "backward gather across nodes: hpZ none", 0, {}, Domain::fraction);
  const Sym r = c.symbol("r", "gradients: qgZ sends int4", 0.25, {}, Domain::fraction);
  const Sym total =
      frozen.is(0) ? (f + b + r) * (N - 1.0) / N * w * P : (N - 1.0) / N * ((f + b) * (w * P + frozen) + r * w * P);
  c.title("ZeRO++: a microbatch's traffic across nodes");
  c.result(total, "B", gb(total.value()));
  const double plain = (N.value() - 1) / N.value() * (3 * w.value() * P.value() + 2 * frozen.value());
  c.remark("ZeRO-3", fmt::format("1 + 1 + 1 instead of {} + {} + {}: {}, {:.4g}x as much", number(f.value()),
                                 number(b.value()), number(r.value()), gb(plain), plain / total.value()));
  c.remark("hpZ", fmt::format("a second copy of the weights in each node: 1/{} of them, {} more a rank", number(node),
                              gb((w.value() * P.value() + frozen.value()) / node)));
  if (own && !(c.run().parallel.hpz || c.run().parallel.qwz || c.run().parallel.qgz)) {
    c.remark("this run", "has none of the three: the numbers are for all of them");
  }
  c.next("shardplan explain hsdp");
}

}  // namespace shardplan::explain
