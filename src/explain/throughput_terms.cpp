// Terms of the model's parameters, of throughput and of the FLOP behind it: the estimate's own functions run with
// symbols.
#include "recorder.hpp"
#include "shardplan/plan/throughput_formulas.hpp"
#include "term_builder.hpp"

namespace shardplan::explain {

void TermBuilder::add_model() {
  using namespace throughput_names;
  const Recorder trace(terms, run);
  const ModelPartsOf<Sym> parts = model_parts(trace, run.model);
  const Recorder labelled = trace.in({}, "parameters");
  Sym all;
  for (std::size_t i = 0; i < part_count; ++i) all += labelled.figure(part(static_cast<Part>(i)), parts.parts[i]);
  const Sym own = trace.figure(parameters, all);
  const Sym unused = trace.step(idle, parts.idle);
  trace.figure(active, own - unused);
  const Sym low_rank = trace.figure(adapters, model_adapters(trace, run));
  trace.figure(trainable, run.training.peft.active() ? low_rank : own);
}

void TermBuilder::add_throughput() {
  Estimate numbers = estimate;
  fold_throughput(Recorder(terms, run), run, numbers);
}

}  // namespace shardplan::explain
