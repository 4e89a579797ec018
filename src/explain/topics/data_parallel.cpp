// Cards of data parallelism: DDP, ZeRO, FSDP, offloading.
#include <algorithm>

#include "shardplan/physics/collective.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/physics/parameters.hpp"
#include "shardplan/plan/data_volumes.hpp"
#include "states.hpp"
#include "tensors.hpp"

namespace shardplan::explain {
namespace {

/// Dense weights of stage 0 as data parallelism moves them.
struct Moved {
  double trained = 0;   ///< elements, adapters included
  double gradient = 0;  ///< bytes of one of them as it is reduced
  double weight = 0;    ///< and as it is gathered
  double frozen = 0;    ///< bytes of frozen and quantised weights as they are gathered
};

Moved moved(Card& c, const Weights& weights) {
  const DataVolumes<double> volumes = data_volumes<double>(c.workspace().rule, c.run().training, weights);
  Moved of;
  of.trained = weights.trained + weights.adapters;
  if (of.trained > 0) {
    of.gradient = volumes.gradients / of.trained;
    of.weight = volumes.updated / of.trained;
  }
  of.frozen = volumes.gathered - volumes.updated;
  return of;
}
Moved moved(Card& c) { return moved(c, c.workspace().stages.front().weights.dense); }

/// The step's data-parallel traffic as the estimate has it, by collective; empty: there is none.
std::string data_traffic(Card& c) {
  std::string text;
  double sum = 0;
  int calls = 0;
  for (const CommunicationCall& call : c.estimate().communication) {
    const bool of_data = call.group == GroupKind::data || call.group == GroupKind::expert_data;
    if (!of_data || call.sent_bytes_per_step == 0) continue;
    const double sent = static_cast<double>(call.sent_bytes_per_step);
    text += fmt::format("{}{} {:.2f}", text.empty() ? "" : " + ", call.name, sent / shardplan::gib);
    sum += sent;
    ++calls;
  }
  return calls > 1 ? fmt::format("{} = {}", text, gib(sum)) : calls == 1 ? text + " GiB" : text;
}

/// How the run shares out its states.
std::string sharding(const Run& run) {
  return run.parallel.fsdp != Fsdp::none ? std::string(name(run.parallel.fsdp))
                                         : fmt::format("ZeRO-{}", run.parallel.zero_stage);
}

}  // namespace

void ddp(Card& c) {
  const bool own = c.stated();
  const Moved of = moved(c);
  if (!own) c.numbers("the notes' 7B on 8 GPUs");
  const Sym P =
      c.symbol("P", "parameters that train", own ? static_cast<double>(c.estimate().model.trainable_parameters) : 7e9);
  const Sym N = c.count("N", "replicas", own ? c.run().parallel.dense_replicas() : 8);
  const Sym g = c.symbol("g", "bytes of a gradient as reduced", own && of.gradient > 0 ? of.gradient : 4, "B");
  c.title("every rank holds the whole model and the same states; gradients are averaged once a step");
  const Sym sent = sent_share_of(Collective::all_reduce, N) * g * P;
  c.result(sent, "B", gb(sent.value()), "2 (N-1)/N g P sent by each rank");
  c.remark("memory",
           fmt::format("fp32 weights 4 + gradients 4 + Adam 8 = 16 B: {} on every rank{}, whatever N; + 2 B of "
                       "autocast copies in forward, + 4 B of buckets unless gradient_as_bucket_view",
                       gb(16 * P.value()), own && of.frozen > 0 ? ", and the whole frozen base" : ""));
  c.remark("DP", fmt::format(
                     "torch.nn.DataParallel: one process, threads under the GIL; weights are broadcast each forward "
                     "({}) and GPU 0 sums gradients and gathers all logits: it fills first",
                     gb(4 * P.value() +
                        (own ? 2 * static_cast<double>(c.estimate().model.parameters) * (of.frozen > 0 ? 1 : 0) : 0))));
  if (own && !facts_of(c.run().training.framework).copies_gradient_buckets) {
    c.remark("this run", fmt::format("{}, {}: the numbers are what DDP would need", name(c.run().training.framework),
                                     sharding(c.run())));
  }
  c.beware("accumulation sends once a step only under no_sync; without it every microbatch is reduced");
  c.source("Li et al. 2020 (2006.15704), PyTorch DistributedDataParallel; Patarasuk, Yuan 2009");
  c.next("shardplan estimate --model llama-3.2-1b --cluster dgx-h100 --gpus 8 --framework ddp");
}

void ring_all_reduce(Card& c) {
  const Topology& topology = c.workspace().topology;
  const RankGroup group = topology.group(GroupKind::data);
  const DataVolumes<double> volumes =
      data_volumes<double>(c.workspace().rule, c.run().training, c.workspace().stages.front().weights.dense);
  const Sym N = c.count("N", "ranks", std::max(2, group.size));
  const Sym D = c.symbol("D", "bytes reduced: gradients of stage 0", volumes.gradients, "B");
  c.title("reduce-scatter, then all-gather: N - 1 steps each, D/N bytes a step");
  const Sym sent = sent_share_of(Collective::all_reduce, N) * D;
  c.result(sent, "B", gb(sent.value()) + " sent by a GPU", "2 (N-1)/N D");
  c.note("then 2 (N-1) hops");
  c.remark("volume", "N = 2, 8, 1024: 1, 1.75, 2.00 D: it saturates, so it hardly depends on N");
  constexpr double hop = 6e-6;
  c.remark("latency",
           fmt::format("2(N-1) x 6 us = {:.0f} us here, {:.1f} ms at N = 1024: it grows with N, so small messages "
                       "take trees",
                       2 * (N.value() - 1) * hop * 1e6, 2 * 1023 * hop * 1e3));
  const std::string traffic = data_traffic(c);
  if (group.size < 2) {
    c.remark("this run", "has one data-parallel rank: N = 2 is an example");
  } else if (!traffic.empty()) {
    c.remark("this run", "a step: " + traffic);
  }
  c.beware(
      "\"independent of N\" is the volume, not the time: hops grow with N, and a ring over nodes runs at the slowest "
      "link");
  c.source("Patarasuk, Yuan 2009; NCCL; volumes checked byte by byte");
  c.next("shardplan estimate RUN.json --explain communication");
}

void bucketing(Card& c) {
  const bool own = c.stated();
  const Run& run = c.run();
  if (!own) c.numbers("LLaMA-7B, fp32 gradients");
  const Moved of = moved(c);
  const double g = own && of.gradient > 0 ? of.gradient : 4;
  const Sym cap = c.symbol("cap", "bucket_cap_mb 25", 25.0 * 1048576, "B", Domain::positive);
  TensorSizes tensors = own ? tensor_sizes(run.model, run.training.peft) : tensor_sizes(llama_7b(), {});
  const double parameters = tensors.elements();
  const std::vector<double> buckets = ddp_buckets(tensors, g, cap.value());
  // What one more of the usual layers adds; the rest lies at the ends.
  TensorSizes longer = tensors;
  longer.layers.push_back(tensors.layers.back());
  const double layer =
      static_cast<double>(ddp_buckets(longer, g, cap.value()).size()) - static_cast<double>(buckets.size());
  const double layers = static_cast<double>(tensors.layers.size());
  const double total = static_cast<double>(buckets.size());
  const bool alike = layer > 0 && total >= layer * layers;  // else layers differ, or several share a bucket
  const Sym n =
      c.symbol("n", alike ? "buckets of a layer" : "buckets of a layer, mean", alike ? layer : total / layers);
  const Sym L = c.count("L", "layers", layers);
  const Sym rest =
      alike ? c.symbol("rest", "buckets of the ends and of unlike layers", total - layer * layers) : Sym(0.0);
  const Sym all = n * L + rest;
  c.title("gradients are reduced bucket by bucket while the rest of backward runs");
  c.result(all, "", count(all.value()) + " buckets", alike ? "n L + rest" : "n L");
  c.remark(
      "rule",
      fmt::format(
          "a tensor is never split: a bucket closes once it holds {:.4g} MiB, the first 1 MiB. A layer's {} tensors "
          "are {:.4g} to {:.4g} MiB",
          cap.value() / 1048576, tensors.layers.back().size(),
          *std::min_element(tensors.layers.back().begin(), tensors.layers.back().end()) * g / 1048576,
          *std::max_element(tensors.layers.back().begin(), tensors.layers.back().end()) * g / 1048576));
  constexpr double link = 50e9;
  c.remark("exposed",
           fmt::format(
               "at best the last bucket alone{}: 2 x {:.4g} MiB / 50 GB/s = {:.3g} ms; all of it would take {:.3g} s",
               tensors.embedding.empty() ? "" : ", the embedding's", buckets.back() / 1048576,
               2 * buckets.back() / link * 1e3, 2 * parameters * g / link));
  c.remark("order", "buckets fill from the last layer to the first, as backward makes gradients");
  if (own && !facts_of(run.training.framework).copies_gradient_buckets) {
    const FrameworkFacts& facts = facts_of(run.training.framework);
    std::string other(facts.gradient_buckets.empty() ? name(run.training.framework) : facts.gradient_buckets);
    if (facts.zero_pools) {
      other = fmt::format("{}'s reduce_bucket_size is {} elements", facts.title,
                          count(static_cast<double>(run.training.stack.memory.reduce_bucket)));
    }
    c.remark("this run", fmt::format("{}; the numbers are DDP's for the uncut model", other));
  }
  c.beware("small buckets overlap more, each pays a launch and 2(N-1) hops; one overlaps nothing");
  c.source("Li et al. 2020 (2006.15704) section 3.2.2; PyTorch reducer.cpp");
  c.next("shardplan explain ddp");
}

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

}  // namespace

void zero(Card& c) {
  const Run& run = c.run();
  const int asked = stage_of_word(c.word());
  const bool notes = asked > 0 && !c.stated();  // stage 3 of the notes; of a run: its weights under that stage
  if (asked > 0) c.out.topic = fmt::format("zero-{}", asked);
  if (notes) c.numbers("the notes' 7B on 8 GPUs");
  const StateRule rule = notes ? StateRule{} : c.workspace().rule;
  const UnitWeights& weights = c.workspace().stages.front().weights;
  const double n = notes ? 8 : rule.dense_replicas;
  const Sym N = c.count("N", notes ? "ranks that share the states" : "ranks that share the states, D c", n);
  const auto shards_of = [&](std::string_view name, std::string_view meaning, const Sym& all, double replicas,
                             double parameters, double gradients, double states) {
    const auto over = [&](int from, double shards) {
      if (asked > 0) return asked >= from ? all : Sym(1.0);
      if (shards <= 1) return Sym(1.0);
      return shards == replicas ? all : c.count(name, meaning, shards);
    };
    return StateShards<Sym>{over(3, parameters), over(2, gradients), over(1, states), all};
  };
  const StateShards<Sym> shards =
      shards_of("S", "ranks of a shard set", N, n, rule.parameter_shards, rule.gradient_shards, rule.optimizer_shards);
  const StateWidths<Sym> widths = width_symbols(c, rule);
  const Optimizer& optimizer = notes ? adam() : *c.workspace().optimizer;
  StateSums<Sym> sums = states_of(
      rule, widths, optimizer,
      notes ? StateElements<Sym>{c.symbol("P", "parameters", 7e9)} : element_symbols(c, weights.dense), shards);
  if (!notes && weights.expert.held() > 0) {
    const double replicas = rule.expert_replicas;
    const Sym N_e = c.count("N_e", "ranks that share the experts' states, G/(p e x)", replicas);
    const StateShards<Sym> of_experts =
        shards_of("S_e", "ranks of an experts' shard set", N_e, replicas, rule.expert_parameter_shards,
                  rule.expert_gradient_shards, rule.expert_optimizer_shards);
    const StateSums<Sym> more =
        states_of(rule, widths, optimizer, element_symbols(c, weights.expert, "_e"), of_experts);
    sums.parameters += more.parameters;
    sums.gradients += more.gradients;
    sums.optimizer += more.optimizer;
  }
  const Sym total = sums.parameters + sums.gradients + sums.optimizer;
  c.title("stage 1 divides the optimizer's states, stage 2 gradients too, stage 3 weights too");
  c.collected(total, "B", notes ? gb(total.value()) : gib(total.value()));
  if (notes) {
    c.note(fmt::format("stage {}, a rank", asked));
  } else if (asked > 0) {
    c.note(fmt::format("stage 0's weights under ZeRO-{}; the run: {}, {}", asked, name(run.training.framework),
                       sharding(run)));
  } else {
    c.note(fmt::format("stage 0, {}, {}", name(run.training.framework), sharding(run)));
  }
  c.remark("textbook", fmt::format("7e9 x 16 = 112 GB; N = 8: stage 1 {:.4g}, stage 2 {:.4g}, stage 3 {:.4g} GB",
                                   7 * (4 + 12 / 8.0), 7 * (2 + 14 / 8.0), 7 * 16 / 8.0));
  if (n <= 1) c.remark("this run", "has one rank that could share: nothing is cut");
  const std::string traffic = notes ? std::string() : data_traffic(c);
  if (!traffic.empty()) {
    const Stage& busiest = c.workspace().stages[static_cast<std::size_t>(c.estimate().communication_stage)];
    const DataVolumes<double> dense = data_volumes<double>(rule, run.training, busiest.weights.dense);
    const DataVolumes<double> expert = data_volumes<double>(rule, run.training, busiest.weights.expert);
    const double all_reduce = sent_share(Collective::all_reduce, n) * dense.gradients +
                              sent_share(Collective::all_reduce, rule.expert_replicas) * expert.gradients;
    c.remark("sends", fmt::format("a step: {}; DDP {}", traffic, gib(all_reduce)));
  }
  const Moved of = moved(c);
  const double ratio = notes ? 1.5 : stage3_ratio(of.weight, of.gradient);
  c.beware(fmt::format(
      "\"same traffic as DDP\": for one type, without accumulation. Stage 2 reduces every microbatch; stage 3 "
      "sends m (2w + g)/2g{} times DDP's",
      notes                         ? " = 1.5 m"
      : ratio > 0 && of.frozen == 0 ? fmt::format(" = {:.3g} m here, 1.5 m at w = g,", ratio)
                                    : ""));
  c.source("Rajbhandari et al. 2019 (1910.02054) section 5; Megatron-LM dist_optimizer.md");
  c.next("shardplan explain zero-traffic");
}

void zero_traffic(Card& c) {
  const bool own = c.stated();
  if (!own) c.numbers("the notes' 7B on 8 GPUs");
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
  if (!own) c.numbers("the notes' 7B on 64 GPUs");
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

namespace {

/// CPU Adam reads and writes 28 bytes a parameter, the new weights go up in 16 bit.
Sym offload_update(Sym P, Sym host, Sym pcie) { return 28.0 * P / host + 2.0 * P / pcie; }

struct StatesOnGpu {
  double with = 0, without = 0;
};

/// Weights, gradients and states of stage 0 on the card, with and without the optimizer on the host.
StatesOnGpu states_on_gpu(const Run& run) {
  const auto states = [&run](OffloadDevice device) {
    Run variant = run;
    variant.training.offload.optimizer = device;
    Estimate e;
    estimate(variant, e);
    const MemoryParts& parts = e.stages.front().moments[static_cast<std::size_t>(Moment::backward)];
    return static_cast<double>(parts.parameters + parts.gradients + parts.optimizer);
  };
  return {states(OffloadDevice::cpu), states(OffloadDevice::none)};
}

/// The card of a run: its own step, with the optimizer on the host.
void offload_of_run(Card& c) {
  Run variant = c.run();
  variant.training.offload.optimizer = OffloadDevice::cpu;
  if (c.run().training.offload.optimizer == OffloadDevice::none) variant.training.offload.optimizer_fraction = 1;
  Estimate e;
  estimate(variant, e);
  const Host& of_node = variant.cluster.host;
  const double gpus = std::min(variant.num_gpus, variant.cluster.gpus_per_node);
  const double of_gpu = variant.cluster.gpu.pcie_bandwidth > 0 ? variant.cluster.gpu.pcie_bandwidth : 25e9;
  const double memory = (of_node.memory_bandwidth > 0 ? of_node.memory_bandwidth : 200e9) / gpus;
  const double link = of_node.pcie_bandwidth > 0 ? of_node.pcie_bandwidth : of_gpu;
  const double width = bytes_of(activation_dtype(variant.training.precision));
  const Sym P =
      c.symbol("P", "parameters that a GPU's share of the host steps", e.offload.step_s / (28 / memory + width / link));
  const Sym T = c.count("T", "tokens of a step",
                        static_cast<double>(variant.training.global_batch_size * variant.training.seq_length));
  const Sym rate =
      c.symbol("rate", "tokens/s but for the wait",
               T.value() > 0 ? static_cast<double>(variant.training.global_batch_size * variant.training.seq_length) /
                                   (e.time.step_s - e.offload.step_s)
                             : 1,
               {}, Domain::positive);
  const Sym host = c.symbol("host", "host memory, a GPU's share", memory, "B/s", Domain::positive);
  const Sym pcie = c.symbol("pcie", "PCIe", link, "B/s", Domain::positive);
  const Sym update = 28.0 * P / host + Sym(width) * P / pcie;
  const Sym slower = update / (T / rate + update);
  c.result(slower, "fraction", percent(slower.value(), 1) + " of the step",
           fmt::format("{:.2f} / ({:.2f} + {:.2f}) s at {} tokens/step", update.value(), T.value() / rate.value(),
                       update.value(), count(T.value())));
  c.remark(
      "each step",
      fmt::format("gradients down ({:.2f} s, hidden behind backward), CPU Adam 28P ({:.2f} s), weights up ({:.2f} s)",
                  c.workspace().rule.gradient_bytes * P.value() / pcie.value(), 28 * P.value() / host.value(),
                  width * P.value() / pcie.value()));
  const StatesOnGpu states = states_on_gpu(c.run());
  c.remark("memory", fmt::format("the GPU holds {} of weights, gradients and states instead of {}", gb(states.with),
                                 gb(states.without)));
  if (c.run().training.offload.optimizer == OffloadDevice::none) {
    c.remark("this run", "keeps its optimizer on the GPU: the numbers are those with it on the host");
  } else if (c.run().training.offload.optimizer == OffloadDevice::nvme) {
    c.remark("this run", "has its optimizer on NVMe (explain infinity): the numbers are those of host memory");
  }
  const auto at = [&](double tokens) { return percent(update.value() / (tokens / rate.value() + update.value()), 0); };
  c.beware(fmt::format("2,048 tokens: {}, 1,048,576: {}. \"30-50%\" is one place: the cost is once a step", at(2048),
                       at(1048576)));
}

}  // namespace

void offload(Card& c) {
  c.title("optimizer states in host memory: Adam runs on the CPU, once a step");
  c.source("Ren et al. 2021 (2101.06840) section 4");
  c.next("shardplan estimate configs/runs/opt-13b-zero-offload-1xv100.json");
  if (c.stated()) {
    offload_of_run(c);
    return;
  }
  c.numbers("13B on one A100");
  const Sym P = c.symbol("P", "parameters", 13e9);
  const Sym T = c.count("T", "tokens of a step", 8192);
  const Sym peak = c.symbol("peak", "A100", 312e12, "FLOP/s", Domain::positive);
  const Sym share = c.symbol("u", "MFU", 0.45, {}, Domain::fraction);
  const Sym host = c.symbol("host", "host memory", 200e9, "B/s", Domain::positive);
  const Sym pcie = c.symbol("pcie", "PCIe", 25e9, "B/s", Domain::positive);
  const Sym compute = 6.0 * P * T / (peak * share), update = offload_update(P, host, pcie);
  const Sym slower = update / (compute + update);
  c.result(slower, "fraction", percent(slower.value(), 0) + " of the step",
           fmt::format("{:.2f} / ({:.2f} + {:.2f}) s at {} tokens/step", update.value(), compute.value(),
                       update.value(), count(T.value())));
  c.remark("each step",
           fmt::format("gradients down 2P ({:.2f} s, hidden), CPU Adam 28P ({:.2f} s), weights up 2P ({:.2f} s)",
                       2 * P.value() / pcie.value(), 28 * P.value() / host.value(), 2 * P.value() / pcie.value()));
  c.remark("memory", fmt::format("the GPU holds {} instead of {}", gb(2 * P.value()), gb(16 * P.value())));
  const auto at = [&](double tokens) {
    const double of_step = 6 * P.value() * tokens / (peak.value() * share.value());
    return percent(update.value() / (of_step + update.value()), 0);
  };
  c.beware(fmt::format("2,048 tokens: {}, 65,536: {}. \"30-50%\" is one place: the cost is once a step", at(2048),
                       at(65536)));
}

void infinity(Card& c) {
  const bool own = c.stated();
  const Run& run = c.run();
  const double nodes = std::max(1.0, static_cast<double>(run.num_gpus) / run.cluster.gpus_per_node);
  if (!own) c.numbers("the notes' 10^12 parameters on one node");
  const Sym P = c.symbol("P", own ? "parameters that train, a node's share" : "parameters",
                         own ? static_cast<double>(c.estimate().model.trainable_parameters) / nodes : 1e12);
  // All weights are read, frozen ones too; each node's GPUs read what their own ranks hold.
  double read = 0;
  for (const Stage& stage : c.workspace().stages) {
    const auto gathered = [&](const Weights& weights) {
      return data_volumes<double>(c.workspace().rule, run.training, weights).gathered;
    };
    read += gathered(stage.weights.dense) * run.parallel.tensor +
            gathered(stage.weights.expert) * run.parallel.expert * run.parallel.expert_tensor;
  }
  const double weights = own ? read / copies_of_stages(run) / nodes : 2 * P.value();
  const double of_node = run.cluster.host.nvme_bandwidth;
  const Sym nvme = c.symbol("nvme", own && of_node == 0 ? "NVMe of a node (not stated: 25 GB/s)" : "NVMe of a node",
                            own && of_node > 0 ? of_node : 25e9, "B/s", Domain::positive);
  const StateRule& rule = c.workspace().rule;
  const double own_state = run.training.peft.active() ? rule.adapter_master_bytes + rule.adapter_moment_bytes
                                                      : rule.master_bytes + rule.moment_bytes;
  const Sym state = c.symbol("o", "master copy and moments", own ? own_state : 12, "B");
  const Sym seconds = 2.0 * state * P / nvme;
  c.title("ZeRO-Infinity: states on NVMe are read and written once a step");
  c.result(seconds, "s", fmt::format("{:.3g} s a step", seconds.value()), "2 o P / NVMe bandwidth");
  c.remark("space",
           fmt::format("{:.4g} TB for 16 B a parameter; weights are read twice a microbatch as well: {:.3g} s each",
                       16 * P.value() / 1e12, weights / nvme.value()));
  if (own && run.training.offload.optimizer != OffloadDevice::nvme) {
    c.remark("this run", "keeps its states off NVMe: the numbers are those with them there");
  }
  c.remark("hides", "behind compute only with a batch of many tokens: about 6PT FLOP must last as long");
  c.beware(
      "\"trains a trillion parameters on one node\" says that it fits: the time of a step is set by NVMe, and grows "
      "with P");
  c.source("Rajbhandari et al. 2021 (2104.07857) sections 5, 6");
  c.next("shardplan estimate configs/runs/gpt-1t-zero-infinity-1xdgx2.json");
}

void fsdp(Card& c) {
  const bool own = c.stated();
  Run run = c.run();
  run.training.framework = implied_framework(true, false, false);
  run.parallel.fsdp = Fsdp::full_shard;
  StateRule rule;
  rule.parameter_bytes = rule.gradient_bytes = 4;
  rule.master_bytes = 0;
  if (own) rule = state_rule(run);
  const double parameters = own ? static_cast<double>(c.estimate().model.parameters) : 8030261248.0;
  if (!own) c.numbers("Llama-3.1-8B on 8 GPUs");
  const StateElements<Sym> elements =
      own ? whole_model(c) : StateElements<Sym>{c.symbol("P", "parameters", parameters)};
  const Sym N = c.count("N", "ranks", own ? std::max(1, run.num_gpus) : 8);
  const StateSums<Sym> sums =
      states_of(rule, width_symbols(c, rule), own ? *c.workspace().optimizer : adam(), elements, shared_by(N));
  const Sym total = sums.parameters + sums.gradients + sums.optimizer;
  c.title("FULL_SHARD: weights, gradients and states are cut; a unit's weights are gathered while it runs");
  c.collected(total, "B", gib(total.value()) + " a rank");
  const double layer = own ? layer_parameters(run.model, run.model.layer(run.model.layers() - 1)) : 218112000;
  c.remark("gathered",
           fmt::format("+ two units in 16 bit, this and the next: 2 x 2 B x {} = {}", count(layer), gib(4 * layer)));
  c.remark(
      "strategies",
      fmt::format("FULL_SHARD {} | SHARD_GRAD_OP keeps 16-bit weights for backward: + {} | NO_SHARD, like DDP: {} | "
                  "HYBRID_SHARD: cut in a node",
                  gib(total.value()), gib(2 * parameters), gib(total.value() * N.value())));
  c.remark("traffic", "a microbatch: gather forward, gather backward (not SHARD_GRAD_OP), reduce-scatter");
  if (own && c.run().parallel.fsdp == Fsdp::none) {
    c.remark("this run", fmt::format("{}, {}: the numbers are FSDP's over all its GPUs",
                                     name(c.run().training.framework), sharding(c.run())));
  }
  c.beware(
      "SHARD_GRAD_OP is not ZeRO-2: stored weights stay cut and are gathered in every microbatch's forward, ZeRO-2's "
      "once a step. Wrap each layer, not all as one");
  c.source("Zhao et al. 2023 (2304.11277) section 3; PyTorch FullyShardedDataParallel");
  c.next("shardplan estimate configs/runs/llama-3.1-8b-8xh100-fsdp2.json");
}

void hsdp(Card& c) {
  const int ranks = c.run().parallel.dense_replicas();
  const int set = c.run().parallel.fsdp == Fsdp::hybrid_shard
                      ? c.workspace().topology.shard.size
                      : std::min(ranks, std::max(1, c.run().cluster.gpus_per_node / c.run().parallel.tensor));
  const bool own = c.stated() && set > 1;  // one rank is no shard set
  if (!own) c.numbers("Llama-3.1-8B on 16 nodes of 8 GPUs");
  if (c.stated() && !own) {
    c.remark("this run", "has one data-parallel rank a node, so no shard set in it; the numbers are an example's");
  }
  const Moved of = own ? moved(c) : Moved{8030261248.0, 4, 2, 0};
  const Sym P = c.symbol("P", own ? "parameters that train on a rank's stage" : "parameters", of.trained);
  const Sym S = c.count("S", "ranks of a shard set: a node", own ? set : 8);
  const Sym R = c.count("R", "shard sets", own ? std::max(1, ranks / set) : 16);
  const Sym g = c.symbol("g", "gradient", of.gradient, "B");
  if (R.value() == 1) c.remark("this run", "is one shard set: nothing crosses nodes");
  DataVolumes<Sym> volumes;
  volumes.gradients = g * P;
  const Payload shard{Carried::gradients, true, false, 1, std::max(2, static_cast<int>(S.value()))};
  const Sym across = sent_share_of(Collective::all_reduce, R) * payload_bytes<Sym>(shard, volumes, {}, {}, S);
  c.title("hybrid sharding: gathers stay in the node, gradients of a shard are all-reduced across");
  c.result(across, "B", gb(across.value()) + " sent across nodes, a rank", "2 (R-1)/R g P/S");
  // Each of a node's S NICs carries one ring's share of what the node takes in.
  const double gathered = of.weight * of.trained + of.frozen;
  const double full = (R.value() - 1) / R.value() * (2 * gathered + g.value() * P.value()) / S.value();
  c.remark("full shard",
           fmt::format("over S R = {} ranks, a NIC: (R-1)/R (2 gathers + g P)/S = {} a microbatch; a rank's whole ring "
                       "traffic is S times that, on NVLink but for one hop in S",
                       count(S.value() * R.value()), gb(full)));
  StateRule rule = own ? c.workspace().rule : StateRule{};
  if (!own) {
    rule.parameter_bytes = rule.gradient_bytes = 4;
    rule.master_bytes = 0;
  }
  const StateWidths<double> widths = widths_of<double>(rule);
  const auto held = [&](double shards) {
    StateElements<double> e;
    const Weights& w = c.workspace().stages.front().weights.dense;
    e.trained = own ? w.trained : P.value();
    if (own) {
      e.frozen = w.frozen;
      e.quantized = w.quantized;
      e.quantized_rows = w.quantized_rows;
      e.adapters = w.adapters;
      e.counted = w.counted;
      e.counted_bytes = w.counted_bytes;
    }
    StateSums<double> sums;
    add_states(rule, widths, own ? *c.workspace().optimizer : adam(), e,
               StateShards<double>{shards, shards, shards, shards}, sums);
    return sums.parameters + sums.gradients + sums.optimizer;
  };
  c.remark("memory", fmt::format("{} of weights, gradients and states a rank over S = {}, {} over S R",
                                 gib(held(S.value())), number(S.value()), gib(held(S.value() * R.value()))));
  c.remark("pays", "in latency: gathers take S - 1 NVLink hops, not S R - 1; the all-reduce can wait");
  c.beware(
      "fewer bytes across nodes only with accumulation or frozen weights. Not ZeRO++'s hpZ: HSDP replicates all states "
      "across nodes, hpZ a secondary copy of the weights");
  c.source("Zhao et al. 2023 (2304.11277) section 3.2.2; Wang et al. 2023 (2306.10209)");
  c.next("shardplan explain hpz");
}

void fsdp_or_zero3(Card& c) {
  const bool own = c.stated();
  if (!own) c.numbers("Llama-3.1-8B");
  const double held = own ? c.workspace().stages.front().weights.held() : 8030261248.0;
  const auto at_most = [held](double elements) { return std::min(elements, held); };
  const Sym live = c.symbol("live", "stage3_max_live_parameters", at_most(1e9)),
            prefetch = c.symbol("prefetch", "prefetch bucket", at_most(5e7));
  const Sym bucket = c.symbol("bucket", "reduce bucket, and its copy laid out by ranks", at_most(5e8)),
            w = c.symbol("w", "bytes", 2, "B");
  const Sym deepspeed = w * (live + prefetch + 2.0 * bucket);
  const double layer =
      own ? layer_parameters(c.run().model, c.run().model.layer(c.run().model.layers() - 1)) / c.run().parallel.tensor
          : 218112000;
  c.title("ZeRO-3 and FSDP cut the same states; what they gather and buffer differs");
  c.result(deepspeed, "B", gib(deepspeed.value()) + " of DeepSpeed's buffers");
  c.remark("FSDP", fmt::format("two gathered units and an fp32 reduce-scatter input, 8 B x {}: {}", count(layer),
                               gib(8 * layer)));
  c.remark("DeepSpeed", "NVMe, CPU Adam, ZeRO++; a config file; gradients in 16 bit by default");
  c.remark("FSDP2", "cuts each parameter (DTensor), FSDP1 flat units; fp32 gradients; torch.compile");
  if (own) {
    c.remark("this run", fmt::format("{}, {}; the pools are DeepSpeed's defaults, no larger than a rank's {} weights",
                                     name(c.run().training.framework), sharding(c.run()), short_number(held)));
  }
  c.beware(
      "\"parameter against FlatParameter\" is FSDP1: FSDP2 has no flat parameters. States are 16/N either way; "
      "buffers, dtypes and offload differ");
  c.source("Zhao et al. 2023 (2304.11277); DeepSpeed config.py, stage3.py; torchtitan fsdp.md");
  c.next("shardplan estimate --model llama-3.1-8b --cluster dgx-h100 --gpus 8 --zero 3");
}

void ddp_or_zero(Card& c) {
  const bool own = c.stated();
  if (!own) c.numbers("an 80 GB card");
  const Estimate& e = c.estimate();
  const MemoryParts& peak = e.stages[static_cast<std::size_t>(e.binding_stage)].peak();
  const Sym card = c.symbol("card", own ? "usable bytes of a card" : "usable bytes of an 80 GB card",
                            own ? std::floor(c.run().cluster.gpu.memory_cuda_bytes) : 84943715696.0, "B");
  const Sym rest =
      c.symbol("rest", "activations, buffers, context",
               own ? static_cast<double>(peak.total() - peak.parameters - peak.gradients - peak.optimizer) : 20e9, "B");
  const Sym P = (card - rest) / 16.0;
  c.title("the largest model whose states and rest fit on every rank of DDP");
  c.result(P, "", fmt::format("{:.3g} B parameters", P.value() / 1e9), "(card - rest) / 16 B");
  const auto largest = [&](double bytes) { return fmt::format("{:.3g}", (card.value() - rest.value()) / bytes / 1e9); };
  const auto stages = [&](double N) {
    return fmt::format("stage 1 (4 + 12/{0}) {1} B | stage 2 (2 + 14/{0}) {2} B | stage 3 (16/{0}) {3} B", number(N),
                       largest(4 + 12 / N), largest(2 + 14 / N), largest(16 / N));
  };
  if (own) {
    const double N = c.run().parallel.dense_replicas();
    c.remark(fmt::format("N = {}", number(N)), stages(N));
    c.remark(
        "this run",
        fmt::format("a rank holds {} of {} parameters, {}, {}",
                    short_number(static_cast<double>(e.stages[static_cast<std::size_t>(e.binding_stage)].parameters)),
                    short_number(static_cast<double>(e.model.parameters)), name(c.run().training.framework),
                    sharding(c.run())));
  } else {
    for (const double N : {8.0, 64.0}) c.remark(fmt::format("N = {}", number(N)), stages(N));
  }
  c.remark("choose",
           "fits: DDP, or stage 1, which sends no more. Does not fit: stage 2 without accumulation, else stage 3 or "
           "FSDP; beyond a node's links tensor and pipeline parallelism");
  c.beware("\"stage 2 costs no traffic\" holds without accumulation only (explain zero-traffic)");
  c.source("Rajbhandari et al. 2019 (1910.02054) table 1");
  c.next("shardplan estimate --model llama-3.1-8b --cluster dgx-h100 --gpus 8 --zero 2");
}

}  // namespace shardplan::explain
