// Cards of DDP: all-reduce, buckets, and what fits beside ZeRO.
#include <algorithm>

#include "shardplan/physics/collective.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "tensors.hpp"
#include "traffic.hpp"

namespace shardplan::explain {

void ddp(Card& c) {
  const bool own = c.stated();
  const Moved of = moved(c);
  if (!own) c.numbers("7B on 8 GPUs");
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
