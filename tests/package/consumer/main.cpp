// The library from outside: what a run needs, what would make it fit, the best layout, why not another, and where a
// number comes from.
#include <iostream>

#include "shardplan/advise/fixes.hpp"
#include "shardplan/advise/search_answer.hpp"
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/explain/terms.hpp"
#include "shardplan/version.hpp"

int main() {
  using namespace shardplan;
  const io::CatalogSource& builtin = catalog::builtin_catalog();
  io::RunInput input = io::run_input_from_json(R"({"model": "llama-3.1-70b", "cluster": "dgx-h100", "num_gpus": 128,
      "parallel": {"tensor": 8, "pipeline": 4, "zero_stage": 1}, "training": {"global_batch_size": 1024}})");
  input.overrides.push_back({"/training/micro_batch_size", "8", "--mbs"});
  const io::ReadRun read = io::read_run(input, builtin);
  if (!read.ok()) return 1;
  EstimateWorkspace workspace;
  Estimate result;
  estimate(read.run, workspace, result);
  std::cout << "shardplan " SHARDPLAN_VERSION ": " << result.model.parameters << " parameters, "
            << (result.fits ? "fits" : "does not fit") << '\n';
  const auto terms = explain::terms_of(read.run, workspace, result);
  const explain::Explanation peak = explain::explain_term(*terms, *terms->find("memory.total@0"));
  std::cout << "peak = " << peak.formula << " = " << explain::value_text(peak.value, peak.unit) << '\n';
  const auto verdicts = plan::judge(read.run.require, result);
  const auto fix = advise::cheapest_fix(read.draft, read.run, result, verdicts, builtin, workspace).fix;
  if (fix) std::cout << "fix: " << plan::flags_of(fix->change) << '\n';

  advise::SearchExtras extras;
  extras.why_not = {"tp=2"};
  const auto question = advise::search_question(input, builtin);
  const auto answer = advise::search_answer(question, {}, extras, builtin);
  if (!answer.ok() || answer.value.best.empty()) return 1;
  const plan::SearchRow& best = answer.value.best.front();
  std::cout << "best: " << plan::flags_of(plan::change_between(layout_of(read.run), best.found.layout)) << '\n'
            << "tp=2: " << answer.value.asked.front().reason << '\n';
}
