// Terms of stages: which units a rank has, and what one microbatch keeps in each of its chunks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "term_builder.hpp"

namespace shardplan::explain {

namespace {

void add_times(StateElements<Sym>& sum, const StateElements<Sym>& unit, double count) {
  const auto add = [count](Sym& to, Sym from) { to += Sym(count) * from; };
  add(sum.trained, unit.trained);
  add(sum.narrow, unit.narrow);
  add(sum.frozen, unit.frozen);
  add(sum.quantized, unit.quantized);
  add(sum.quantized_rows, unit.quantized_rows);
  add(sum.adapters, unit.adapters);
  add(sum.counted, unit.counted);
  add(sum.counted_bytes, unit.counted_bytes);
  add(sum.treated, unit.treated);
  add(sum.adapter_counted, unit.adapter_counted);
  add(sum.adapter_counted_bytes, unit.adapter_counted_bytes);
  add(sum.unpaged_bytes, unit.unpaged_bytes);
  if (unit.largest_bytes > sum.largest_bytes) sum.largest_bytes = unit.largest_bytes;
}

}  // namespace

void TermBuilder::add_stages() {
  const Model& model = run.model;
  const Recompute& recompute = run.training.recompute;
  const auto unit_of = [&](const Unit* unit) -> const UnitTerms* {
    for (const UnitTerms& each : units) {
      if (each.unit == unit) return &each;
    }
    return nullptr;
  };
  const std::size_t per_rank = w.stages.empty() ? 1 : w.chunks.size() / w.stages.size();
  for (std::size_t rank = 0; rank < w.stages.size(); ++rank) {
    const int stage_number = static_cast<int>(rank);
    StageTerms stage;
    for (std::size_t c = 0; c < per_rank; ++c) {
      const Chunk& chunk = w.chunks[rank * per_rank + c];
      const std::string which = per_rank > 1 ? fmt::format(".chunk{}", c) : std::string();
      ChunkTerms out;
      const auto group = [&](const UnitTerms* unit, int count, Sym kept) {
        if (unit == nullptr) return;
        out.groups.push_back({unit, count, kept});
        out.kept += kept;
        add_times(stage.dense, unit->dense, count);
        add_times(stage.expert, unit->expert, count);
      };
      int layer = chunk.first_layer;
      const int end = chunk.first_layer + chunk.layers;
      while (layer < end) {
        const std::size_t kind = model.layer_kinds[static_cast<std::size_t>(layer)];
        const bool frozen = layer == 0 && !w.frozen_input.empty();
        const auto alone = [&](int i) {
          return recompute.mode == RecomputeMode::first_n && i - chunk.first_layer >= recompute.n;
        };
        int next = layer + 1;
        while (next < end && !frozen && model.layer_kinds[static_cast<std::size_t>(next)] == kind &&
               alone(next) == alone(layer)) {
          ++next;
        }
        const Unit& unit = frozen ? w.frozen_input[kind] : alone(layer) ? w.not_recomputed[kind] : w.kinds[kind];
        const UnitTerms* const terms_of_unit = unit_of(&unit);
        const Sym one = terms_of_unit == nullptr ? Sym() : terms_of_unit->kept;
        Sym kept = Sym(static_cast<double>(next - layer)) * one;
        if (recompute.mode == RecomputeMode::every_k && terms_of_unit != nullptr) {
          const int k = std::max(1, recompute.n);
          const int segments = (next - chunk.first_layer + k - 1) / k - (layer - chunk.first_layer + k - 1) / k;
          kept = Sym(static_cast<double>(segments)) * terms_of_unit->checkpoint;
        }
        group(terms_of_unit, next - layer, kept);
        layer = next;
      }
      if (chunk.has_embedding) {
        const UnitTerms* const unit = unit_of(&w.ends.embedding);
        group(unit, 1, unit->kept);
      }
      if (chunk.has_head) {
        if (const UnitTerms* const mtp = unit_of(&w.ends.mtp)) group(mtp, 1, mtp->kept);
        group(unit_of(&w.ends.final_norm), 1, Sym());
        group(unit_of(&w.ends.head), 1, Sym());
      }
      out.kept = add_checked("kept", at_stage("memory.activations.kept" + which, stage_number),
                             "what one microbatch keeps here, the loss apart", "B", out.kept, chunk.kept,
                             sources::korthikanti);
      const std::size_t index = rank * per_rank + c;
      const double live = w.simulated.peak_live[index];
      const double p = run.parallel.pipeline, m = static_cast<double>(run.microbatches());
      const bool plain = run.parallel.schedule == ScheduleKind::one_f_one_b && p > 1;
      Sym formula(live);
      if (plain && std::min(m, p - static_cast<double>(rank)) == live) {
        formula = min(terms.input("m", "microbatches of a step", m, sources::run_file),
                      terms.input("p", "pipeline stages", p, sources::run_file) - static_cast<double>(rank));
      }
      out.live = add("live", at_stage("memory.activations.live" + which, stage_number),
                     per_rank > 1 ? "microbatches in flight in this chunk when most is held" : "microbatches in flight",
                     "", formula, sources::simulated);
      stage.chunks.push_back(std::move(out));
    }
    stages.push_back(std::move(stage));
  }
}

}  // namespace shardplan::explain
