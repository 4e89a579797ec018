// Terms of layers and ends: what each operator keeps, holds, computes and sends, and their sums.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "shardplan/physics/timing.hpp"
#include "term_builder.hpp"

namespace shardplan::explain {
namespace {

/// Operators of one name (both blocks' collectives, say) under one address.
struct Sums {
  std::string name;
  Sym saved, kept, parameters, forward_flop, backward_flop, sent;
};

Sums& of_name(std::vector<Sums>& rows, std::string_view name) {
  for (Sums& row : rows) {
    if (row.name == name) return row;
  }
  rows.push_back({});
  rows.back().name = std::string(name);
  return rows.back();
}

std::vector<Sums> sums_of(const UnitTerms& unit, std::uint8_t modules) {
  std::vector<Sums> rows;
  for (const Operator<Sym>& op : unit.operators.operators) {
    Sums& row = of_name(rows, op.name);
    row.saved += op.saved;
    row.kept += kept_bytes(op, modules);
    row.parameters += op.parameters + op.adapter_parameters;
    row.forward_flop += op.forward_flop;
    row.backward_flop += op.input_gradient_flop + op.weight_gradient_flop;
  }
  for (const LayerCollective<Sym>& call : unit.operators.collectives) {
    Sums& row = of_name(rows, name(call.name));
    row.sent += Sym(static_cast<double>(call.forward_calls + call.backward_calls)) * call.sent;
  }
  return rows;
}

/// What optimizers count tensor by tensor stays a number.
void add_counted(TermBuilder& builder, const UnitTerms& unit, StateElements<Sym>& to, const Weights& numbers,
                 bool experts) {
  const std::string tail = experts ? "_experts" : "";
  const auto counted = [&](std::string_view symbol, std::string_view what, double value, std::string_view unit_name) {
    if (value == 0) return Sym(0.0);
    return builder.leaf(fmt::format("{}{}", symbol, tail), fmt::format("{}.{}{}", unit.path, symbol, tail),
                        fmt::format("{}: {}", unit.label, what), unit_name, value,
                        "the optimizer's states, tensor by tensor (list optimizers)");
  };
  to.counted = counted("counted", "elements counted tensor by tensor", numbers.counted, "");
  to.counted_bytes = counted("counted_bytes", "states counted tensor by tensor", numbers.counted_bytes, "B");
  to.treated = counted("treated", "elements of matrices of the optimizer", numbers.treated, "");
  to.adapter_counted = counted("adapter_counted", "adapter elements counted", numbers.adapter_counted, "");
  to.adapter_counted_bytes = counted("adapter_bytes", "adapter states counted", numbers.adapter_counted_bytes, "B");
  to.unpaged_bytes = counted("unpaged", "states too small to page", numbers.unpaged_bytes, "B");
  to.largest_bytes = counted("largest", "states of the largest matrix", numbers.largest_bytes, "B");
}

/// Elements of multi-token prediction: another layer's, and its projection with three vectors.
void add_mtp_elements(TermBuilder& builder, UnitTerms& mtp, const UnitTerms& layer, Sym modules, Sym projection,
                      std::string_view source) {
  for (const bool experts : {false, true}) {
    StateElements<Sym>& to = experts ? mtp.expert : mtp.dense;
    const StateElements<Sym>& from = experts ? layer.expert : layer.dense;
    const Weights& numbers = experts ? mtp.unit->weights.expert : mtp.unit->weights.dense;
    const std::string tail = experts ? "_experts" : "";
    const auto add = [&](std::string_view symbol, std::string_view what, Sym one, double value) {
      if (value == 0) return Sym(0.0);
      return builder.derived(fmt::format("{}{}", symbol, tail), fmt::format("mtp.{}{}", what, tail),
                             fmt::format("multi-token prediction: {} parameters on this rank", what), "", modules * one,
                             value, source);
    };
    to.trained = add("P", "trained", experts ? from.trained : from.trained + projection, numbers.trained);
    to.narrow = add("P_narrow", "narrow", from.narrow, numbers.narrow);
    to.frozen = add("P_frozen", "frozen", from.frozen, numbers.frozen);
    to.quantized = add("P_quantized", "quantized", from.quantized, numbers.quantized);
    to.quantized_rows = add("rows", "quantized_rows", from.quantized_rows, numbers.quantized_rows);
    to.adapters = add("P_adapters", "adapters", from.adapters, numbers.adapters);
    add_counted(builder, mtp, to, numbers, experts);
  }
}

/// Elements that states are counted of, as fold_weights sorts them.
void add_elements(TermBuilder& builder, UnitTerms& unit) {
  const auto named = [&](StateElements<Sym>& to, const Weights& numbers, bool experts) {
    Sym trained, narrow, frozen, quantized, rows, adapters;
    for (const Operator<Sym>& op : unit.operators.operators) {
      if ((op.shard == Shard::expert) != experts) continue;
      adapters += op.adapter_parameters;
      if (op.parameters.value() <= 0) continue;
      const Sym matrix = op.parameters - op.biases;
      if (op.trains) {
        trained += op.parameters;
        const bool part = op.part == Part::attention || op.part == Part::mlp || op.part == Part::experts;
        if (part && op.matrices.value() > 0) narrow += matrix;
      } else if (op.quantized && matrix.value() > 0) {
        quantized += matrix;
        rows += op.rows * op.matrices;
        frozen += op.biases;
      } else {
        frozen += op.parameters;
      }
    }
    const std::string tail = experts ? "_experts" : "";
    const auto add = [&](std::string_view symbol, std::string_view what, Sym formula, double value) {
      if (value == 0) return Sym(0.0);
      return builder.add_checked(
          fmt::format("{}{}", symbol, tail), fmt::format("{}.{}{}", unit.path, what, tail),
          fmt::format("{}: {} parameters on this rank{}", unit.label, what, experts ? ", of experts" : ""), "", formula,
          value, sources::operators_list);
    };
    to.trained = add("P", "trained", trained, numbers.trained);
    to.narrow = add("P_narrow", "narrow", narrow, numbers.narrow);
    to.frozen = add("P_frozen", "frozen", frozen, numbers.frozen);
    to.quantized = add("P_quantized", "quantized", quantized, numbers.quantized);
    to.quantized_rows = add("rows", "quantized_rows", rows, numbers.quantized_rows);
    to.adapters = add("P_adapters", "adapters", adapters, numbers.adapters);
    add_counted(builder, unit, to, numbers, experts);
  };
  named(unit.dense, unit.unit->weights.dense, false);
  named(unit.expert, unit.unit->weights.expert, true);
}

void add_unit(TermBuilder& builder, UnitTerms& unit, const Recompute& recompute, const Symbols<Sym>& v,
              double checkpoint_width) {
  const bool of_layers = recompute.of_layers();
  const std::uint8_t modules = of_layers ? std::uint8_t{0} : recomputed_modules(recompute);
  const std::vector<Sums> rows = sums_of(unit, modules);
  const auto path = [&](std::string_view op, std::string_view field) {
    return fmt::format("{}.{}.{}", unit.path, op, field);
  };
  Sym saved, kept;
  std::vector<std::string> saved_parts, kept_parts;
  for (const Sums& row : rows) {
    const auto one = [&](std::string_view field, std::string_view meaning, std::string_view unit_name, Sym formula,
                         std::string_view source) {
      if (formula.value() == 0) return;
      builder.add(row.name, path(row.name, field), fmt::format("{}: {} {}", unit.label, row.name, meaning), unit_name,
                  formula, source);
    };
    one("saved", "keeps for backward", "B", row.saved, sources::korthikanti);
    one("parameters", "parameters on this rank", "", row.parameters, sources::operators_list);
    one("forward_flop", "forward", "FLOP", row.forward_flop, sources::palm);
    one("backward_flop", "backward, both gradients", "FLOP", row.backward_flop, sources::palm);
    one("sent", "bytes sent by one GPU, forward and backward", "B", row.sent, sources::ring);
    saved += row.saved;
    kept += row.kept;
    if (row.saved.value() > 0) saved_parts.push_back(path(row.name, "saved"));
    if (row.kept.value() > 0) {
      if (row.kept.value() == row.saved.value()) {
        kept_parts.push_back(path(row.name, "saved"));
      } else {
        one("kept", "keeps under recomputation", "B", row.kept, sources::korthikanti);
        kept_parts.push_back(path(row.name, "kept"));
      }
    }
  }
  const SavedBytes& bytes = unit.unit->bytes;
  unit.saved = builder.add("saved", unit.path + ".saved", unit.label + " keeps for backward, one microbatch", "B",
                           saved, sources::korthikanti, saved_parts);
  if (checkpoint_width > 0) {
    unit.checkpoint = builder.add("checkpoint", unit.path + ".checkpoint", unit.label + "'s input", "B",
                                  Sym(checkpoint_width) * v.s * v.b / (v.c * v.t_sp) * v.h,
                                  "arXiv:1604.06174; arXiv:2205.05198 section 5");
  }
  switch (recompute.mode) {
    case RecomputeMode::full:
    case RecomputeMode::first_n:
    case RecomputeMode::every_k:
      kept = unit.checkpoint;
      kept_parts.clear();
      break;
    case RecomputeMode::ops:
      kept = Sym(bytes.kept);
      kept_parts.clear();
      break;
    default: break;
  }
  unit.kept = builder.add(
      "kept", unit.path + ".kept", unit.label + " keeps under the run's recomputation", "B", kept,
      recompute.mode == RecomputeMode::ops ? "torchtitan parallelize_llama.py, _save_list" : sources::korthikanti,
      kept_parts);
  add_elements(builder, unit);
}

}  // namespace

void TermBuilder::add_layers() {
  const Model& model = run.model;
  const Recompute& recompute = run.training.recompute;
  std::map<std::string, int> used;
  const auto layer = [&](std::size_t index, const Unit& unit, bool frozen, const Recompute& mode, std::string label) {
    const LayerKind& kind = model.kinds[index];
    units.push_back({});
    UnitTerms& out = units.back();
    out.path = "layers." + label;
    out.label = fmt::format("a {} layer", label);
    out.unit = &unit;
    const Symbols<double> numbers = symbols_for(run, kind);
    const Symbols<Sym> v = symbols(numbers, sources::config);
    const LayerOptions o = options_for(run, kind, frozen);
    layer_operators(v, o, kind, run.parallel.context, run.parallel.expert_tensor, out.operators);
    layer_operators(numbers, o, kind, run.parallel.context, run.parallel.expert_tensor, out.numbers);
    const double width =
        frozen && quantized_stream_is_fp32(run) ? bytes_of(activation_dtype(run.training.precision)) : numbers.w_r;
    const double causal = numbers.keys > 0 ? numbers.keys_causal / numbers.keys : 0.5;
    add_unit(*this, out, mode, v, width);
    add_layer_times(out, kind, mode.of_layers(), causal);
  };
  std::vector<std::string> labels;
  for (const LayerKind& kind : model.kinds) {
    const std::string word = kind.mlp.kind == MlpKind::moe ? "moe" : "dense";
    const int number = ++used[word];
    labels.push_back(number == 1 ? word : fmt::format("{}_{}", word, number));
  }
  for (std::size_t i = 0; i < model.kinds.size(); ++i) layer(i, w.kinds[i], false, recompute, labels[i]);
  if (!w.frozen_input.empty()) {
    layer(model.layer_kinds.front(), w.frozen_input[model.layer_kinds.front()], true, recompute, "first");
  }
  if (!w.not_recomputed.empty()) {
    for (std::size_t i = 0; i < model.kinds.size(); ++i) {
      layer(i, w.not_recomputed[i], false, Recompute{}, labels[i] + "_left_alone");
    }
  }

  terms.alias("operators", units.front().path + ".forward");

  const LayerKind& last = model.layer(model.layers() - 1);
  const Symbols<double> numbers = symbols_for(run, last);
  const Symbols<Sym> v = symbols(numbers, sources::config);
  LayerOptions o = options_for(run, last, false);
  o.autocast_copies = false;
  const bool trains = !run.training.peft.active();
  const LossBytes loss = loss_bytes_for(run);
  const auto end = [&](std::string path, std::string label, const Unit& unit, const auto& fill) {
    units.push_back({});
    UnitTerms& out = units.back();
    out.path = std::move(path);
    out.label = std::move(label);
    out.unit = &unit;
    fill(v, out.operators);
    fill(numbers, out.numbers);
    add_unit(*this, out, Recompute{}, v, 0);
    add_end_times(out, v, loss);
  };
  end("embedding", "the embedding", w.ends.embedding,
      [&](const auto& of, auto& list) { embedding_operators(of, o, model, trains, list); });
  end("final_norm", "the final norm", w.ends.final_norm,
      [&](const auto& of, auto& list) { final_norm_operators(of, o, model, list); });
  LayerOptions head_options = o;
  head_options.autocast_copies = autocast_over_fp32(run);
  end("head", "head and loss", w.ends.head, [&](const auto& of, auto& list) {
    head_operators(of, head_options, model, loss, trains, model.tied_embeddings && run.parallel.pipeline == 1, list);
  });
  if (w.ends.mtp.time.forward_s > 0) add_mtp();
}

/// Multi-token prediction: another of the last layer, the projection that joins hidden state and embedding, two norms,
/// another pass of the head. Its projection takes no time here.
void TermBuilder::add_mtp() {
  const UnitTerms* layer = nullptr;
  const UnitTerms* head = nullptr;
  for (const UnitTerms& each : units) {
    if (each.unit == &w.kinds[run.model.layer_kinds.back()]) layer = &each;
    if (each.unit == &w.ends.head) head = &each;
  }
  units.push_back({});
  UnitTerms& mtp = units.back();
  mtp.path = "mtp";
  mtp.label = "multi-token prediction";
  mtp.unit = &w.ends.mtp;
  const double times = static_cast<double>(run.model.mtp_layers);
  const Sym modules =
      times == 1 ? Sym(1.0) : terms.input("mtp_layers", "multi-token prediction modules", times, sources::config);
  constexpr std::string_view source = "DeepSeek-V3, arXiv:2412.19437 section 2.2: a block, a projection, a head's pass";
  const Symbols<Sym> v = symbols(symbols_for(run, run.model.layer(run.model.layers() - 1)), sources::config);
  const Sym hidden = v.w * (v.s * v.b / v.c) * v.h;
  const auto of_both = [&](std::string_view what, std::string_view unit, Sym formula, double value) {
    if (value == 0) return Sym(0.0);
    return derived(what.substr(0, what.find('.')), fmt::format("mtp.{}", what),
                   fmt::format("multi-token prediction: {}", what), unit, modules * formula, value, source);
  };
  const Sym norms_and_projection = 3.0 * hidden / v.t_sp;
  mtp.kept = of_both("kept", "B", layer->kept + norms_and_projection, w.ends.mtp.bytes.kept);
  mtp.saved = of_both("saved", "B", layer->saved + norms_and_projection, w.ends.mtp.bytes.saved);
  add_mtp_elements(*this, mtp, *layer, modules, 2.0 * v.h * v.h + 3.0 * v.h, source);
  const UnitTime& time = w.ends.mtp.time;
  mtp.forward = of_both("forward", "s", layer->forward + head->forward, time.forward_s);
  mtp.backward = of_both("backward", "s", layer->backward + head->backward, time.backward_s);
  mtp.recompute = of_both("recompute", "s", layer->recompute, time.recompute_s);
  mtp.gemm = of_both("gemm_time", "s", layer->gemm + head->gemm, time.gemm_s);
  mtp.attention = of_both("attention_time", "s", layer->attention, time.attention_s);
  mtp.exposed_forward =
      of_both("exposed_forward", "s", layer->exposed_forward + head->exposed_forward, w.ends.mtp.forward_exposed_s);
  mtp.exposed_backward =
      of_both("exposed_backward", "s", layer->exposed_backward + head->exposed_backward, w.ends.mtp.backward_exposed_s);
  for (std::size_t i = 0; i < collective_count; ++i) {
    const std::string_view word = name(static_cast<CollectiveName>(i));
    const CollectiveSum& exact = w.ends.mtp.collectives[i];
    mtp.collectives[i].time = of_both(fmt::format("{}.time", word), "s",
                                      layer->collectives[i].time + head->collectives[i].time, exact.time_s);
    mtp.collectives[i].exposed = of_both(fmt::format("{}.exposed", word), "s",
                                         layer->collectives[i].exposed + head->collectives[i].exposed, exact.exposed_s);
  }
}

}  // namespace shardplan::explain
