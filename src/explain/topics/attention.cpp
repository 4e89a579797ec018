// Cards of FlashAttention.
#include <algorithm>

#include "topics.hpp"

namespace shardplan::explain {

void flash_attention(Card& c) {
  const Run& run = c.run();
  const AttentionShape& shape = run.model.layer(0).attention;
  const Sym N = c.symbol("N", "sequence", static_cast<double>(run.training.seq_length));
  const Sym d = c.symbol("d", "head size", static_cast<double>(shape.head_dim));
  const Sym a = c.symbol("a", "heads of a rank", std::max(1.0, static_cast<double>(shape.heads) / run.parallel.tensor));
  const Sym M = c.symbol("M", "elements of an SM's SRAM, 227 KiB / 2 B", 116224);
  const Sym bytes = 2.0 * a * pow(N, 2.0) * pow(d, 2.0) / M;
  const double eager = a.value() * (4 * 2 * N.value() * N.value() + 4 * 2 * N.value() * d.value());
  const double flop = 4 * N.value() * N.value() * d.value() * a.value();
  c.title("HBM traffic of one layer's forward, 16 bit, by the tiling's theorem");
  c.result(bytes, "B", fmt::format("{:.1f} MB", bytes.value() / 1e6), "2 B x a N^2 d^2 / M");
  c.note(fmt::format("eager: {:.0f} MB", eager / 1e6));
  c.remark("eager", "scores written, read for softmax, written, read for PV: four passes over a N^2, and q, k, v, o");
  c.remark("FLOP",
           fmt::format("the same {:.3g} ({:.3g} causal); FLOP/byte {:.0f} -> {:.0f}; the card needs {:.0f}", flop,
                       flop / 2, flop / eager, flop / bytes.value(),
                       run.cluster.gpu.peak(run.training.precision) / std::max(1.0, run.cluster.gpu.memory_bandwidth)));
  c.remark("memory",
           fmt::format("q, k, v, o and 4 B a row of log-sum-exp ({:.0f} KiB), not N^2 scores ({:.0f} MiB a copy)",
                       4 * N.value() * a.value() / 1024, 2 * a.value() * N.value() * N.value() / 1048576));
  c.beware(
      "O(N^2 d/M), often quoted, lacks a d. It is not fewer FLOP: backward computes scores again, so \"selective\" "
      "recomputation saves next to nothing");
  c.source("Dao et al. 2022 (2205.14135) theorem 2");
  c.next("shardplan estimate RUN.json --attention eager");
}

void flash_versions(Card& c) {
  const Sym share = c.symbol("u", "FlashAttention-2's best share of an A100", 0.73),
            peak = c.symbol("peak", "A100", 312e12, "FLOP/s");
  const Sym rate = share * peak;
  c.title("FLOP/s that the versions reach, forward, head size 128, long sequences");
  c.result(rate, "FLOP/s", fmt::format("{:.0f} TFLOP/s", rate.value() / 1e12), "73% of 312e12");
  c.remark("1", "tiles and online softmax; blocks over batch and heads: 25 to 40% of an A100");
  c.remark("2", "rescales once at the end, blocks over the sequence too, warps share out Q: 50 to 73%");
  c.remark("3", "Hopper: producer, consumer warps, TMA: 740 TFLOP/s in fp16, 75% of 989; fp8 near 1,200");
  c.remark("pingpong", "one warpgroup's softmax runs beside the other's products: exp has 3.9 TFLOP/s");
  c.beware("pingpong is not about bank conflicts. \"2x faster\" is against version 1");
  c.source("Dao 2023 (2307.08691); Shah et al. 2024 (2407.08608)");
  c.next("shardplan estimate RUN.json --attention flash-v3");
}

void online_softmax(Card& c) {
  const Sym m = c.symbol("m", "maximum of the first block (1, 2)", 2),
            l = c.symbol("l", "its sum, e^-1 + 1", std::exp(-1.0) + 1);
  const Sym x = c.symbol("x", "the next block's score", 3);
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
