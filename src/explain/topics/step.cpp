// Cards of number formats, the optimizer's step, speed and size.
#include <algorithm>

#include "shardplan/core/number_format.hpp"
#include "states.hpp"

namespace shardplan::explain {

namespace {

/// The format that the word names; bf16 where it names none.
const NumberFormat& format_of(std::string_view word) {
  std::string asked;
  for (const char c : word)
    asked += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c == '_' || c == ' ' ? '-' : c;
  if (asked == "fp8") asked = "fp8-e4m3";
  const NumberFormat* format = std::find_if(number_formats.begin(), number_formats.end(),
                                            [&asked](const NumberFormat& each) { return each.name == asked; });
  if (format == number_formats.end()) {
    format = std::find_if(number_formats.begin(), number_formats.end(),
                          [](const NumberFormat& each) { return each.name == "bf16"; });
  }
  return *format;
}

std::string count_word(int bits) { return fmt::format("{} bit{}", bits, bits == 1 ? "" : "s"); }

}  // namespace

void number_formats_card(Card& c) {
  const NumberFormat& asked = format_of(c.word());
  if (asked.name != "bf16") c.out.topic = asked.name;
  c.numbers(std::string(asked.name));
  const Sym E = c.count("E", "exponent bits", asked.exponent_bits),
            F = c.count("F", "fraction bits", asked.fraction_bits);
  c.expect(E.value() <= 11, "E", "exponent bits are 1 to 11", "8 as fp32 has, 11 as fp64");
  c.expect(F.value() <= 52, "F", "fraction bits are 1 to 52", "23 as fp32 has, 52 as fp64");
  // fp8-e4m3 has no infinity: its top exponent holds numbers, all but the pattern of ones, which is nan.
  const bool finite = asked.name == "fp8-e4m3";
  const Sym two = 2.0;
  const Sym most = finite ? (2.0 - pow(two, 1.0 - F)) * pow(two, pow(two, E - 1.0))
                          : (2.0 - pow(two, Sym(0.0) - F)) * pow(two, pow(two, E - 1.0) - 1.0);
  const double step = std::pow(2.0, -F.value());
  c.title(fmt::format("{}: a sign, {} of exponent and {} of fraction", asked.name, count_word(asked.exponent_bits),
                      count_word(asked.fraction_bits)));
  const double bias = std::pow(2.0, E.value() - 1) - 1;
  c.result(most, "",
           fmt::format("max {:.5g}, least {:.1e}, step at 1.0 {:.5g}", most.value(),
                       std::pow(2.0, 1 - bias - F.value()), step),
           finite ? "(2 - 2^(1-F)) 2^(2^(E-1))" : "(2 - 2^-F) 2^(2^(E-1)-1)");
  for (const NumberFormat& format : number_formats) {
    if (format.name == asked.name || format.name == "tf32" || format.name == "fp4-e2m1") continue;
    c.remark(std::string(format.name),
             fmt::format("1-{}-{}: max {:.5g}, least {:.2g}, step at 1.0 {:.3g}{}", format.exponent_bits,
                         format.fraction_bits, format.max(), format.min_subnormal(), format.epsilon(),
                         format.name == "fp8-e4m3" ? "; no inf" : ""));
  }
  if (c.stated()) {
    const Training& training = c.run().training;
    c.remark("this run", fmt::format("computes in {}, stores weights in {}, gradients in {}{}",
                                     name(training.precision), name(training.param_dtype), name(training.grad_dtype),
                                     training.master_weights ? ", with an fp32 master copy" : ""));
  }
  c.beware(fmt::format(
      "bf16's range is fp32's, so it needs no loss scaling. Its step is why fp32 master weights stay: an update under "
      "half a step is rounded away, 0.39% of a weight just above a power of two, 0.20% just below the next"));
  c.source("Kalamkar et al. 2019 (1905.12322); Micikevicius et al. 2022 (2209.05433); IEEE 754");
  c.next("shardplan list dtypes");
}

void loss_scaling(Card& c) {
  c.numbers("fp16");
  const Sym S = c.symbol("S", "loss scale, torch's first", 65536, {}, Domain::positive),
            F = c.count("F", "least exponent of fp16", 24);
  const Sym least = pow(Sym(2.0), Sym(0.0) - F) / S;
  c.title("least gradient that fp16 keeps when the loss is multiplied by S: g = (d(S L)/dw)/S");
  c.result(least, "", fmt::format("{:.1e}", least.value()), "2^-24 / S");
  c.note("fp16 only");
  c.remark("without", fmt::format("{:.1e}", std::pow(2.0, -F.value())));
  c.remark("dynamic", "x2 after 2,000 clean steps, /2 at inf or nan, whose step is skipped (torch.amp.GradScaler)");
  if (c.stated()) {
    const Precision precision = c.run().training.precision;
    c.remark("this run",
             precision == Precision::fp16
                 ? std::string("computes in fp16: it needs loss scaling")
                 : fmt::format("computes in {}: it needs no loss scaling; the numbers are fp16's", name(precision)));
  }
  c.beware(
      "unscale, then clip, then step: clipping scaled gradients clips at S times the norm. At a skipped step "
      "Megatron-LM and DeepSpeed hold the schedule, torch's scheduler.step() moves it all the same");
  c.source("Micikevicius et al. 2017 (1710.03740) section 3.2; torch.amp GradScaler");
  c.next("shardplan explain fp16");
}

void grad_accum(Card& c) {
  const Run& run = c.run();
  const Sym mbs = c.count("mbs", "sequences of a microbatch", static_cast<double>(run.training.micro_batch_size));
  const Sym m = c.count("m", "accumulated microbatches", static_cast<double>(run.microbatches()));
  const Sym D = c.count("D", "data-parallel ranks", run.parallel.data);
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
  c.next(fmt::format("shardplan estimate RUN.json --microbatches {}", 2 * run.microbatches()));
}

void grad_clipping(Card& c) {
  const Sym n = c.symbol("n", "norm over all parameters", 3.2, {}, Domain::positive),
            limit = c.symbol("c", "max_norm", 1);
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
  const Sym n = c.symbol("n", "gradient norm at the spike", 40),
            usual = c.symbol("usual", "its median before", 0.8, {}, Domain::positive);
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
  const Sym gbs = c.count("gbs", "sequences of a step", static_cast<double>(run.training.global_batch_size));
  const Sym s = c.count("s", "tokens of a sequence", static_cast<double>(run.training.seq_length));
  const Sym step = c.symbol("step", "time of a step", c.estimate().time.step_s, "s", Domain::positive);
  const Sym rate = gbs * s / step;
  c.title("tokens a second of the whole job");
  c.result(rate, "tokens/s", rate_text(rate.value()) + " tokens/s", "gbs x s / step");
  c.remark("a GPU", fmt::format("{} tokens/s; {} GPU hours for 10^12 tokens", count(rate.value() / run.num_gpus),
                                count(1e12 / (rate.value() / run.num_gpus) / 3600)));
  c.beware(
      "padding and masked tokens count unless you leave them out; compare runs at one sequence length, or by FLOP");
  c.source("Narayanan et al. 2021 (2104.04473) section 5.1");
  c.next(fmt::format("shardplan estimate RUN.json --measured step_s={:.3g}", 1.05 * c.estimate().time.step_s));
}

void mfu(Card& c) {
  const Estimate& e = c.estimate();
  const Sym rate = c.symbol("rate", "tokens/s of a GPU", e.throughput.tokens_per_s_per_gpu);
  const Sym flop = c.symbol("FLOP", "of a token", e.throughput.model_flop_per_token);
  const Sym peak = c.symbol("peak", "dense rate", e.throughput.peak_flop_per_s, "FLOP/s", Domain::positive);
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
  c.next(fmt::format("shardplan estimate RUN.json --measured step_s={:.3g}", 1.05 * e.time.step_s));
}

void peak_flops(Card& c) {
  const Sym sm = c.count("SM", "multiprocessors", 132),
            each = c.symbol("k", "dense bf16 FLOP of one and a clock", 4096),
            clock = c.symbol("clock", "boost", 1.83e9, "1/s");
  const Sym peak = sm * each * clock;
  c.title("the dense rate of an H100 SXM in bf16");
  c.result(peak, "FLOP/s", fmt::format("{:.1f} TFLOP/s", peak.value() / 1e12), "SMs x FLOP a clock x clock");
  const Gpu& gpu = c.run().cluster.gpu;
  c.numbers("H100 SXM");
  const Precision precision = c.run().training.precision;
  const auto tera = [&gpu](Precision p) {
    return gpu.peak(p) > 0 ? fmt::format("{:.4g}", gpu.peak(p) / 1e12) : std::string("none");
  };
  c.remark(c.stated() ? "this run" : "this GPU",
           fmt::format("{}: bf16 {}, fp16 {}, fp8 {} TFLOP/s dense; counted in {}: {}", gpu.name, tera(Precision::bf16),
                       tera(Precision::fp16), tera(Precision::fp8), name(precision), tera(precision)));
  c.remark("variants", "H100 PCIe and NVL, H800, H20 differ: fewer SMs or clocks, same name in a log");
  c.beware("a data sheet's 1,979 is with 2:4 sparsity, which training does not use: MFU against it is half");
  c.source("NVIDIA H100 Tensor Core GPU Architecture, 2022; shardplan list gpus");
  c.next("shardplan list gpus --vendor nvidia");
}

void gpu_count(Card& c) {
  // 16 B a parameter, as everybody counts; a run's states are its own, uncut.
  const bool own = c.stated();
  const Estimate& e = c.estimate();
  const Run& run = c.run();
  const StateRule rule = own ? c.workspace().rule : StateRule{};
  const StateElements<Sym> elements =
      own ? whole_model(c) : StateElements<Sym>{c.symbol("P", "parameters", static_cast<double>(e.model.parameters))};
  const StateSums<Sym> sums = states_of(rule, own ? width_symbols(c, rule) : widths_of<Sym>(rule),
                                        own ? *c.workspace().optimizer : adam(), elements, shared_by(1.0));
  const Sym card =
      c.symbol("card", "bytes of a card", std::floor(run.cluster.gpu.memory_cuda_bytes), "B", Domain::positive);
  const Sym states = sums.parameters + sums.gradients + sums.optimizer;
  const Sym gpus = ceil(states / card);
  const bool adapted = own && run.training.peft.active();
  c.title("cards that the states alone need, if nothing else did");
  c.collected(gpus, "", fmt::format("{} GPU{} at least", number(gpus.value()), gpus.value() == 1 ? "" : "s"),
              own && adapted ? "states / card, rounded up"
                             : fmt::format("{:.4g} P / card, rounded up",
                                           states.value() / std::max(1.0, elements.trained.value())));
  c.remark("states", fmt::format("{}: weights {}, gradients {}, optimizer {}{}", gb(states.value()),
                                 gb(sums.parameters.value()), gb(sums.gradients.value()), gb(sums.optimizer.value()),
                                 own ? "" : "; 70e9: 140 + 140 + 840 = 1120 GB"));
  const Parallel& parallel = run.parallel;
  c.remark("this run",
           fmt::format("{} GPU{}, TP{} PP{} DP{}: {} of {} at the peak, {} tokens/s, 10^12 tokens in {:.0f} days",
                       run.num_gpus, run.num_gpus == 1 ? "" : "s", parallel.tensor, parallel.pipeline, parallel.data,
                       gib(static_cast<double>(e.peak_bytes), 1), gib(static_cast<double>(e.capacity_bytes), 1),
                       rate_text(e.throughput.tokens_per_s), 1e12 / e.throughput.tokens_per_s / 86400));
  c.beware(
      "memory gives the least number, the deadline the real one: days = 6 P tokens / (GPUs x peak x MFU). Then t up to "
      "a node, p until it fits, D from the rest");
  c.source("Rajbhandari et al. 2019 (1910.02054); Narayanan et al. 2021 (2104.04473) section 3");
  c.next("shardplan estimate RUN.json");
}

}  // namespace shardplan::explain
