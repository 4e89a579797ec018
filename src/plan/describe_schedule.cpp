// Pipeline schedules, batches and microbatches.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "describe.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/plan/saturate.hpp"
#include "shardplan/schedule/legality.hpp"

namespace shardplan::plan {
namespace {

constexpr std::int64_t most_sequences = std::int64_t{1} << 30;

std::string schedules_of(Framework framework) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < names_of<ScheduleKind>.size(); ++i) {
    const auto kind = static_cast<ScheduleKind>(i);
    if (has_schedule(framework, kind)) words.emplace_back(name(kind));
  }
  return join_words(words, "or");
}

schedule::Shape shape_of(const Run& run, std::int64_t microbatches) {
  schedule::Shape shape;
  shape.kind = run.parallel.schedule;
  shape.p = run.parallel.pipeline;
  shape.v = run.parallel.virtual_pipeline;
  shape.m = static_cast<int>(std::min<std::int64_t>(microbatches, std::numeric_limits<int>::max()));
  return shape;
}

WayOut one_at_a_time() { return set(Field::schedule, R"("1f1b")"); }

Words describe_chunks(const Subject& subject) {
  const Parallel& parallel = subject.run.parallel;
  const std::string_view kind = name(parallel.schedule);
  const int v = parallel.virtual_pipeline;
  switch (schedule::facts_of(parallel.schedule).chunks) {
    case schedule::Chunks::several: {
      Words words{fmt::format("\"{}\" needs virtual_pipeline >= 2, it is {}", kind, v)};
      const std::int64_t layers = subject.facts.layers;
      if (layers > 0 && layers % parallel.pipeline == 0) {
        std::vector<std::int64_t> legal = divisors_near(layers / parallel.pipeline, 2);
        if (!legal.empty() && legal.front() == 1) legal.erase(legal.begin());
        if (!legal.empty()) {
          words.ways.push_back(
              set(Field::virtual_pipeline, std::to_string(legal.front()),
                  fmt::format("{} layers per stage allow {}", layers / parallel.pipeline, join(legal))));
        }
      }
      words.ways.push_back(one_at_a_time());
      return words;
    }
    case schedule::Chunks::two:
      return {fmt::format("\"{}\" needs virtual_pipeline 2, it is {}", kind, v),
              {set(Field::virtual_pipeline, "2"), one_at_a_time()}};
    default:
      return {fmt::format("\"{}\" has one chunk a stage, but virtual_pipeline is {}", kind, v),
              {set(Field::schedule, R"("interleaved")"), set(Field::virtual_pipeline, "1")}};
  }
}

Words describe_shape(const Subject& subject) {
  const Parallel& parallel = subject.run.parallel;
  const auto problem = schedule::check_schedule(shape_of(subject.run, 2 * std::int64_t{parallel.pipeline}));
  if (!problem || problem->field != schedule::ShapeField::p) return describe_chunks(subject);
  const std::string_view kind = name(parallel.schedule);
  if (schedule::facts_of(parallel.schedule).even) {
    return {fmt::format("\"{}\" needs an even number of stages, pipeline is {}", kind, parallel.pipeline),
            {set(Field::pipeline, std::to_string(std::max(2, parallel.pipeline - 1))),
             set(Field::pipeline, std::to_string(parallel.pipeline + 1)),
             set(Field::schedule, R"("dualpipe-v")", Field::virtual_pipeline, "2"), one_at_a_time()}};
  }
  return {fmt::format("\"{}\" needs pipeline >= 2, it is {}", kind, parallel.pipeline), {one_at_a_time()}};
}

/// What a schedule asks of the microbatches, in the run file's words.
std::string microbatch_rule(const Run& run) {
  const int p = run.parallel.pipeline;
  const schedule::ScheduleFacts& facts = schedule::facts_of(run.parallel.schedule);
  if (facts.least_microbatches > 0) {
    return fmt::format("{}at least {} x pipeline = {}", facts.even ? "an even number, " : "", facts.least_microbatches,
                       facts.least_microbatches * std::int64_t{p});
  }
  if (run.parallel.schedule == ScheduleKind::one_f_one_b) return fmt::format("at least pipeline - 1 = {}", p - 1);
  return facts_of(run.training.framework).pipeline.interleaves_in_rounds
             ? fmt::format("at least pipeline {}, cut into equal rounds", p)
             : fmt::format("a multiple of pipeline {}", p);
}

bool microbatches_fit(const Run& run, std::int64_t microbatches) {
  if (microbatches < 1) return false;
  schedule::Shape shape = shape_of(run, microbatches);
  if (schedule::facts_of(shape.kind).in_groups) {
    const int group = interleaved_group(run.training.framework, shape.p, microbatches);
    shape.group = group == shape.p ? 0 : group;
  }
  return schedule::is_legal(shape) && facts_of(run.training.framework).fills(shape.kind, shape.p, microbatches);
}

Words describe_microbatches(const Run& run) {
  const Training& training = run.training;
  const std::int64_t sequences = training.micro_batch_size * run.parallel.data;
  const std::int64_t microbatches = run.microbatches();
  Words words;
  words.message = fmt::format("{} gives {} microbatches (micro_batch_size {} x data {}), \"{}\" wants {}",
                              training.global_batch_size, microbatches, training.micro_batch_size, run.parallel.data,
                              name(run.parallel.schedule), microbatch_rule(run));
  std::vector<std::string> nearest;
  const std::int64_t reach = 4 * std::int64_t{run.parallel.pipeline} + 2;
  for (const std::int64_t direction : {-1, 1}) {
    for (std::int64_t step = 1; step <= reach; ++step) {
      const std::int64_t candidate = microbatches + direction * step;
      if (!microbatches_fit(run, candidate) || candidate * sequences > most_sequences) continue;
      nearest.push_back(fmt::format("{} ({})", candidate * sequences, candidate));
      break;
    }
  }
  if (!nearest.empty()) {
    words.ways = say("nearest: " + nearest.front() + (nearest.size() > 1 ? ", " + nearest[1] : ""));
  }
  return words;
}

}  // namespace

Words describe_schedule(Rule rule, const Subject& subject) {
  const Run& run = subject.run;
  const Parallel& parallel = run.parallel;
  const Training& training = run.training;
  switch (rule) {
    case Rule::virtual_alone:
      return {fmt::format("{} needs pipeline >= 2, it is {}", parallel.virtual_pipeline, parallel.pipeline),
              {set(Field::virtual_pipeline, "1"), set(Field::virtual_pipeline, "1", Field::schedule, R"("1f1b")")}};
    case Rule::virtual_framework:
      return {fmt::format("{}: {}'s pipeline engine has no virtual stages", parallel.virtual_pipeline,
                          facts_of(training.framework).title),
              {set(Field::virtual_pipeline, "1"), set(Field::framework, R"("megatron")")}};
    case Rule::schedule_framework:
      return {fmt::format("\"{}\": {} does not have it", name(parallel.schedule), name(training.framework)),
              say(schedules_of(training.framework), {set(Field::framework, R"("megatron")")})};
    case Rule::schedule_shape: return describe_shape(subject);
    case Rule::batch_multiple: {
      const std::int64_t step = saturating_product({training.micro_batch_size, parallel.data});
      return {fmt::format("{} is not a multiple of micro_batch_size {} x data {} = {}", training.global_batch_size,
                          training.micro_batch_size, parallel.data, step),
              say(nearest_multiples(training.global_batch_size, step, most_sequences))};
    }
    case Rule::schedule_microbatches: return describe_microbatches(run);
    case Rule::interleaved_two:
      return {"false: Megatron-LM interleaves two stages only with overlapped p2p",
              {set(Field::overlap_p2p, "true"), set(Field::pipeline, "4")}};
    default: return {};
  }
}

}  // namespace shardplan::plan
