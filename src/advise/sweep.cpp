#include "shardplan/advise/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shardplan/advise/trials.hpp"
#include "shardplan/core/threads.hpp"
#include "shardplan/io/run_variations.hpp"
#include "shardplan/plan/validate.hpp"

namespace shardplan::advise {
namespace {

using plan::Field;
using plan::PointStatus;
using plan::Sweep;

/// Estimates points, one after another, in buffers of its own.
class Worker {
 public:
  Worker(const io::RunInput& input, const io::CatalogSource& catalog, const SweepRules& rules, Sweep& sweep)
      : sweep_(sweep), rules_(rules), runs_(input, catalog) {}

  /// What the first of its points that break a rule say, by point.
  std::map<plan::Rule, std::pair<std::size_t, std::string>> broken;

  /// The problems of the point's values, if any.
  Diagnostics fill(std::size_t index) {
    plan::SweepPoint& point = sweep_.points[index];
    const std::vector<std::size_t> places = plan::places_of(sweep_, index);
    changes_.clear();
    for (std::size_t axis = 0; axis < places.size(); ++axis) {
      changes_.push_back({sweep_.axes[axis].pointer, sweep_.axes[axis].values[places[axis]], "--vary"});
    }
    runs_.read(changes_, variation_);
    if (!variation_.problems.empty()) return std::move(variation_.problems);
    if (rules_.gpus_follow) {
      const Parallel& parallel = variation_.draft.run.parallel;
      const std::int64_t gpus = std::int64_t{parallel.tensor} * parallel.pipeline * parallel.context * parallel.data;
      changes_.push_back({std::string(name(Field::num_gpus)), std::to_string(gpus), "--vary"});
      runs_.read(changes_, variation_);
      if (!variation_.problems.empty()) return std::move(variation_.problems);
    }
    if (rules_.keep_tokens && !keep_tokens(index)) return std::move(variation_.problems);
    if (variation_.broken.any()) {
      reject(index);
      return {};
    }
    const Estimate& estimate = trial_.estimate(variation_.run);
    point.status = estimate.fits ? PointStatus::fits : PointStatus::does_not_fit;
    point.capacity_bytes = estimate.capacity_bytes;
    point.headroom_bytes = estimate.headroom_bytes;
    point.figures.reserve(plan::result_fields().size());
    for (const plan::ResultField& field : plan::result_fields()) {
      point.figures.push_back(field.value(variation_.run, estimate));
    }
    return {};
  }

 private:
  /// The global batch that has the tokens of the run as it is; false where no whole number of sequences has.
  bool keep_tokens(std::size_t index) {
    if (tokens_ == 0) {
      io::Variation base;
      runs_.read({}, base);
      tokens_ = base.run.training.global_batch_size * base.run.training.seq_length;
    }
    const std::int64_t length = variation_.run.training.seq_length;
    if (tokens_ % length != 0) {
      reject(index, plan::Rule::batch_multiple,
             fmt::format("{} tokens of a step are not whole sequences of {}", tokens_, length));
      return false;
    }
    changes_.push_back({std::string(name(Field::global_batch_size)), std::to_string(tokens_ / length), "--keep"});
    runs_.read(changes_, variation_);
    return variation_.problems.empty();
  }

  void reject(std::size_t index, plan::Rule rule, std::string message) {
    plan::SweepPoint& point = sweep_.points[index];
    point.status = PointStatus::illegal;
    point.rule = rule;
    broken.emplace(rule, std::pair(index, std::move(message)));
  }

  void reject(std::size_t index) {
    std::size_t rule = 0;
    while (!variation_.broken[rule]) ++rule;
    const auto first = static_cast<plan::Rule>(rule);
    if (broken.count(first) > 0) return reject(index, first, {});
    const Diagnostic found = plan::describe(first, variation_.run, variation_.draft.layers_per_stage);
    reject(index, first, fmt::format("{}: {}", found.pointer, found.message));
  }

  Sweep& sweep_;
  const SweepRules& rules_;
  std::int64_t tokens_ = 0;
  io::RunVariations runs_;
  io::Variation variation_;
  std::vector<io::Override> changes_;
  Trial trial_;
};

/// A value that cannot be read is said once, however many points have it.
void add_new(Diagnostics& problems, Diagnostics of_point) {
  for (Diagnostic& problem : of_point) {
    const bool known = std::any_of(problems.begin(), problems.end(), [&](const Diagnostic& earlier) {
      return earlier.pointer == problem.pointer && earlier.message == problem.message;
    });
    if (!known) problems.push_back(std::move(problem));
  }
}

/// How many threads are worth their start: each reads the run for itself.
std::size_t threads_for(std::size_t points) {
  constexpr std::size_t least_points = 32;
  constexpr std::size_t most = 64;
  return std::clamp<std::size_t>(points / least_points, 1, cores(most));
}

using Workers = std::vector<std::unique_ptr<Worker>>;

/// Of what each worker says of a rule the point that comes first.
void gather_broken(const Workers& workers, Sweep& sweep) {
  std::map<plan::Rule, std::pair<std::size_t, std::string>> broken;
  for (const std::unique_ptr<Worker>& worker : workers) {
    for (auto& [rule, said] : worker->broken) {
      const auto [place, is_new] = broken.emplace(rule, said);
      if (!is_new && said.first < place->second.first) place->second = said;
    }
  }
  for (auto& [rule, said] : broken) sweep.broken.emplace(rule, std::move(said.second));
}

}  // namespace

Diagnostics estimate_points(const io::RunInput& input, const io::CatalogSource& catalog, const SweepRules& rules,
                            Sweep& sweep, const std::function<void(std::size_t)>& progress) {
  std::size_t count = 1;
  for (const plan::SweepAxis& axis : sweep.axes) count *= axis.values.size();
  sweep.points.assign(count, {});
  Workers workers;
  for (std::size_t i = 0; i < threads_for(count); ++i) {
    workers.push_back(std::make_unique<Worker>(input, catalog, rules, sweep));
  }
  Diagnostics problems;
  // Block by block, so that where it stops does not depend on the threads.
  constexpr std::size_t block = 1024;
  constexpr std::size_t most_problems = 20;
  for (std::size_t first = 0; first < count && problems.size() < most_problems; first += block) {
    std::vector<Diagnostics> found(std::min(count - first, block));
    share_out(workers.size(), found.size(), [&](std::size_t thread, std::size_t i) {
      found[i] = workers[thread]->fill(first + i);
      if (thread == 0 && progress) progress(first + i + 1);
    });
    for (Diagnostics& of_point : found) {
      if (problems.size() < most_problems) add_new(problems, std::move(of_point));
    }
  }
  gather_broken(workers, sweep);
  return problems;
}

}  // namespace shardplan::advise
