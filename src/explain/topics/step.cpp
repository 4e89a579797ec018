// Cards of number formats, the optimizer's step, speed and size.
#include <algorithm>

#include "shardplan/core/number_format.hpp"
#include "states.hpp"

namespace shardplan::explain {

void number_formats_card(Card& c) {
  const Sym E = c.symbol("E", "exponent bits", 8), F = c.symbol("F", "fraction bits", 7);
  const Sym top = pow(Sym(2.0), E - 1.0) - 1.0;
  const Sym most = (2.0 - pow(Sym(2.0), Sym(0.0) - F)) * pow(Sym(2.0), top);
  const double step = std::pow(2.0, -F.value());
  c.title("bf16: one sign, eight exponent and seven fraction bits");
  c.result(most, "", fmt::format("max {:.2g}, step at 1.0 {:.5g}", most.value(), step), "(2 - 2^-F) 2^(2^(E-1)-1)");
  for (const NumberFormat& format : number_formats) {
    if (format.name == "bf16" || format.name == "tf32" || format.name == "fp4-e2m1") continue;
    c.remark(std::string(format.name),
             fmt::format("1-{}-{}: max {:.5g}, least {:.2g}, step at 1.0 {:.3g}", format.exponent_bits,
                         format.fraction_bits, format.max(), format.min_subnormal(), format.epsilon()));
  }
  c.beware(
      "the range is why bf16 needs no loss scaling; the step is why fp32 master weights stay: an update under 0.39% of "
      "a "
      "weight is rounded away");
  c.source("Kalamkar et al. 2019 (1905.12322); Micikevicius et al. 2022 (2209.05433); IEEE 754");
  c.next("shardplan list dtypes");
}

void loss_scaling(Card& c) {
  const Sym S = c.symbol("S", "loss scale, torch's first", 65536), F = c.symbol("F", "least exponent of fp16", 24);
  const Sym least = pow(Sym(2.0), Sym(0.0) - F) / S;
  c.title("least gradient that fp16 keeps when the loss is multiplied by S: g = (d(S L)/dw)/S");
  c.result(least, "", fmt::format("{:.1e}", least.value()), "2^-24 / S");
  c.note("fp16 only");
  c.remark("without", fmt::format("{:.1e}", std::pow(2.0, -F.value())));
  c.remark("dynamic", "x2 after 2,000 clean steps, /2 at inf or nan, whose step is skipped (torch.amp.GradScaler)");
  c.beware(
      "unscale, then clip, then step: clipping scaled gradients clips at S times the norm. A skipped step does not "
      "move the "
      "schedule; bf16 needs none of it");
  c.source("Micikevicius et al. 2017 (1710.03740) section 3.2; torch.amp GradScaler");
  c.next("shardplan estimate RUN.json --precision fp16");
}

void grad_accum(Card& c) {
  const Run& run = c.run();
  const Sym mbs = c.symbol("mbs", "sequences of a microbatch", static_cast<double>(run.training.micro_batch_size));
  const Sym m = c.symbol("m", "accumulated microbatches", static_cast<double>(run.microbatches()));
  const Sym D = c.symbol("D", "data-parallel ranks", run.parallel.data);
  const Sym gbs = mbs * m * D;
  const double tokens = gbs.value() * static_cast<double>(run.training.seq_length);
  c.title("sequences of one optimizer step");
  c.result(gbs, "", fmt::format("gbs {}", number(gbs.value())), "mbs x m x D");
  c.note(fmt::format("{} tokens", count(tokens)));
  c.remark("same as",
           "one large batch where the loss is a mean over tokens: with padding, mean per microbatch then mean is not");
  c.remark(
      "memory",
      "nothing but the gradient itself; time: a launch overhead a microbatch, fewer optimizer steps and reductions");
  c.beware(fmt::format(
      "times D, not times num_gpus: {} x {} x {} would say {}. Under ZeRO-2/3 it multiplies traffic by m; clip and "
      "schedule count optimizer steps, not microbatches",
      number(mbs.value()), number(m.value()), run.num_gpus, count(mbs.value() * m.value() * run.num_gpus)));
  c.source("Megatron-LM num_microbatches_calculator.py");
  c.next("shardplan estimate RUN.json --microbatches 64");
}

void grad_clipping(Card& c) {
  const Sym n = c.symbol("n", "norm over all parameters", 3.2), limit = c.symbol("c", "max_norm", 1);
  const Sym factor = min(Sym(1.0), limit / n);
  c.title("what every gradient is multiplied by");
  c.result(factor, "", "x " + fmt::format("{:.4g}", factor.value()), "min(1, c/|g|)");
  c.remark(
      "shards",
      fmt::format("|g|^2 is a sum over ranks: norms 2.4 and 2.12 on two shards make sqrt(5.76 + 4.49) = {:.2f}; one "
                  "number is all-reduced",
                  std::sqrt(2.4 * 2.4 + 2.12 * 2.12)));
  c.remark("direction", "stays: all gradients shrink alike. Clipping by value would bend it");
  c.beware(
      "|g| over ALL ranks, once, on the accumulated, unscaled gradient; weights that tensor parallelism replicates "
      "count once. "
      "Clipping each microbatch is another, smaller update");
  c.source("Pascanu et al. 2013 (1211.5063); Megatron-LM clip_grads.py");
  c.next("shardplan explain loss-scaling");
}

void loss_spike(Card& c) {
  const Sym n = c.symbol("n", "gradient norm at the spike", 40), usual = c.symbol("usual", "its median before", 0.8);
  const Sym ratio = n / usual;
  c.title("loss spike: how far the gradient norm is out, then what to check");
  c.result(ratio, "", fmt::format("{:.3g}x the usual norm", ratio.value()), "norm / median norm");
  c.remark("1 norm", fmt::format("over 10x: clipping at 1.0 scales by {:.3g}; not out: suspect data or evaluation",
                                 1 / n.value()));
  c.remark("2 scale", "fp16: falls step after step? Overflow: bf16, or a lower first scale");
  c.remark("3 data", "replay the batch alone: broken, repeated, overlong? Skip it");
  c.remark("4 stays", "gone in tens of steps: leave it; else back to a checkpoint, skip 200-500 batches");
  c.remark("5 rate", "longer warm-up, lower rate, beta2 0.95, z-loss or qk-norm against growing logits");
  c.beware(
      "a lower max_norm hides spikes that come from data, and a restart without skipping meets the batch again. A "
      "planner "
      "sees precision, scale and batch; it cannot see data");
  c.source("Chowdhery et al. 2022 (2204.02311) 5.1; Zhang et al. 2022 (2205.01068) 2.5");
  c.next("shardplan explain grad-clipping");
}

void throughput(Card& c) {
  const Run& run = c.run();
  const Sym gbs = c.symbol("gbs", "sequences of a step", static_cast<double>(run.training.global_batch_size));
  const Sym s = c.symbol("s", "tokens of a sequence", static_cast<double>(run.training.seq_length));
  const Sym step = c.symbol("step", "time of a step", c.estimate().time.step_s, "s");
  const Sym rate = gbs * s / step;
  c.title("tokens a second of the whole job");
  c.result(rate, "tokens/s", fmt::format("{:.0f}k tokens/s", rate.value() / 1e3), "gbs x s / step");
  c.remark("a GPU", fmt::format("{} tokens/s; {} GPU hours for 10^12 tokens", count(rate.value() / run.num_gpus),
                                count(1e12 / (rate.value() / run.num_gpus) / 3600)));
  c.beware(
      "padding and masked tokens count unless you leave them out; compare runs at one sequence length, or by FLOP");
  c.source("Narayanan et al. 2021 (2104.04473) section 5.1");
  c.next("shardplan estimate RUN.json --measured step_s=33");
}

void mfu(Card& c) {
  const Estimate& e = c.estimate();
  const Sym rate = c.symbol("rate", "tokens/s of a GPU", e.throughput.tokens_per_s_per_gpu);
  const Sym flop = c.symbol("FLOP", "of a token", e.throughput.model_flop_per_token);
  const Sym peak = c.symbol("peak", "dense rate", e.throughput.peak_flop_per_s, "FLOP/s");
  const Sym share = rate * flop / peak;
  c.title("model FLOP that the run needs over what the GPUs could compute");
  c.result(share, "fraction", percent(share.value()),
           fmt::format("tokens/s/GPU x FLOP/token / peak = {:.1f} x {:.2f}e9 / {:.1f}e12", rate.value(),
                       flop.value() / 1e9, peak.value() / 1e12));
  const double score = e.throughput.score_flop_per_token;
  c.remark("FLOP/token", fmt::format("6 x {:.2f}e9 (products) + {:.1f}e9 (scores in full)",
                                     (flop.value() - score) / 6e9, score / 1e9));
  c.remark("others", fmt::format("causal {} | 6N {} | HFU {} with recomputation", percent(e.throughput.mfu_causal),
                                 percent(e.throughput.mfu_6n), percent(e.throughput.hfu)));
  c.remark("levels",
           "40 to 55% is usual on A100 and H100, under 30% something binds: exchange, bubble, launch, recomputation");
  const double llama = 6 * 65285660672.0 * 380 / 312e12;
  c.beware(fmt::format(
      "LLaMA-65B at 380 tokens/s/GPU is 6 x 65.29e9 x 380 / 312e12 = {}, not 43%. A sparse peak halves it; long "
      "sequences raise it by scores that a causal kernel skips",
      percent(llama)));
  c.source("Chowdhery et al. 2022 (2204.02311) appendix B; peaks: shardplan list gpus");
  c.next("shardplan estimate RUN.json --measured tokens_per_s_per_gpu=900");
}

void peak_flops(Card& c) {
  const Sym sm = c.symbol("SM", "multiprocessors", 132),
            each = c.symbol("k", "dense bf16 FLOP of one and a clock", 4096),
            clock = c.symbol("clock", "boost", 1.83e9, "1/s");
  const Sym peak = sm * each * clock;
  c.title("the dense rate of an H100 SXM in bf16");
  c.result(peak, "FLOP/s", fmt::format("{:.1f} TFLOP/s", peak.value() / 1e12), "SMs x FLOP a clock x clock");
  const Gpu& gpu = c.run().cluster.gpu;
  c.remark("this GPU", fmt::format("{}: bf16 {:.1f}, fp8 {:.0f} TFLOP/s dense", gpu.name,
                                   gpu.peak(Precision::bf16) / 1e12, gpu.peak(Precision::fp8) / 1e12));
  c.remark("variants", "H100 PCIe and NVL, H800, H20 differ: fewer SMs or clocks, same name in a log");
  c.beware("a data sheet's 1,979 is with 2:4 sparsity, which training does not use: MFU against it is half");
  c.source("NVIDIA H100 Tensor Core GPU Architecture, 2022; shardplan list gpus");
  c.next("shardplan list gpus --vendor nvidia");
}

void gpu_count(Card& c) {
  const Sym P = c.symbol("P", "parameters", static_cast<double>(c.estimate().model.parameters));
  const Sym card = c.symbol("card", "bytes of a card", c.run().cluster.gpu.memory_cuda_bytes, "B");
  const StateRule rule;
  const StateSums<Sym> each = states_of(rule, widths_of<Sym>(rule), adam(), {1.0}, shared_by(1.0));
  const Sym gpus = ceil((each.parameters + each.gradients + each.optimizer) * P / card);
  const Estimate& e = c.estimate();
  c.title("cards that the states alone need, if nothing else did");
  c.result(gpus, "", number(gpus.value()) + " GPUs at least", "16 P / card, rounded up");
  c.remark("states", gb(16 * P.value()) +
                         fmt::format(" = 140 + 140 + 840 GB at 70e9; weights {}, gradients {}, master and moments {}",
                                     gb(2 * P.value()), gb(2 * P.value()), gb(12 * P.value())));
  c.remark("this run",
           fmt::format("{} GPUs, TP{} PP{} DP{}: {} of {} at the peak, {:.0f}k tokens/s, 10^12 tokens in {:.0f} days",
                       c.run().num_gpus, c.run().parallel.tensor, c.run().parallel.pipeline, c.run().parallel.data,
                       gib(static_cast<double>(e.peak_bytes), 1), gib(static_cast<double>(e.capacity_bytes), 1),
                       e.throughput.tokens_per_s / 1e3, 1e12 / e.throughput.tokens_per_s / 86400));
  c.beware(
      "memory gives the least number, the deadline the real one: days = 6 P tokens / (GPUs x peak x MFU). Then t up to "
      "a node, "
      "p until it fits, D from the rest");
  c.source("Rajbhandari et al. 2019 (1910.02054); Narayanan et al. 2021 (2104.04473) section 3");
  c.next("shardplan estimate --model llama-3.1-70b --cluster dgx-h100 --gpus 128 --tp 8 --pp 4");
}

}  // namespace shardplan::explain
