// Terms of layers and ends: the estimate's own units, run with symbols.
#include <fmt/format.h>

#include <array>

#include "recorder.hpp"
#include "shardplan/plan/state_folds.hpp"
#include "term_builder.hpp"

namespace shardplan::explain {
namespace {

/// What collectives of one name send, forward and backward, under one address.
void add_sent(TermBuilder& builder, const UnitTerms& unit) {
  std::array<Sym, collective_count> sent;
  for (const LayerCollective<Sym>& call : unit.operators.collectives) {
    sent[static_cast<std::size_t>(call.name)] +=
        Sym(static_cast<double>(call.forward_calls + call.backward_calls)) * call.sent;
  }
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (sent[i].value() == 0) continue;
    const std::string_view word = name(static_cast<CollectiveName>(i));
    builder.add(word, fmt::format("{}.{}.sent", unit.path, word),
                fmt::format("{}: {} bytes sent by one GPU, forward and backward", unit.label, word), "B", sent[i],
                sources::ring);
  }
}

}  // namespace

UnitTerms& TermBuilder::note_unit(std::string path, std::string label, const Unit& unit, const UnitOf<Sym>& written) {
  UnitTerms out;
  out.path = std::move(path);
  out.label = std::move(label);
  out.unit = &unit;
  out.text = &written;
  out.forward = written.time.forward_s;
  out.backward = written.time.backward_s;
  out.recompute = written.time.recompute_s;
  out.gemm = written.time.gemm_s;
  out.attention = written.time.attention_s;
  out.exposed_forward = written.forward_exposed_s;
  out.exposed_backward = written.backward_exposed_s;
  for (std::size_t i = 0; i < collective_count; ++i) {
    out.collectives[i] = {written.collectives[i].time_s, written.collectives[i].exposed_s};
  }
  units.push_back(std::move(out));
  return units.back();
}

void TermBuilder::add_layers() {
  const Recorder trace(terms, run);
  const Model& model = run.model;
  fold_units(trace, run, text);
  fold_states_of_units(trace, run, text);
  const auto layer = [&](std::size_t kind, const Unit& unit, const UnitOf<Sym>& written, bool frozen,
                         const std::string& label) {
    UnitTerms& out = note_unit("layers." + label, fmt::format("a {} layer", label), unit, written);
    const LayerKind& of = model.kinds[kind];
    layer_operators(trace.symbols(symbols_for(run, of)), options_for(run, of, frozen), of, run.parallel.context,
                    run.parallel.expert_tensor, out.operators);
    add_sent(*this, out);
  };
  for (std::size_t i = 0; i < model.kinds.size(); ++i) {
    layer(i, w.kinds[i], text.kinds[i], false, layer_label(model, i));
  }
  if (!w.frozen_input.empty()) {
    const std::size_t first = model.layer_kinds.front();
    layer(first, w.frozen_input[first], text.frozen_input[first], true, "first");
  }
  for (std::size_t i = 0; i < w.not_recomputed.size(); ++i) {
    layer(i, w.not_recomputed[i], text.not_recomputed[i], false, layer_label(model, i) + "_left_alone");
  }
  terms.alias("operators", units.front().path + ".forward");
  note_unit("embedding", "the embedding", w.ends.embedding, text.ends.embedding);
  note_unit("final_norm", "the final norm", w.ends.final_norm, text.ends.final_norm);
  note_unit("head", "head and loss", w.ends.head, text.ends.head);
  if (trains_mtp(run)) note_unit("mtp", "multi-token prediction", w.ends.mtp, text.ends.mtp);
}

}  // namespace shardplan::explain
