// Cards of data parallelism: DDP, ZeRO, FSDP, offloading.
#include <algorithm>

#include "shardplan/physics/collective.hpp"
#include "shardplan/physics/parameters.hpp"
#include "shardplan/plan/data_volumes.hpp"
#include "states.hpp"

namespace shardplan::explain {
namespace {

/// Parameters that train on a rank of stage 0, adapters included.
double trained_here(Card& c) { return c.workspace().stages.front().weights.trained(); }

}  // namespace

void ddp(Card& c) {
  const double parameters = c.stated() ? static_cast<double>(c.estimate().model.trainable_parameters) : 7e9;
  const Sym P = c.symbol("P", "parameters that train", parameters);
  const Sym N = c.symbol("N", "replicas", c.stated() ? c.run().parallel.dense_replicas() : 8);
  const Sym g = c.symbol("g", "bytes of a gradient as reduced", 4, "B");
  c.title("every rank holds the whole model and the same states; gradients are averaged once a step");
  const Sym sent = sent_share_of(Collective::all_reduce, N) * g * P;
  c.result(sent, "B", gb(sent.value()), "2 (N-1)/N g P sent by each rank");
  c.remark("memory", fmt::format("fp32 weights 4 + gradients 4 + Adam 8 = 16 B: {} on every rank, whatever N; + 2 B of "
                                 "autocast copies in forward, + 4 B of buckets unless gradient_as_bucket_view",
                                 gb(16 * P.value())));
  c.remark("DP",
           fmt::format("torch.nn.DataParallel: one process, threads under the GIL; weights are broadcast each forward "
                       "({}) and GPU 0 sums gradients and gathers all logits: it fills first",
                       gb(4 * P.value())));
  c.beware("accumulation sends once a step only under no_sync; without it every microbatch is reduced");
  c.source("Li et al. 2020 (2006.15704), PyTorch DistributedDataParallel; Patarasuk, Yuan 2009");
  c.next("shardplan estimate --model llama-3.1-8b --cluster dgx-h100 --gpus 8 --framework ddp");
}

void ring_all_reduce(Card& c) {
  const Topology& topology = c.workspace().topology;
  const RankGroup group = topology.group(GroupKind::data);
  const DataVolumes<double> volumes =
      data_volumes<double>(c.workspace().rule, c.run().training, c.workspace().stages.front().weights.dense);
  const Sym N = c.symbol("N", "ranks", std::max(2, group.size));
  const Sym D = c.symbol("D", "bytes reduced: gradients of stage 0", volumes.gradients, "B");
  if (group.size < 2) c.remark("this run", "has one data-parallel rank: N = 2 is an example");
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
  c.beware(
      "\"independent of N\" is the volume, not the time: hops grow with N, and a ring over nodes runs at the slowest "
      "link");
  c.source("Patarasuk, Yuan 2009 (J. Parallel Distrib. Comput. 69); NCCL; volumes checked byte by byte");
  c.next("shardplan estimate RUN.json --explain communication.grad_reduce_scatter");
}

void bucketing(Card& c) {
  const bool own = c.stated();
  const Sym P = c.symbol("P", own ? "parameters that train on a rank" : "parameters", own ? trained_here(c) : 7e9);
  const Sym g = c.symbol("g", "bytes of a gradient", own ? c.workspace().rule.gradient_bytes : 4, "B");
  const Sym bucket = c.symbol("bucket", "bucket_cap_mb 25", 25.0 * 1048576, "B");
  const Sym buckets = ceil(P * g / bucket);
  c.title("gradients are reduced bucket by bucket while the rest of backward runs");
  c.result(buckets, "", count(buckets.value()) + " buckets", "gradients / bucket");
  constexpr double link = 50e9;
  c.remark("exposed",
           fmt::format("at best the last bucket alone: 2 x 25 MiB / 50 GB/s = {:.2f} ms; all of it would take {:.2f} s",
                       2 * bucket.value() / link * 1e3, 2 * P.value() * g.value() / link));
  c.remark("order", "buckets fill from the last layer to the first, as backward makes gradients");
  c.beware("smaller buckets overlap more and each pays a launch and 2(N-1) hops; one bucket overlaps nothing");
  c.source("Li et al. 2020 (2006.15704) section 3.2.3; PyTorch reducer.cpp");
  c.next("shardplan estimate RUN.json --set training.overlap.grad_reduce=false");
}

void zero(Card& c) {
  const Run& run = c.run();
  const StateRule& rule = c.workspace().rule;
  const UnitWeights& weights = c.workspace().stages.front().weights;
  const double n = rule.dense_replicas;
  const Sym N = c.symbol("N", "ranks that share the states, D c", n);
  const auto over = [&](Sym all, std::string_view name, double shards, double replicas) {
    if (shards <= 1) return Sym(1.0);
    return shards == replicas ? all : c.symbol(name, "ranks of a shard set", shards);
  };
  const StateShards<Sym> shards{over(N, "S", rule.parameter_shards, n), over(N, "S", rule.gradient_shards, n),
                                over(N, "S", rule.optimizer_shards, n), N};
  const StateWidths<Sym> widths = width_symbols(c, rule);
  const Optimizer& optimizer = *c.workspace().optimizer;
  StateSums<Sym> sums = states_of(rule, widths, optimizer, element_symbols(c, weights.dense), shards);
  if (weights.expert.held() > 0) {
    const double replicas = rule.expert_replicas;
    const Sym N_e = c.symbol("N_e", "ranks that share the experts' states", replicas);
    const StateShards<Sym> of_experts{over(N_e, "S_e", rule.expert_parameter_shards, replicas),
                                      over(N_e, "S_e", rule.expert_gradient_shards, replicas),
                                      over(N_e, "S_e", rule.expert_optimizer_shards, replicas), N_e};
    const StateSums<Sym> more =
        states_of(rule, widths, optimizer, element_symbols(c, weights.expert, "_e"), of_experts);
    sums.parameters += more.parameters;
    sums.gradients += more.gradients;
    sums.optimizer += more.optimizer;
  }
  const Sym total = sums.parameters + sums.gradients + sums.optimizer;
  c.title("stage 1 divides the optimizer's states, stage 2 gradients too, stage 3 weights too");
  c.collected(total, "B", gib(total.value()));
  c.note(fmt::format("stage 0, {}, {}", name(run.training.framework),
                     run.parallel.fsdp != Fsdp::none ? std::string(name(run.parallel.fsdp))
                                                     : fmt::format("ZeRO-{}", run.parallel.zero_stage)));
  c.remark("textbook", fmt::format("7e9 x 16 = 112 GB; N = 8: stage 1 {:.4g}, stage 2 {:.4g}, stage 3 {:.4g} GB",
                                   7 * (4 + 12 / 8.0), 7 * (2 + 14 / 8.0), 7 * 16 / 8.0));
  if (n <= 1) c.remark("this run", "has one rank that could share: nothing is cut");
  const DataVolumes<double> volumes = data_volumes<double>(rule, run.training, weights.dense);
  const double share = sent_share(Collective::all_gather, N.value());
  const double scatter = share * volumes.gradients, gather = share * volumes.updated;
  const std::string compared = n > 1 ? fmt::format("; here reduce-scatter {} + all-gather {} = {}, DDP's all-reduce {}",
                                                   gib(scatter), gib(gather), gib(scatter + gather), gib(2 * scatter))
                                     : std::string();
  c.beware(
      fmt::format("\"same traffic as DDP\" holds if gradients and weights have one type{}. Stage 2 reduces every "
                  "microbatch (DeepSpeed); stage 3 is 1.5 m times DDP",
                  compared));
  c.source("Rajbhandari et al. 2019 (1910.02054) section 5; Megatron-LM dist_optimizer.md");
  c.next("shardplan explain zero-traffic");
}

void zero_traffic(Card& c) {
  const bool own = c.stated();
  const Sym P = c.symbol("P", "parameters", own ? trained_here(c) : 7e9);
  const Sym N = c.symbol("N", "ranks", own ? std::max(2, c.run().parallel.dense_replicas()) : 8);
  const Sym m = c.symbol("m", "microbatches of a step", own ? static_cast<double>(c.run().microbatches()) : 8);
  const StateRule& rule = c.workspace().rule;
  const Sym w = c.symbol("w", "weight", own ? std::min(2.0, rule.parameter_bytes) : 2, "B");
  const Sym g = c.symbol("g", "gradient", own ? rule.gradient_bytes : 2, "B");
  const Sym gather = sent_share_of(Collective::all_gather, N), scatter = sent_share_of(Collective::reduce_scatter, N);
  const Sym stage3 = m * (2.0 * gather * w * P + scatter * g * P);
  c.title("bytes that one rank sends in a step under stage 3: two gathers and a reduce-scatter a microbatch");
  c.result(stage3, "B", gb(stage3.value()), "m (N-1)/N (2w + g) P");
  const double one = gather.value() * P.value();
  const double ddp_bytes = 2 * one * g.value();
  const auto ratio = [&](double bytes) { return fmt::format("{} ({:.4g}x)", gb(bytes), bytes / ddp_bytes); };
  c.remark("DDP, 0", ratio(ddp_bytes) + ": one all-reduce a step");
  c.remark("stage 1", ratio(one * (g.value() + w.value())) + ": reduce-scatter, all-gather");
  c.remark("stage 2", ratio(one * (m.value() * g.value() + w.value())) + ": DeepSpeed reduces every microbatch");
  c.remark("stage 3", ratio(stage3.value()));
  c.beware(
      "\"1.5x\" is for one microbatch a step: with accumulation it is 1.5 m times DDP; stage 2's \"no extra "
      "communication\" fails the same way");
  c.source("Rajbhandari et al. 2019 (1910.02054) section 7; DeepSpeed stage_1_and_2.py");
  c.next("shardplan explain zeropp");
}

void zeropp(Card& c) {
  const bool own = c.stated();
  const Sym P = c.symbol("P", "parameters", own ? trained_here(c) : 7e9);
  const Sym N = c.symbol("N", "ranks", own ? std::max(2, c.run().parallel.dense_replicas()) : 64);
  const Sym w = c.symbol("w", "weight", 2, "B");
  const Sym f = c.symbol("f", "forward gather: qwZ sends int8", 0.5);
  const Sym b = c.symbol("b", "backward gather across nodes: hpZ none", 0);
  const Sym r = c.symbol("r", "gradients: qgZ sends int4", 0.25);
  c.title("ZeRO++: a microbatch's traffic across nodes");
  c.result((f + b + r) * (N - 1.0) / N * w * P, "B",
           gb((f.value() + b.value() + r.value()) * (N.value() - 1) / N.value() * w.value() * P.value()));
  c.remark("ZeRO-3", fmt::format("1 + 1 + 1 instead of {} + {} + {}: {:.4g}x less", number(f.value()),
                                 number(b.value()), number(r.value()), 3 / (f.value() + b.value() + r.value())));
  c.remark("hpZ", fmt::format("a second copy of the weights in each node: 2 B/8 a parameter, {} more a rank",
                              gb(P.value() * 2 / 8)));
  c.beware(
      "hpZ is not hybrid sharding: only a secondary copy of the weights lies in each node, optimizer states stay cut "
      "over "
      "all ranks. qwZ and qgZ round what they send");
  c.source("Wang et al. 2023 (2306.10209) section 3");
  c.next("shardplan explain hsdp");
}

namespace {

struct OffloadTimes {
  Sym compute, update;
};

OffloadTimes offload_times(Sym P, Sym T, Sym peak, Sym share, Sym host, Sym pcie) {
  return {6.0 * P * T / (peak * share), 28.0 * P / host + 2.0 * P / pcie};
}

}  // namespace

void offload(Card& c) {
  const bool own = c.stated();
  const Run& run = c.run();
  const double gpus = run.num_gpus, in_node = std::min(run.num_gpus, run.cluster.gpus_per_node);
  const double trained = own ? static_cast<double>(c.estimate().model.trainable_parameters) : 13e9;
  const double tokens = own ? static_cast<double>(run.training.global_batch_size * run.training.seq_length) : 8192;
  const Sym P = c.symbol("P", own ? "parameters that train, a GPU's share" : "parameters", own ? trained / gpus : 13e9);
  const Sym T = c.symbol("T", "tokens of a step", tokens);
  const Sym peak =
      c.symbol("peak", own ? "dense" : "A100", own ? run.cluster.gpu.peak(run.training.precision) : 312e12, "FLOP/s");
  const Sym share = c.symbol("u", "MFU", own ? c.estimate().throughput.mfu : 0.45);
  const Sym host =
      c.symbol("host", own ? "host memory, its share" : "host memory", own ? 200e9 / in_node : 200e9, "B/s");
  const Sym pcie = c.symbol("pcie", "PCIe", 25e9, "B/s");
  const OffloadTimes t = offload_times(P, T, peak, share, host, pcie);
  const Sym slower = t.update / (t.compute + t.update);
  c.title("optimizer states in host memory: Adam runs on the CPU, once a step");
  c.result(slower, "fraction", percent(slower.value(), 0) + " of the step",
           fmt::format("{:.2f} / ({:.2f} + {:.2f}) s at {} tokens/step", t.update.value(), t.compute.value(),
                       t.update.value(), count(T.value())));
  c.remark("each step",
           fmt::format("gradients down 2P ({:.2f} s, hidden), CPU Adam 28P ({:.2f} s), weights up 2P ({:.2f} s)",
                       2 * P.value() / pcie.value(), 28 * P.value() / host.value(), 2 * P.value() / pcie.value()));
  c.remark("memory", fmt::format("the GPU holds {} instead of {}", gb(2 * P.value()), gb(16 * P.value())));
  const auto at = [&](double of_step) {
    const double compute = 6 * P.value() * of_step / (peak.value() * share.value());
    return percent(t.update.value() / (compute + t.update.value()), 0);
  };
  c.beware(fmt::format("2,048 tokens: {}, 65,536: {}. \"30-50%\" is one place: the cost is once a step", at(2048),
                       at(65536)));
  c.source("Ren et al. 2021 (2101.06840) section 4");
  c.next("shardplan estimate configs/runs/opt-13b-zero-offload-1xv100.json");
}

void infinity(Card& c) {
  const bool own = c.stated();
  const Run& run = c.run();
  const double nodes = std::max(1.0, static_cast<double>(run.num_gpus) / run.cluster.gpus_per_node);
  const Sym P = c.symbol("P", own ? "parameters that train, a node's share" : "parameters",
                         own ? static_cast<double>(c.estimate().model.trainable_parameters) / nodes : 1e12);
  const double of_node = run.cluster.host.nvme_bandwidth;
  const Sym nvme = c.symbol("nvme", "NVMe of a node", own && of_node > 0 ? of_node : 25e9, "B/s");
  const Sym state = c.symbol("o", "master copy and moments", 12, "B");
  const Sym seconds = 2.0 * state * P / nvme;
  c.title("ZeRO-Infinity: states on NVMe are read and written once a step");
  c.result(seconds, "s", fmt::format("{:.3g} s a step", seconds.value()), "2 o P / NVMe bandwidth");
  c.remark("space",
           fmt::format("{:.4g} TB for 16 B a parameter; weights are read twice a microbatch as well: {:.0f} s each",
                       16 * P.value() / 1e12, 2 * P.value() / nvme.value()));
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
  run.training.framework = Framework::fsdp;
  run.parallel.fsdp = Fsdp::full_shard;
  StateRule rule;
  rule.parameter_bytes = rule.gradient_bytes = 4;
  rule.master_bytes = 0;
  if (own) rule = state_rule(run);
  const double parameters = own ? static_cast<double>(c.estimate().model.parameters) : 8030261248.0;
  const StateElements<Sym> elements =
      own ? whole_model(c) : StateElements<Sym>{c.symbol("P", "parameters of Llama-3.1-8B", parameters)};
  const Sym N = c.symbol("N", "ranks", own ? std::max(1, run.num_gpus) : 8);
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
  c.beware("SHARD_GRAD_OP sends as ZeRO-2 does, but stored weights stay sharded. Wrap each layer, not all as one");
  c.source("Zhao et al. 2023 (2304.11277) section 3; PyTorch FullyShardedDataParallel");
  c.next("shardplan estimate configs/runs/llama-3.1-8b-8xh100-fsdp2.json");
}

void hsdp(Card& c) {
  const bool own = c.stated();
  const int ranks = c.run().parallel.dense_replicas();
  const int set = c.run().parallel.fsdp == Fsdp::hybrid_shard
                      ? c.workspace().topology.shard.size
                      : std::min(ranks, std::max(1, c.run().cluster.gpus_per_node / c.run().parallel.tensor));
  const Sym P = c.symbol("P", own ? "parameters that train on a rank's stage" : "parameters",
                         own ? trained_here(c) : 8030261248.0);
  const Sym S = c.symbol("S", "ranks of a shard set: a node", own ? set : 8);
  const Sym R = c.symbol("R", "shard sets", own ? std::max(1, ranks / set) : 16);
  const Sym g = c.symbol("g", "gradient", own ? c.workspace().rule.gradient_bytes : 4, "B");
  if (R.value() == 1) c.remark("this run", "is one shard set: nothing crosses nodes");
  DataVolumes<Sym> volumes;
  volumes.gradients = g * P;
  const Payload shard{Carried::gradients, true, false, 1, static_cast<int>(S.value())};
  const Sym across = sent_share_of(Collective::all_reduce, R) * payload_bytes<Sym>(shard, volumes, {}, {}, S);
  c.title("hybrid sharding: gathers stay in the node, gradients of a shard are all-reduced across");
  c.result(across, "B", gb(across.value()) + " sent across nodes, a rank", "2 (R-1)/R g P/S");
  c.remark("full shard", fmt::format("over S R = {} ranks would gather 2 x 2 B x P across nodes: {} a microbatch",
                                     count(S.value() * R.value()),
                                     gb(4 * P.value() * (S.value() * R.value() - 1) / (S.value() * R.value()))));
  c.remark("memory", fmt::format("16 B x P/S = {} instead of {}", gib(16 * P.value() / S.value()),
                                 gib(16 * P.value() / (S.value() * R.value()))));
  c.beware(
      "not ZeRO++'s hpZ, only like it: HSDP replicates all states across nodes, hpZ keeps a secondary copy of the "
      "weights "
      "in each node and cuts the rest over all ranks");
  c.source("Zhao et al. 2023 (2304.11277) section 3.2.2; Wang et al. 2023 (2306.10209)");
  c.next("shardplan estimate --model llama-3.1-8b --cluster dgx-h100 --gpus 128 --fsdp hybrid_shard");
}

void fsdp_or_zero3(Card& c) {
  const Sym live = c.symbol("live", "stage3_max_live_parameters", 1e9),
            prefetch = c.symbol("prefetch", "prefetch bucket", 5e7);
  const Sym bucket = c.symbol("bucket", "reduce bucket, two of them", 5e8), w = c.symbol("w", "bytes", 2, "B");
  const Sym deepspeed = w * (live + prefetch + 2.0 * bucket);
  constexpr double layer = 218112000;
  c.title("ZeRO-3 and FSDP cut the same states; what they gather and buffer differs");
  c.result(deepspeed, "B", gib(deepspeed.value()) + " of DeepSpeed's buffers");
  c.remark("FSDP", fmt::format("two gathered units and an fp32 reduce-scatter input, 8B: {}", gib(8 * layer)));
  c.remark("DeepSpeed", "NVMe, CPU Adam, ZeRO++; a config file; gradients in 16 bit by default");
  c.remark("FSDP2", "cuts each parameter (DTensor), FSDP1 flat units; fp32 gradients; torch.compile");
  c.beware(
      "\"parameter against FlatParameter\" is FSDP1: FSDP2 has no flat parameters. States are 16/N either way; "
      "buffers, "
      "dtypes and offload differ");
  c.source("Zhao et al. 2023 (2304.11277); DeepSpeed zero/config.py; torchtitan docs/fsdp.md");
  c.next("shardplan estimate --model llama-3.1-8b --cluster dgx-h100 --gpus 8 --zero 3");
}

void ddp_or_zero(Card& c) {
  const Sym card = c.symbol("card", "usable bytes of an 80 GB card", 84943715696.0, "B");
  const Sym rest = c.symbol("rest", "activations, buffers, context", 20e9, "B");
  const Sym P = (card - rest) / 16.0;
  c.title("the largest model whose states and rest fit on every rank of DDP");
  c.result(P, "", fmt::format("{:.3g} B parameters", P.value() / 1e9), "(card - rest) / 16 B");
  const auto largest = [&](double bytes) { return fmt::format("{:.3g}", (card.value() - rest.value()) / bytes / 1e9); };
  c.remark("N = 8", fmt::format("stage 1 (4 + 12/8) {} B | stage 2 (2 + 14/8) {} B | stage 3 (16/8) {} B", largest(5.5),
                                largest(3.75), largest(2)));
  c.remark("N = 64", fmt::format("stage 1 {} B | stage 2 {} B | stage 3 {} B", largest(4 + 12 / 64.0),
                                 largest(2 + 14 / 64.0), largest(16 / 64.0)));
  c.remark("choose",
           "fits: DDP, or stage 1, which sends no more. Does not fit: stage 2 without accumulation, else stage 3 or "
           "FSDP; beyond a node's links tensor and pipeline parallelism");
  c.beware("\"stage 2 costs no traffic\" holds without accumulation only (explain zero-traffic)");
  c.source("Rajbhandari et al. 2019 (1910.02054) table 1");
  c.next("shardplan estimate --model llama-3.1-8b --cluster dgx-h100 --gpus 8 --zero 2");
}

}  // namespace shardplan::explain
