// Cards of low-rank adapters and quantised bases.
#include <algorithm>
#include <array>

#include "shardplan/physics/layer.hpp"
#include "shardplan/physics/layer_inputs.hpp"
#include "shardplan/physics/optimizer_states.hpp"
#include "shardplan/physics/parameters.hpp"
#include "states.hpp"
#include "tensors.hpp"

namespace shardplan::explain {
namespace {

double rank_of(Card& c) { return c.run().training.peft.active() ? c.run().training.peft.rank : 16; }
double alpha_of(Card& c) { return c.run().training.peft.active() ? c.run().training.peft.alpha : 32; }

/// Adapters as the run has them, or as it would have them on all linear matrices.
Peft adapters_of(Card& c) {
  Peft peft = c.run().training.peft;
  if (peft.active()) return peft;
  peft.method = PeftMethod::lora;
  peft.rank = 16;
  peft.targets = all_linear;
  return peft;
}

/// Says of a run without adapters that its numbers are an example's.
void adapters_are_an_example(Card& c) {
  if (!c.stated() || c.run().training.peft.active()) return;
  c.remark("this run", fmt::format("has no adapters; r = {} and alpha = {} are an example", number(rank_of(c)),
                                   number(alpha_of(c))));
}

/// Weights of the model that a quantised base stores narrow.
double quantized_weights(Card& c) {
  Run run = c.run();
  run.training.peft = adapters_of(c);
  run.training.peft.method = PeftMethod::qlora;
  if (run.training.peft.quant == Quantization::none) run.training.peft.quant = Quantization::nf4;
  EstimateWorkspace workspace;
  Estimate result;
  estimate(run, workspace, result);
  double sum = 0;
  for (const Stage& stage : workspace.stages) {
    sum += stage.weights.dense.quantized * run.parallel.tensor +
           stage.weights.expert.quantized * run.parallel.expert * run.parallel.expert_tensor;
  }
  return sum / copies_of_stages(run);
}

/// x with P(X <= x) = p for a standard normal X: Newton's method on the complementary error function.
double normal_quantile(double p) {
  double x = 0;
  for (int i = 0; i < 60; ++i) {
    const double below = 0.5 * std::erfc(-x / std::sqrt(2.0));
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0));
    x -= (below - p) / density;
  }
  return x;
}

/// The sixteen levels of NF4: eight quantiles above zero, zero, seven below, over the largest (bitsandbytes
/// functional.py, create_normal_map).
std::array<double, 16> nf4_levels() {
  constexpr double offset = 0.9677083;
  std::array<double, 16> levels{};
  for (int i = 0; i < 8; ++i)
    levels[static_cast<std::size_t>(15 - i)] = normal_quantile(offset + (0.5 - offset) * i / 8);
  for (int i = 0; i < 7; ++i) levels[static_cast<std::size_t>(i)] = -normal_quantile(offset + (0.5 - offset) * i / 7);
  const double most = levels.back();
  for (double& level : levels) level /= most;
  std::sort(levels.begin(), levels.end());
  return levels;
}

}  // namespace

void lora(Card& c) {
  const Model& model = c.run().model;
  const Peft& peft = c.run().training.peft;
  const double parameters = static_cast<double>(count_parameters(model).parameters);
  LayerOptions o = whole_model_options(model);
  o.base_trains = false;
  o.adapted = peft.active() ? peft.targets : all_linear;
  const Sym r = c.count("r", "rank", rank_of(c));
  Sym trained;
  std::string matrices;
  for (std::size_t i = 0; i < model.kinds.size(); ++i) {
    const LayerKind& kind = model.kinds[i];
    Symbols<Sym> v = c.layer(whole_model_symbols(model, kind, 1));
    v.r = r;
    OperatorList<Sym> list;
    layer_operators(v, o, kind, 1, 1, list);
    Sym one;
    for (const Operator<Sym>& op : list.operators) {
      one += op.adapter_parameters;
      if (i == 0 && op.adapter_parameters.value() > 0) {
        matrices += fmt::format("{}{} {}", matrices.empty() ? "" : ", ", op.name, count(op.adapter_parameters.value()));
      }
    }
    const std::string tail = i == 0 ? "" : fmt::format("_{}", i + 1);
    trained += c.count("L" + tail, "layers",
                       static_cast<double>(std::count(model.layer_kinds.begin(), model.layer_kinds.end(), i))) *
               one;
  }
  c.title(peft.active() ? "the run's adapters: trained parameters" : "all linear matrices adapted: trained parameters");
  if (c.stated() && !peft.active()) c.remark("this run", "trains all its weights: adapters of rank r on them instead");
  c.collected(trained, "",
              fmt::format("{} trained ({})", count(trained.value()),
                          percent(trained.value() / (parameters + trained.value()), 2)),
              "sum over matrices of r (d_in + d_out)");
  c.remark("matrices", fmt::format("a layer: {}", matrices));
  c.remark("rank", fmt::format("r = 8: {}, 64: {}; small tasks 8-16, code or many 32-64",
                               count(trained.value() / r.value() * 8), count(trained.value() / r.value() * 64)));
  c.remark("B = 0", "h = W0 x + (alpha/r) B A x is the base model at first; A is random, so that B learns");
  c.beware(fmt::format(
      "trained parameters shrink {:.0f}x, activations do not. The step scales with alpha/r = {:.4g}/{} = {:.4g}: "
      "doubling r halves it; rsLoRA alpha/sqrt(r) = {:.4g}",
      parameters / trained.value(), alpha_of(c), number(r.value()), alpha_of(c) / r.value(),
      alpha_of(c) / std::sqrt(r.value())));
  c.source("Hu et al. 2021 (2106.09685) section 4.1; Aghajanyan et al. 2020 (2012.13255)");
  c.next("shardplan estimate configs/runs/llama-3.1-8b-lora-1x4090.json --lora-rank 64");
}

void rslora(Card& c) {
  adapters_are_an_example(c);
  const Sym alpha = c.symbol("alpha", "alpha", alpha_of(c)), r = c.count("r", "rank", rank_of(c));
  const Sym scale = alpha / sqrt(r);
  c.title("rank-stabilised LoRA: what multiplies BAx");
  c.result(scale, "", fmt::format("{:.4g}", scale.value()), "alpha / sqrt(r)");
  c.remark("LoRA", fmt::format("alpha / r = {:.4g}", alpha.value() / r.value()));
  c.remark("r = 64",
           fmt::format("alpha/sqrt(r) {:.4g}, alpha/r {:.4g}: LoRA's update shrinks with the rank, so a higher rank "
                       "learns less unless alpha grows",
                       alpha.value() / 8, alpha.value() / 64));
  c.beware(
      "switching use_rslora on at the same alpha multiplies the update by sqrt(r): lower the learning rate or alpha. "
      "Memory "
      "is the same");
  c.source("Kalajdzievski 2023 (2312.03732)");
  c.next("shardplan explain lora --let r=64");
}

void dora(Card& c) {
  const double width = c.stated() ? static_cast<double>(c.run().model.hidden_size) : 4096;
  if (!c.stated()) c.numbers("a 4096 x 4096 matrix");
  adapters_are_an_example(c);
  const Sym in = c.count("d_in", "columns", width), out = c.count("d_out", "rows", width),
            r = c.count("r", "rank", rank_of(c));
  const Sym trained = r * (in + out) + out;
  c.title("W = m V/|V|: LoRA moves the direction V, one magnitude m a row is learned beside it");
  c.result(trained, "", count(trained.value()) + " a matrix", "r (d_in + d_out) + d_out");
  c.remark("LoRA", fmt::format("{}: {} more", count(r.value() * (in.value() + out.value())),
                               percent(out.value() / (r.value() * (in.value() + out.value())))));
  c.remark("activations",
           "the frozen product and the low-rank one are kept for the magnitude's gradient: 4 bytes an output "
           "element and token more");
  c.beware(
      "the parameters are few, the memory is not: besides those outputs PEFT writes out BA, its multiple and W + sBA "
      "to "
      "take the norm");
  c.source("Liu et al. 2024 (2402.09353) section 4; PEFT tuners/lora/dora.py");
  c.next("shardplan estimate configs/runs/llama-3.1-8b-lora-1x4090.json --set training.peft.method=dora");
}

namespace {

constexpr double linear65 = 64761102336, all65 = 65285660672;  // LLaMA-65B

/// Bits that a quantised weight is stored in.
struct StoredBits {
  Sym each;
  std::string_view formula;
};

StoredBits stored_bits(Card& c, Quantization quant, bool twice) {
  if (quant == Quantization::int8) {
    const Sym row =
        c.count("row", "weights of a row, which share an fp32 scale", static_cast<double>(c.run().model.hidden_size));
    return {8.0 + 32.0 / row, "8 + 32/row"};
  }
  const Sym bits = c.count("bits", quant == Quantization::gptq4 ? "GPTQ" : "NF4", 4);
  if (quant == Quantization::gptq4) {
    const Sym group = c.count("group", "weights that share a 16-bit scale and a 4-bit zero", 128);
    return {bits + 20.0 / group, "4 + 20/128"};
  }
  const Sym block = c.count("block", "weights a constant", 64);
  if (!twice) return {bits + 32.0 / block, "4 + 32/64"};
  const Sym second = c.count("second", "constants a second constant", 256);
  return {bits + 8.0 / block + 32.0 / (block * second), "4 + 8/64 + 32/(64 x 256)"};
}

}  // namespace

void qlora(Card& c) {
  const Run& run = c.run();
  const bool quantized = run.training.peft.active() && run.training.peft.quant != Quantization::none;
  const Quantization quant = quantized ? run.training.peft.quant : Quantization::nf4;
  const bool twice = !quantized || run.training.peft.double_quant;
  const StoredBits stored = stored_bits(c, quant, twice);
  const double each = stored.each.value();
  c.title("stored bits of a frozen, quantised weight");
  c.result(stored.each, "bit", fmt::format("{:.3f} bit a weight", each), std::string(stored.formula));
  c.note(quant != Quantization::nf4 ? std::string(name(quant))
         : twice                    ? "double quantised; without: 4.5"
                                    : "nf4; double quantised: 4.127");
  if (c.stated() && !quantized) c.remark("this run", "has no quantised base: the numbers are nf4's on its model");
  const double weights = quantized_weights(c);
  const double rest = static_cast<double>(count_parameters(run.model).parameters) - weights;
  c.remark(c.stated() ? "model" : "8B", fmt::format("{} linear weights x {:.6f} B = {}; the other {} stay 16 bit",
                                                    count(weights), each / 8, gib(weights * each / 8), gib(2 * rest)));
  if (!c.stated() || quant == Quantization::nf4) {
    c.remark("65B", fmt::format("{:.1f} + {} of 16 bit on a 48 GB card; full fine-tuning 16 B x 65.3e9 = {}",
                                linear65 * each / 8 / shardplan::gib, gib(2 * (all65 - linear65), 1), gb(16 * all65)));
  }
  c.remark("passes",
           "h = dequantise(W) x + (alpha/r) B A x; backward dequantises W again for the input's gradient, W^T dy. "
           "Only A and B get gradients of their own");
  c.beware(
      "no A100 has 48 GB; \"780 GB\" counts 12 B a parameter, 16 gives 1,045 GB. The base takes part in both passes. 4 "
      "bits shrink weights, neither activations nor logits");
  c.source("Dettmers et al. 2023 (2305.14314) sections 3, 4");
  c.next("shardplan estimate configs/runs/llama-65b-qlora-1xa6000.json");
}

void nf4(Card& c) {
  const Sym bits = c.count("bits", "bits", 4);
  c.expect(bits.value() <= 8, "bits", "a NormalFloat has at most 8 bits here", "4");
  const Sym levels = pow(Sym(2.0), bits);
  const std::array<double, 16> nf = nf4_levels();
  std::string text;
  for (const double level : nf) text += fmt::format("{}{:.5f}", text.empty() ? "" : " ", level);
  c.title("NormalFloat: levels at quantiles of a normal distribution, so each is used equally often");
  c.result(levels, "", number(levels.value()) + " levels", "2^bits");
  if (bits.value() == 4) c.remark("levels", text);
  c.remark("block", "64 weights share a scale, their largest magnitude; stored: the nearest level of w/scale");
  c.remark("zero", fmt::format("is exact: {} quantiles below, {} above", number(levels.value() / 2 - 1),
                               number(levels.value() / 2)));
  c.beware(
      "optimal for normal weights only: an outlier takes its block's resolution. It stores: products run in 16 bit");
  c.source("Dettmers et al. 2023 (2305.14314) section 3; bitsandbytes create_normal_map");
  c.next("shardplan explain qlora");
}

void double_quantisation(Card& c) {
  const Sym block = c.count("block", "weights a constant", 64),
            second = c.count("second", "constants a second one", 256);
  const Sym saved = 32.0 / block - (8.0 / block + 32.0 / (block * second));
  const Peft& peft = c.run().training.peft;
  c.title("fp32 block constants are quantised to 8 bit with constants of their own");
  c.result(saved, "bit", fmt::format("{:.3f} bit a weight saved", saved.value()), "32/64 - (8/64 + 32/(64 x 256))");
  c.remark(c.stated() ? "model" : "8B", fmt::format("{} less", gib(quantized_weights(c) * saved.value() / 8)));
  c.remark("65B", fmt::format("{} less", gib(linear65 * saved.value() / 8)));
  if (c.stated() && !(peft.active() && peft.quant == Quantization::nf4)) {
    c.remark("this run", "has no nf4 base: the numbers are those of one");
  } else if (c.stated() && !peft.double_quant) {
    c.remark("this run", "has it switched off: 4.5 bits a weight");
  }
  c.beware("0.37 bit of 4.5: it matters for 65B on one card, hardly for 7B");
  c.source("Dettmers et al. 2023 (2305.14314) section 3");
  c.next("shardplan explain qlora");
}

void paged_optimizers(Card& c) {
  Run run = c.run();
  run.training.offload.optimizer = OffloadDevice::none;
  const Optimizer& chosen = *c.workspace().optimizer;
  if (!c.stated() || !chosen.paged) {
    const bool narrow = c.stated() && chosen.block > 0;
    run.training.optimizer = narrow ? "paged-adamw-8bit" : "paged-adamw-32bit";
  }
  EstimateWorkspace workspace;
  Estimate result;
  estimate(run, workspace, result);
  const Stage& stage = workspace.stages.front();
  const double width = elementwise_bytes(*workspace.optimizer, 4);
  const Sym P = c.symbol("P", "parameters that train, in tensors of 1e5 elements and more",
                         std::round(stage.states.paged / width));
  const Sym o = c.symbol("o", "moments", width, "B");
  const Sym bytes = P * o;
  c.title("states in CUDA unified memory: pages move to the host when the card is full");
  c.result(bytes, "B", gib(bytes.value(), 3) + " can leave the card");
  c.note(run.training.optimizer);
  c.remark(
      "cost",
      fmt::format("only what does not fit at the peak moves, both ways a step: {:.0f} ms over 25 GB/s if all of it",
                  2 * bytes.value() / 25e9 * 1e3));
  c.remark("small", fmt::format("tensors under 1e5 elements stay: {} of {} lie in larger ones", count(P.value()),
                                count(stage.weights.trained())));
  if (c.stated() && !chosen.paged) {
    c.remark("this run", fmt::format("has {}, which is not paged: the numbers are those of {}",
                                     c.run().training.optimizer, run.training.optimizer));
  }
  c.beware(
      "saves from a spike, not a model that does not fit: with adapters states are a few hundred MiB. Not "
      "ZeRO-Offload: "
      "the update runs on the GPU");
  c.source("Dettmers et al. 2023 (2305.14314) section 3; bitsandbytes optim/optimizer.py");
  c.next("shardplan estimate configs/runs/llama-3.1-8b-lora-1x4090.json --optimizer paged-adamw-8bit");
}

void lora_or_full(Card& c) {
  const bool own = c.stated();
  const double adapters = static_cast<double>(c.estimate().model.by_part.adapters);
  const Sym P =
      c.symbol("P", "parameters", own ? static_cast<double>(count_parameters(c.run().model).parameters) : 8030261248.0);
  if (!own) c.numbers("Llama-3.1-8B");
  const Sym A = c.symbol("A", "adapter parameters",
                         own && adapters > 0 ? adapters : tensor_sizes(c.run().model, adapters_of(c)).elements());
  if (own && adapters == 0) c.remark("this run", "has no adapters; A is that of rank 16 on all linear matrices");
  const StateRule rule;
  const auto each = [&](Sym StateElements<Sym>::*kind) {
    StateElements<Sym> one;
    one.*kind = 1.0;
    const StateSums<Sym> sums = states_of(rule, widths_of<Sym>(rule), adam(), one, shared_by(1.0));
    return sums.parameters + sums.gradients + sums.optimizer;
  };
  const Sym full = each(&StateElements<Sym>::trained) * P;
  const Sym adapted = each(&StateElements<Sym>::frozen) * P + each(&StateElements<Sym>::adapters) * A;
  const Sym ratio = full / adapted;
  c.title("states of full fine-tuning over those of LoRA");
  c.result(ratio, "", fmt::format("{:.3g}x", ratio.value()), "16 P / (2 P + 16 A)");
  c.remark("full", gb(full.value()) + " of weights, gradients, master copy and moments");
  c.remark("LoRA",
           fmt::format("base {} + adapters {}; QLoRA's base about {}", gb(2 * P.value()), gb(16 * A.value()),
                       gb(0.515869 * quantized_weights(c) + 2 * std::max(0.0, P.value() - quantized_weights(c)))));
  c.remark("time", "no weight gradient for frozen weights: 4 instead of 6 FLOP a parameter and token");
  c.remark(
      "choose full",
      "continued pretraining, a new language, code and mathematics, where LoRA stays clearly behind and forgets less; "
      "many other tasks come within 1 to 2%");
  c.beware("the saving is states: activations and logits stay, with lora_dropout they grow");
  c.source("Hu et al. 2021 (2106.09685); Biderman et al. 2024 (2405.09673)");
  c.next("shardplan estimate --model llama-3.1-8b --cluster server-1xh100 --gpus 1 --lora-rank 8");
}

}  // namespace shardplan::explain
