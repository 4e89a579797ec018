// Cards of FlashAttention.
#include <algorithm>

#include "topics.hpp"

namespace shardplan::explain {

void flash_attention(Card& c) {
  const Run& run = c.run();
  const AttentionShape& shape = run.model.layer(run.model.layers() - 1).attention;
  const auto of_rank = [&run](std::int64_t heads) {
    return std::max(1.0, static_cast<double>(heads) / run.parallel.tensor);
  };
  const Sym b = c.count("b", "microbatch", static_cast<double>(run.training.micro_batch_size));
  const Sym N = c.count("N", "sequence", static_cast<double>(run.training.seq_length));
  const Sym d = c.count("d", "head size", static_cast<double>(shape.head_dim));
  const Sym a = c.symbol("a", "query heads", of_rank(shape.heads), {}, Domain::positive);
  const Sym k = c.symbol("k", "key heads of a rank", of_rank(shape.kv_heads), {}, Domain::positive);
  const Sym M = c.symbol("M", "elements of SRAM (227 KiB)", 116224, {}, Domain::positive);
  const Sym once = 2.0 * b * (2.0 * (a + k) * N * d), again = 2.0 * b * (a * pow(N, 2.0) * pow(d, 2.0) / M);
  const Sym bytes = once + again;
  const double eager = b.value() * a.value() * (4 * 2 * N.value() * N.value() + 4 * 2 * N.value() * d.value());
  const double flop = 4 * b.value() * N.value() * N.value() * d.value() * a.value();
  c.title("HBM traffic of one layer's forward, 16 bit: q, k, v, o once, and what the tiling's theorem adds");
  c.result(bytes, "B", fmt::format("{:.1f} MB", bytes.value() / 1e6), "2 B x b (2 (a + k) N d + a N^2 d^2/M)");
  c.note(fmt::format("eager: {:.0f} MB", eager / 1e6));
  c.remark("parts",
           fmt::format("q, k, v, o once {:.1f} MB; re-reading by tiles {:.1f} MB (theorem's order, constant 1)",
                       once.value() / 1e6, again.value() / 1e6));
  c.remark("eager", "four passes over a N^2 scores, and q, k, v, o with k, v repeated to a heads");
  c.remark("FLOP",
           fmt::format("the same {:.3g} ({:.3g} causal); FLOP/byte {:.0f} -> {:.0f}; the card needs {:.0f}", flop,
                       flop / 2, flop / eager, flop / bytes.value(),
                       run.cluster.gpu.peak(run.training.precision) / std::max(1.0, run.cluster.gpu.memory_bandwidth)));
  c.remark("memory",
           fmt::format("q, k, v, o and 4 B a row of log-sum-exp ({:.0f} KiB), not N^2 scores ({:.0f} MiB a copy)",
                       4 * b.value() * N.value() * a.value() / 1024,
                       2 * b.value() * a.value() * N.value() * N.value() / 1048576));
  c.beware(
      "O(N^2 d/M), often quoted, lacks a d. It is not fewer FLOP: backward computes scores again, so \"selective\" "
      "recomputation saves next to nothing");
  c.source("Dao et al. 2022 (2205.14135) theorem 2");
  c.next("shardplan estimate RUN.json --attention eager");
}

void flash_versions(Card& c) {
  const Gpu& gpu = c.run().cluster.gpu;
  const bool own = c.stated();
  const bool hopper = own && gpu.major == 9;
  if (!own) c.numbers("an A100");
  const Sym share = c.symbol("u",
                             hopper ? "FlashAttention-3's best share of a Hopper GPU"
                             : own  ? "FlashAttention-2's best share of an A100"
                                    : "FlashAttention-2's best share",
                             hopper ? 0.75 : 0.73, {}, Domain::fraction),
            peak = c.symbol("peak", own ? gpu.name + " in bf16 or fp16" : "dense",
                            own ? std::max(gpu.peak(Precision::bf16), gpu.peak(Precision::fp16)) : 312e12, "FLOP/s");
  const Sym rate = share * peak;
  c.title("FLOP/s that the versions reach, forward, head size 128, long sequences");
  c.result(rate, "FLOP/s", fmt::format("{:.0f} TFLOP/s", rate.value() / 1e12),
           fmt::format("{:.0f}% of {:.4g}e12", 100 * share.value(), peak.value() / 1e12));
  c.remark("1", "tiles and online softmax; blocks over batch and heads: 25 to 40% of an A100");
  c.remark("2", "rescales at the end, blocks over the sequence, warps share Q: 50 to 73%; H100 35%");
  c.remark("3", "Hopper: producer, consumer warps, TMA: 740 TFLOP/s in fp16, 75% of 989; fp8 near 1,200");
  c.remark("pingpong", "one warpgroup's softmax runs beside the other's products: exp has 3.9 TFLOP/s");
  if (own) {
    c.remark("this run", fmt::format("attention {}{}", name(c.run().training.attention),
                                     c.run().training.attention == AttentionKernel::flash
                                         ? ": the framework's own, version 3 or cuDNN where it has them"
                                         : ""));
  }
  c.beware("pingpong is not about bank conflicts. \"2x faster\" is against version 1");
  c.source("Dao 2023 (2307.08691); Shah et al. 2024 (2407.08608)");
  c.next("shardplan estimate RUN.json --attention flash-v1");
}

void online_softmax(Card& c) {
  const Sym m = c.symbol("m", "maximum of the first block (1, 2)", 2, {}, Domain::any),
            l = c.symbol("l", "its sum, e^-1 + 1", std::exp(-1.0) + 1);
  const Sym x = c.symbol("x", "the next block's score", 3, {}, Domain::any);
  const Sym top = max(m, x);
  const Sym sum = l * exp(m - top) + exp(x - top);
  c.title("softmax of (1, 2, 3) in two blocks: the running sum after the second");
  c.result(sum, "", fmt::format("{:.4f}", sum.value()), "l e^(m - m') + e^(x - m')");
  c.remark("whole row", fmt::format("e^-2 + e^-1 + 1 = {:.4f}: the same", std::exp(-2.0) + std::exp(-1.0) + 1));
  c.remark("output", "is rescaled by the same factor, e^(m - m') = e^-1, and divided by l once, at the end");
  c.remark("weights", fmt::format("{:.4f} {:.4f} {:.4f}", std::exp(-2.0) / sum.value(), std::exp(-1.0) / sum.value(),
                                  1 / sum.value()));
  c.beware(
      "exact, not an approximation: each block corrects what came before by e^(m - m'). Only m + log l is kept for "
      "backward");
  c.source("Milakov, Gimelshein 2018 (1805.02867); Dao et al. 2022 (2205.14135) section 3.1");
  c.next("shardplan explain flash-attention");
}

}  // namespace shardplan::explain
