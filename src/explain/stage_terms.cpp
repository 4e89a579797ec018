// Terms of layers, ends and stages: the estimate's own units and sums, run with symbols.
#include "recorder.hpp"
#include "shardplan/plan/build_units.hpp"
#include "shardplan/plan/stage_formulas.hpp"
#include "shardplan/plan/state_folds.hpp"
#include "term_builder.hpp"

namespace shardplan::explain {

void TermBuilder::add_layers() {
  const Recorder trace(terms, run);
  fold_units(trace, run, text);
  fold_states_of_units(trace, run, text);
  terms.alias("operators", "layers." + layer_label(run.model, 0) + ".forward");
}

void TermBuilder::add_stages() {
  const Recorder trace(terms, run);
  text.spec = w.spec;
  text.simulated = w.simulated;
  fold_chunks(trace, run, text);
  for (std::size_t rank = 0; rank < text.stages.size(); ++rank) {
    fold_stage_states(trace.at_stage(rank), run, text, rank);
  }
}

}  // namespace shardplan::explain
