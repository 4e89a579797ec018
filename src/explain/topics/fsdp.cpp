// Cards of FSDP: full and hybrid sharding, and how it differs from ZeRO-3.
#include <algorithm>

#include "shardplan/physics/parameters.hpp"
#include "states.hpp"
#include "traffic.hpp"

namespace shardplan::explain {

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

namespace {

/// Bytes of weights, gradients and states of the run's stage 0, or of so many fp32 parameters, on one of `shards`
/// ranks.
double sharded_states(Card& c, bool own, double parameters, double shards) {
  StateRule rule = own ? c.workspace().rule : StateRule{};
  StateElements<double> e;
  if (own) {
    const Weights& w = c.workspace().stages.front().weights.dense;
    e = {w.trained, {}, w.frozen, w.quantized, w.quantized_rows, w.adapters, w.counted, w.counted_bytes};
  } else {
    rule.parameter_bytes = rule.gradient_bytes = 4;
    rule.master_bytes = 0;
    e.trained = parameters;
  }
  StateSums<double> sums;
  add_states(rule, widths_of<double>(rule), own ? *c.workspace().optimizer : adam(), e,
             StateShards<double>{shards, shards, shards, shards}, sums);
  return sums.parameters + sums.gradients + sums.optimizer;
}

}  // namespace

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
  const auto held = [&](double shards) { return sharded_states(c, own, P.value(), shards); };
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

}  // namespace shardplan::explain
