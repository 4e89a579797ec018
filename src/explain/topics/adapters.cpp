// Cards of low-rank adapters and quantised bases.
#include <algorithm>
#include <array>

#include "shardplan/physics/layer.hpp"
#include "shardplan/physics/layer_inputs.hpp"
#include "shardplan/physics/parameters.hpp"
#include "states.hpp"

namespace shardplan::explain {
namespace {

double rank_of(Card& c) { return c.run().training.peft.active() ? c.run().training.peft.rank : 16; }
double alpha_of(Card& c) { return c.run().training.peft.active() ? c.run().training.peft.alpha : 32; }

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
  const Sym r = c.symbol("r", "rank", rank_of(c));
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
    trained += c.symbol("L" + tail, "layers",
                        static_cast<double>(std::count(model.layer_kinds.begin(), model.layer_kinds.end(), i))) *
               one;
  }
  c.title(peft.active() ? "the run's adapters: trained parameters" : "all linear matrices adapted: trained parameters");
  if (c.stated() && !peft.active()) c.remark("this run", "trains all its weights: adapters of rank r on them instead");
  c.collected(trained, "",
              fmt::format("{} trained ({})", count(trained.value()),
                          percent(trained.value() / (parameters + trained.value()), 2)),
              "sum over matrices of r (d_in + d_out)");
  c.remark("matrices", fmt::format("a layer, r = {}: {}", number(r.value()), matrices));
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
  const Sym alpha = c.symbol("alpha", "alpha", alpha_of(c)), r = c.symbol("r", "rank", rank_of(c));
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
  const Sym in = c.symbol("d_in", "columns", width), out = c.symbol("d_out", "rows", width),
            r = c.symbol("r", "rank", rank_of(c));
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

void qlora(Card& c) {
  const Sym bits = c.symbol("bits", "NF4", 4), block = c.symbol("block", "weights a constant", 64);
  const Sym second = c.symbol("second", "constants a second constant", 256);
  const Sym each = bits + 8.0 / block + 32.0 / (block * second);
  c.title("stored bits of a frozen 4-bit weight, double quantised");
  c.result(each, "bit", fmt::format("{:.3f} bit a weight", each.value()), "4 + 8/64 + 32/(64 x 256)");
  c.note("without double quantisation: 4.5");
  constexpr double weights = 6979321856;
  c.remark("8B", fmt::format("{} linear weights x {:.6f} B = {}; the rest stays 16 bit", count(weights),
                             each.value() / 8, gib(weights * each.value() / 8)));
  constexpr double linear65 = 64761102336, rest65 = 65285660672 - linear65;
  c.remark("65B", fmt::format("{} + {} of 16 bit on a 48 GB card; full fine-tuning 16 B x 65.3e9 = {}",
                              gib(linear65 * each.value() / 8, 1), gib(2 * rest65, 1), gb(16 * 65285660672.0)));
  c.remark("forward", "h = dequantise(W) x + (alpha/r) B A x, matrix by matrix; only A and B have gradients");
  c.beware(
      "no A100 has 48 GB; \"780 GB\" counts 12 B a parameter, 16 gives "
      "1,045 GB. 4 bits shrink weights, neither activations nor logits");
  c.source("Dettmers et al. 2023 (2305.14314) sections 3, 4");
  c.next("shardplan estimate configs/runs/llama-65b-qlora-1xa6000.json");
}

void nf4(Card& c) {
  const Sym bits = c.symbol("bits", "bits", 4);
  const Sym levels = pow(Sym(2.0), bits);
  const std::array<double, 16> nf = nf4_levels();
  std::string text;
  for (const double level : nf) text += fmt::format("{}{:.5f}", text.empty() ? "" : " ", level);
  c.title("NormalFloat: levels at quantiles of a normal distribution, so each is used equally often");
  c.result(levels, "", number(levels.value()) + " levels", "2^bits");
  if (bits.value() == 4) c.remark("levels", text);
  c.remark("block", "64 weights share a scale, their largest magnitude; stored: the nearest level of w/scale");
  c.remark("zero", "is exact: seven quantiles below, eight above");
  c.beware(
      "optimal for normal weights only: an outlier takes its block's resolution. It stores: products run in 16 bit");
  c.source("Dettmers et al. 2023 (2305.14314) section 3; bitsandbytes create_normal_map");
  c.next("shardplan explain qlora");
}

void double_quantisation(Card& c) {
  const Sym block = c.symbol("block", "weights a constant", 64),
            second = c.symbol("second", "constants a second one", 256);
  const Sym saved = 32.0 / block - (8.0 / block + 32.0 / (block * second));
  c.title("fp32 block constants are quantised to 8 bit with constants of their own");
  c.result(saved, "bit", fmt::format("{:.3f} bit a weight saved", saved.value()), "32/64 - (8/64 + 32/(64 x 256))");
  c.remark("65B", fmt::format("{} less", gib(64761102336.0 * saved.value() / 8)));
  c.beware("0.37 bit of 4.5: it matters for 65B on one card, hardly for 7B");
  c.source("Dettmers et al. 2023 (2305.14314) section 3");
  c.next("shardplan explain qlora");
}

void paged_optimizers(Card& c) {
  const bool own = c.stated();
  const StateRule& rule = c.workspace().rule;
  const Sym P = c.symbol("P", "trained parameters",
                         own ? static_cast<double>(c.estimate().model.trainable_parameters) : 41943040);
  const double width = c.run().training.peft.active() ? rule.adapter_moment_bytes : rule.moment_bytes;
  const Sym o = c.symbol("o", own ? "moments" : "Adam's fp32 moments", own ? width : 8, "B");
  const Sym bytes = P * o;
  c.title("states in CUDA unified memory: pages move to the host when the card is full");
  c.result(bytes, "B", gib(bytes.value()) + " can leave the card");
  c.remark(
      "cost",
      fmt::format("only what does not fit at the peak moves, both ways a step: {:.0f} ms over 25 GB/s if all of it",
                  2 * bytes.value() / 25e9 * 1e3));
  c.remark("small", "states of tensors under 1e5 elements are not paged (bitsandbytes)");
  c.beware(
      "it saves a run from a spike, not from a model that does not fit: with adapters the states are a few hundred "
      "MiB. It is "
      "not ZeRO-Offload: the update still runs on the GPU");
  c.source("Dettmers et al. 2023 (2305.14314) section 3; bitsandbytes optim/optimizer.py");
  c.next("shardplan estimate RUN.json --optimizer paged-adamw-8bit");
}

void lora_or_full(Card& c) {
  const bool own = c.stated();
  const double adapters = static_cast<double>(c.estimate().model.by_part.adapters);
  const Sym P =
      c.symbol("P", "parameters", own ? static_cast<double>(count_parameters(c.run().model).parameters) : 8030261248.0);
  const Sym A = c.symbol("A", "adapter parameters", own && adapters > 0 ? adapters : 41943040);
  if (own && adapters == 0) c.remark("this run", "has no adapters; A is that of Llama-3.1-8B at rank 16");
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
                       gb(P.value() * (6979321856 * 0.515869 / 8030261248 + 2 * (1 - 6979321856 / 8030261248.0)))));
  c.remark("time", "no weight gradient for frozen weights: 4 instead of 6 FLOP a parameter and token");
  c.remark("choose full", "continued pretraining, a new language; adapters are within 1 to 2% on most other tasks");
  c.beware("the saving is states: activations and logits stay, with lora_dropout they grow");
  c.source("Hu et al. 2021 (2106.09685); Biderman et al. 2024 (2405.09673)");
  c.next("shardplan estimate --model llama-3.1-8b --cluster server-1xh100 --gpus 1 --lora-rank 8");
}

}  // namespace shardplan::explain
