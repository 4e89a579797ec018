// Tokens per second, and MFU in the conventions that people quote.
#include <cmath>

#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/physics/layer_inputs.hpp"
#include "shardplan/physics/parameters.hpp"
#include "shardplan/plan/workspace.hpp"

namespace shardplan {
namespace {

/// FLOP of one token through the whole model.
struct TokenFlop {
  double total = 0;  ///< matrix products forward and backward, scores in full, unpadded vocabulary
  double score = 0;
  double causal = 0;  ///< the same with the keys that a causal query sees
  double recompute = 0;
  double padding = 0;  ///< of the padded vocabulary rows
};

TokenFlop token_flop(const Run& run) noexcept {
  TokenFlop flop;
  const Model& model = run.model;
  const Training& training = run.training;
  const double s = static_cast<double>(training.seq_length);
  const Recompute& recompute = training.recompute;
  // full:N recomputes the first N layers of each chunk.
  double recomputed_layers = static_cast<double>(model.layers());
  if (recompute.mode == RecomputeMode::first_n) {
    recomputed_layers = 0;
    for (const int layers : run.parallel.layers_per_chunk) recomputed_layers += std::min(layers, recompute.n);
  }
  const double share = model.layers() > 0 ? recomputed_layers / static_cast<double>(model.layers()) : 0.0;
  for (std::size_t i = 0; i < model.kinds.size(); ++i) {
    double layers = 0;
    for (const std::uint8_t kind : model.layer_kinds) layers += kind == i ? 1 : 0;
    const LayerKind& kind = model.kinds[i];
    const Symbols<double> v = [&] {
      Symbols<double> symbols = whole_model_symbols(model, kind, s);
      symbols.r = training.peft.rank;
      return symbols;
    }();
    LayerOptions o = whole_model_options(model);
    o.base_trains = !training.peft.active();
    o.adapted = training.peft.active() ? training.peft.targets : 0;
    o.attention = training.attention;
    OperatorList<double> list;
    layer_operators(v, o, kind, 1, 1, list);
    const UnitFlop unit = fold_flop(list, recompute, recompute.of_layers());
    const double backward = unit.input_gradient + unit.weight_gradient;
    const double per_layer = (unit.forward + backward) / s;
    const double score = 3 * unit.score / s;
    flop.total += layers * per_layer;
    flop.score += layers * score;
    flop.causal += layers * (per_layer - score + score * v.keys_causal / v.keys);
    flop.recompute += layers * share * unit.recompute / s;
  }
  const LayerKind& any = model.kinds.front();
  Symbols<double> v = whole_model_symbols(model, any, s);
  OperatorList<double> ends;
  v.r = training.peft.rank;
  LayerOptions end_options = whole_model_options(model);
  end_options.adapted = training.peft.active() ? training.peft.targets : 0;
  head_operators(v, end_options, model, LossBytes{}, !training.peft.active(), false, ends);
  const UnitFlop head = fold_flop(ends, Recompute{}, false);
  const double head_flop = (head.forward + head.input_gradient + head.weight_gradient) / s;
  flop.total += head_flop;
  flop.causal += head_flop;
  const double vocabulary = static_cast<double>(model.vocab_size);
  flop.padding = head_flop * (static_cast<double>(run.padded_vocab()) / vocabulary - 1);
  if (model.mtp_layers > 0 && facts_of(training.framework).trains_mtp) {
    // Each multi-token-prediction module: one more block, a 2h x h projection, one more pass of the head.
    const LayerKind& last = model.layer(model.layers() - 1);
    OperatorList<double> block;
    const Symbols<double> vb = whole_model_symbols(model, last, s);
    layer_operators(vb, whole_model_options(model), last, 1, 1, block);
    const UnitFlop unit = fold_flop(block, Recompute{}, false);
    const double score = 3 * unit.score / s;
    const double layer = (unit.forward + unit.input_gradient + unit.weight_gradient) / s;
    const double times = static_cast<double>(model.mtp_layers);
    const double projection = 6 * 2 * vb.h * vb.h;
    flop.total += times * (layer + projection + head_flop);
    flop.causal += times * (layer - score + score * vb.keys_causal / vb.keys + projection + head_flop);
    flop.score += times * score;
  }
  return flop;
}

}  // namespace

void estimate_throughput(const Run& run, const EstimateWorkspace& w, Estimate& out) noexcept {
  (void)w;
  const TokenFlop flop = token_flop(run);
  ThroughputEstimate& t = out.throughput;
  t = ThroughputEstimate{};
  const double tokens =
      static_cast<double>(run.training.global_batch_size) * static_cast<double>(run.training.seq_length);
  const double step = out.time.step_s;
  t.model_flop_per_token = flop.total;
  t.score_flop_per_token = flop.score;
  t.peak_flop_per_s = run.cluster.gpu.peak(run.training.precision);
  if (step <= 0) return;
  t.tokens_per_s = tokens / step;
  t.tokens_per_s_per_gpu = t.tokens_per_s / run.num_gpus;
  t.samples_per_s = static_cast<double>(run.training.global_batch_size) / step;
  const double rate = t.tokens_per_s_per_gpu;
  t.model_flop_per_s_per_gpu = rate * flop.total;
  t.hardware_flop_per_s_per_gpu = rate * (flop.total + flop.padding + flop.recompute);
  if (t.peak_flop_per_s > 0) {
    t.mfu = t.model_flop_per_s_per_gpu / t.peak_flop_per_s;
    t.hfu = t.hardware_flop_per_s_per_gpu / t.peak_flop_per_s;
    t.mfu_causal = rate * flop.causal / t.peak_flop_per_s;
    t.mfu_6n = rate * 6 * static_cast<double>(out.model.active_parameters) / t.peak_flop_per_s;
  }
  t.gpu_hours_per_1e12_tokens = 1e12 / rate / 3600;
  t.has_price = run.cluster.has_price;
  t.price_per_1e12_tokens = run.cluster.has_price ? t.gpu_hours_per_1e12_tokens * run.cluster.price_per_gpu_hour : 0.0;
}

}  // namespace shardplan
