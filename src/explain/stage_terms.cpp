// Terms of stages: which units a rank has, and what one microbatch keeps in each of its chunks.
#include "recorder.hpp"
#include "shardplan/plan/stage_formulas.hpp"
#include "shardplan/plan/state_folds.hpp"
#include "term_builder.hpp"

namespace shardplan::explain {

void TermBuilder::add_stages() {
  const Recorder trace(terms, run);
  text.spec = w.spec;
  text.simulated = w.simulated;
  fold_chunks(trace, run, text);
  const std::size_t per_rank = static_cast<std::size_t>(schedule::chunks_per_rank(w.spec.shape));
  for (std::size_t rank = 0; rank < text.stages.size(); ++rank) {
    fold_stage_states(trace.at_stage(rank), run, text, rank);
    StageTerms stage;
    for (std::size_t c = rank * per_rank; c < (rank + 1) * per_rank; ++c) {
      ChunkTerms chunk;
      for (std::size_t i = 0; i < text.chunks[c].unit_runs; ++i) {
        const UnitRunOf<Sym>& row = text.unit_runs[text.chunks[c].first_unit_run + i];
        for (const UnitTerms& unit : units) {
          if (unit.text == row.unit) chunk.groups.push_back({&unit, row.count});
        }
      }
      stage.chunks.push_back(std::move(chunk));
    }
    stages.push_back(std::move(stage));
  }
}

}  // namespace shardplan::explain
