#include "shardplan/advise/search_answer.hpp"

#include <algorithm>

#include "shardplan/advise/search_reasons.hpp"
#include "shardplan/advise/trials.hpp"

namespace shardplan::advise {
namespace {

using plan::Field;

/// Whether a field is as the user gave it, and not filled in by search_question().
bool is_stated(const SearchQuestion& question, Field field) {
  return std::none_of(question.input.overrides.begin(), question.input.overrides.end(),
                      [&](const io::Override& o) { return o.pointer == name(field) && o.flag.empty(); });
}

/// What would help where nothing fits.
void add_ways(const SearchQuestion& question, const plan::SearchOptions& options, bool ways,
              plan::SearchReport& report) {
  if (!report.result.complete) return;
  if (report.result.counts.layouts == 0) report.refusals = refusals(question);
  if (ways) report.ways = ways_to_fit(question, options);
}

}  // namespace

plan::SearchRow stated_row(const SearchQuestion& question) {
  plan::SearchRow stated;
  stated.run = question.stated->run;
  stated.found.layout = layout_of(stated.run);
  stated.estimate = Trial().estimate(stated.run);
  return stated;
}

Result<plan::SearchReport> search_answer(const SearchQuestion& question, const plan::SearchOptions& options,
                                         const SearchExtras& extras, const io::CatalogSource& catalog) {
  Result<plan::SearchReport> answer;
  plan::SearchReport& report = answer.value;
  report.objective = options.objective;
  report.base = question.read.run;
  report.base.num_gpus = question.space.num_gpus.front();
  report.gpus_vary = question.gpus_vary;
  report.attention_varies = question.space.attention && question.space.attention->size() > 1;
  report.framework_stated = is_stated(question, Field::framework);
  report.batch_stated = is_stated(question, Field::global_batch_size);
  report.result = plan::search(question.base, question.read.run, question.space, options);
  for (const plan::Found& found : report.result.best) report.best.push_back(plan::row_of(question.base, found));
  for (const plan::Found& found : report.result.pareto) report.pareto.push_back(plan::row_of(question.base, found));
  if (report.result.nearest) report.nearest = plan::row_of(question.base, *report.result.nearest);
  const bool stopped = options.stop != nullptr && options.stop->load();
  if (report.best.empty()) {
    add_ways(question, options, extras.ways && !stopped, report);
    return answer;
  }
  constexpr std::size_t most_neighbours = 6;
  const plan::SearchRow& best = report.best.front();
  for (const std::string& fields : extras.why_not) {
    Result<plan::WhyNot> why = why_not(question, options, best, fields, catalog);
    answer.problems = std::move(why.problems);
    if (!answer.ok()) return answer;
    report.asked.push_back(std::move(why.value));
  }
  if (extras.neighbours && !stopped) report.neighbours = neighbours(question.base, best.found.layout, most_neighbours);
  if (extras.sensitivity && !stopped) report.sensitivity = sensitivity_of(question, options, best.found);
  return answer;
}

}  // namespace shardplan::advise
