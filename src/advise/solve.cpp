#include "shardplan/advise/solve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "shardplan/advise/next_actions.hpp"
#include "shardplan/advise/trials.hpp"
#include "shardplan/plan/requirements.hpp"

namespace shardplan::advise {
namespace {

using plan::Field;
using plan::Holds;

/// Whether an estimate is beyond what growth can ever meet again: the card or the host is full, and the step too long
/// where it grows with the field (a short sequence's kernels wait for the host, so that there it may not).
bool is_too_much(const SolveField& field, const Requirements& require, const Estimate& estimate) {
  Requirements limits;
  limits.min_headroom_gib = require.min_headroom_gib;
  if (field.step_grows) limits.max_step_s = require.max_step_s;
  return !estimate.fits || !plan::meets(limits, estimate);
}

bool is_stopped(const std::atomic<bool>* stop) noexcept { return stop != nullptr && stop->load(); }

/// Reads the run with the field set, again and again.
class Values {
 public:
  Values(io::RunInput input, const SolveField& field, const SolveQuestion& question, const io::CatalogSource& catalog)
      : input_(std::move(input)), field_(field), stop_(question.stop), catalog_(catalog) {}

  io::ReadRun read(std::int64_t value) const {
    io::RunInput changed = input_;
    changed.overrides.push_back({field_.pointer, std::to_string(value), "solve"});
    return io::read_run(changed, catalog_);
  }

  Holds test(std::int64_t value) {
    if (is_stopped(stop_)) return Holds::no;
    io::ReadRun read = this->read(value);
    if (!read.ok()) {
      if (refused_.empty()) refused_ = std::move(read.problems);
      return Holds::illegal;
    }
    const Estimate& estimate = trial_.estimate(read.run);
    if (estimate.fits && plan::meets(read.run.require, estimate)) return Holds::yes;
    return is_too_much(field_, read.run.require, estimate) ? Holds::no : Holds::not_here;
  }

  /// Why the first illegal value is.
  const Diagnostics& refused() const noexcept { return refused_; }

 private:
  io::RunInput input_;
  const SolveField& field_;
  const std::atomic<bool>* stop_;
  const io::CatalogSource& catalog_;
  Trial trial_;
  Diagnostics refused_;
};

/// What was found of a run, and with which step.
struct Solved {
  plan::Solution solution;
  std::int64_t step = 1;
};

Solved solve_by(Values& tried, const SolveField& asked) {
  const bool monotone = asked.monotone && asked.largest;
  plan::SolveValues values = asked.values;
  if (!monotone && values.values.empty()) {
    constexpr std::int64_t most_scanned = 4096;
    while (values.count() > most_scanned) values.first = values.step *= 2;
  }
  Solved solved;
  solved.step = values.values.empty() ? values.step : 1;
  solved.solution = plan::solve(values, asked.largest, monotone, [&](std::int64_t value) { return tried.test(value); });
  return solved;
}

/// The field of a run, in the direction that is asked for.
SolveField asked_field(const SolveQuestion& question, const io::ReadRun& start) {
  const bool batch_stated = start.draft.given.has(Field::global_batch_size) || start.draft.microbatches > 0;
  SolveField field = solve_field(question.pointer, start.run, batch_stated);
  field.largest = question.largest.value_or(field.largest);
  return field;
}

/// The same question after a further change; nothing where it is no legal one.
std::optional<plan::Otherwise> solve_otherwise(const SolveQuestion& question, const plan::Change& change,
                                               const io::CatalogSource& catalog) {
  io::RunInput input = question.input;
  for (io::Override& more : io::typed_overrides_of(change)) input.overrides.push_back(std::move(more));
  const io::ReadRun start = io::read_run(input, catalog);
  if (start.run.model.kinds.empty()) return std::nullopt;
  const SolveField field = asked_field(question, start);
  Values values(std::move(input), field, question, catalog);
  return plan::Otherwise{plan::flags_of(change), solve_by(values, field).solution.value};
}

/// Changes worth knowing beside the answer: what recomputation gained, or with what a value holds where none does.
std::vector<plan::Otherwise> otherwise_of(const SolveQuestion& question, const plan::SolveAnswer& answer,
                                          const plan::Draft& draft, const io::CatalogSource& catalog) {
  std::vector<plan::Otherwise> list;
  if (answer.solution.value) {
    if (answer.run.training.recompute.mode == RecomputeMode::none || !answer.largest) return list;
    plan::Change change;
    change.set(Field::recompute, plan::recompute_words({}));
    if (auto other = solve_otherwise(question, change, catalog)) list.push_back(std::move(*other));
    return list;
  }
  for (const NextAction& action : next_actions(draft, answer.run, answer.estimate, catalog).list) {
    std::optional<plan::Otherwise> other = solve_otherwise(question, action.tried.change, catalog);
    if (other && other->value) list.push_back(std::move(*other));
  }
  return list;
}

/// Why no value is legal. To leave out what is solved for is no way out of it.
Diagnostics refused_values(Diagnostics problems) {
  constexpr std::string_view either = ", or ";
  for (Diagnostic& problem : problems) {
    std::string ways;
    std::string_view rest = problem.way_out;
    while (!rest.empty()) {
      const std::string_view way = rest.substr(0, rest.find(either));
      rest.remove_prefix(std::min(way.size() + either.size(), rest.size()));
      if (way.rfind("leave solve out", 0) == 0) continue;
      ways += fmt::format("{}{}", ways.empty() ? std::string_view() : either, way);
    }
    problem.way_out = ways;
  }
  return problems;
}

/// The run at the answer, and the one after it with what it breaks.
void estimate_answer(const Values& values, io::ReadRun read, plan::SolveAnswer& answer) {
  answer.run = std::move(read.run);
  answer.run_json = std::move(read.run_json);
  answer.warnings = std::move(read.warnings);
  Trial trial;
  answer.estimate = trial.estimate(answer.run);
  if (answer.solution.value && answer.solution.next) {
    answer.next_run = values.read(*answer.solution.next).run;
    answer.next_estimate = trial.estimate(*answer.next_run);
  }
  const bool of_next = answer.next_run.has_value();
  answer.why = plan::missed(of_next ? *answer.next_run : answer.run, of_next ? answer.next_estimate : answer.estimate);
}

}  // namespace

SolveResult solve(const SolveQuestion& question, const io::CatalogSource& catalog) {
  SolveResult result;
  // What the run is apart from the field: problems of the field itself, and those that follow from it, come and go with
  // its value.
  io::ReadRun start = io::read_run(question.input, catalog);
  const bool unreadable = start.draft.unusable.has(Field::model) || start.draft.unusable.has(Field::cluster) ||
                          (start.run_json.empty() && start.run.model.kinds.empty());
  if (unreadable) {
    result.problems = std::move(start.problems);
    return result;
  }
  const SolveField asked = asked_field(question, start);
  plan::SolveAnswer& answer = result.answer;
  answer.field = asked.pointer;
  answer.word = asked.word;
  answer.largest = asked.largest;
  answer.limit = asked.limit;
  answer.listed = !asked.values.values.empty();
  Values values(question.input, asked, question, catalog);
  const Solved solved = solve_by(values, asked);
  answer.step = solved.step;
  answer.solution = solved.solution;
  result.stopped = is_stopped(question.stop);
  if (result.stopped) return result;
  if (!answer.solution.value && !answer.solution.next) {
    if (!values.refused().empty()) {
      result.problems = refused_values(values.refused());
    } else {
      result.problems.push_back(usage_diagnostic(fmt::format("solve: {} has no value to try", asked.pointer)));
    }
    return result;
  }
  io::ReadRun read = values.read(answer.solution.value.value_or(answer.solution.next.value_or(0)));
  result.notes = read.notes;
  result.notes.erase(
      std::remove_if(result.notes.begin(), result.notes.end(),
                     [](const std::string& note) { return note.find("since solve") != std::string::npos; }),
      result.notes.end());
  const plan::Draft draft = read.draft;
  estimate_answer(values, std::move(read), answer);
  if (question.otherwise) answer.otherwise = otherwise_of(question, answer, draft, catalog);
  return result;
}

}  // namespace shardplan::advise
