#include "shardplan/advise/solve_field.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "shardplan/io/overrides.hpp"
#include "shardplan/io/suggest.hpp"
#include "shardplan/plan/fields.hpp"
#include "shardplan/plan/search_space.hpp"
#include "shardplan/schedule/shape.hpp"

namespace shardplan::advise {
namespace {

using plan::Field;

constexpr std::string_view layers_pointer = "/model/num_hidden_layers";
constexpr std::int64_t most_gpus = 65'536;

/// Every number of GPUs that a replica's ranks divide and that is whole nodes.
std::vector<std::int64_t> gpu_counts(const Run& run) {
  const Parallel& parallel = run.parallel;
  const std::int64_t replica =
      std::max<std::int64_t>(1, std::int64_t{parallel.tensor} * parallel.pipeline * parallel.context);
  const std::int64_t node = std::max(1, run.cluster.gpus_per_node);
  std::vector<std::int64_t> counts;
  for (std::int64_t gpus = replica; gpus <= most_gpus; gpus += replica) {
    if (gpus <= node || gpus % node == 0) counts.push_back(gpus);
  }
  return counts;
}

/// The microbatches that a schedule counts by.
std::int64_t microbatch_step(const Run& run) {
  const Parallel& parallel = run.parallel;
  if (parallel.schedule == ScheduleKind::interleaved) return std::max(1, parallel.pipeline);
  return parallel.schedule == ScheduleKind::dualpipe ? 2 : 1;
}

std::int64_t sequence_step(const Run& run) {
  constexpr std::int64_t coarse = 64;
  const Parallel& parallel = run.parallel;
  std::int64_t step = coarse;
  if (parallel.context > 1) step = std::lcm(step, std::int64_t{2} * parallel.context);
  if (parallel.sequence_parallel) step = std::lcm(step, std::int64_t{parallel.context} * parallel.tensor);
  return step;
}

std::vector<std::int64_t> micro_batches(const Run& run) {
  std::vector<std::int64_t> list;
  const std::int64_t sequences = std::max<std::int64_t>(1, run.training.global_batch_size / run.parallel.data);
  for (const int divisor : plan::divisors(sequences)) list.push_back(divisor);
  return list;
}

void set_range(SolveField& field, std::int64_t first, std::int64_t step, std::int64_t last) {
  field.values.first = first;
  field.values.step = step;
  field.values.last = last;
}

void set_known(const Run& run, bool batch_stated, SolveField& field) {
  const std::string& at = field.pointer;
  const Parallel& parallel = run.parallel;
  const auto is = [&](Field other) { return at == name(other); };
  if (is(Field::seq_length)) {
    const std::int64_t longest = run.model.max_position_embeddings;
    const std::int64_t step = sequence_step(run);
    constexpr std::int64_t most = std::int64_t{1} << 22;
    set_range(field, step, step, longest > 0 ? std::max(step, longest) : most);
    field.limit = longest > 0 ? fmt::format("max_position_embeddings {}", longest) : "2^22";
    field.monotone = true;
  } else if (is(Field::micro_batch_size)) {
    if (batch_stated) {
      field.values.values = micro_batches(run);
      field.limit = fmt::format("global_batch_size / data {}", field.values.values.back());
    } else {
      set_range(field, 1, 1, 65'536);
      field.monotone = true;
    }
  } else if (is(Field::global_batch_size)) {
    const std::int64_t step = run.training.micro_batch_size * parallel.data * microbatch_step(run);
    set_range(field, step, step, step * ((std::int64_t{1} << 20) / step + 1));
    field.monotone = field.step_grows = true;
  } else if (is(Field::num_gpus)) {
    field.values.values = gpu_counts(run);
    field.largest = false;
  } else if (at == layers_pointer) {
    const std::int64_t step = std::max(1, parallel.pipeline * parallel.virtual_pipeline);
    set_range(field, step, step, step * (4096 / step + 1));
    // Of offloaded activations two layers' share stays, which is less of each layer the more there are.
    field.monotone = field.step_grows = run.training.offload.activations == OffloadDevice::none;
  } else if (is(Field::peft_rank)) {
    set_range(field, 1, 1, std::max<std::int64_t>(1, run.model.hidden_size));
    field.limit = fmt::format("hidden_size {}", run.model.hidden_size);
    field.monotone = field.step_grows = true;
  } else if (is(Field::tensor) || is(Field::expert_tensor)) {
    for (const int d : plan::divisors(run.num_gpus)) {
      if (d <= run.cluster.scale_up_domain) field.values.values.push_back(d);
    }
    field.limit = fmt::format("scale_up_domain {}", run.cluster.scale_up_domain);
    field.largest = false;
  } else if (is(Field::pipeline) || is(Field::context) || is(Field::expert) || is(Field::data)) {
    for (const int d : plan::divisors(run.num_gpus)) field.values.values.push_back(d);
    field.largest = false;
  } else if (is(Field::zero_stage)) {
    field.values.values = {0, 1, 2, 3};
    field.largest = false;
  } else if (is(Field::virtual_pipeline)) {
    set_range(field, 1, 1, std::max<std::int64_t>(1, run.model.layers() / std::max(1, parallel.pipeline)));
  } else {
    set_range(field, 1, 1, 4096);
  }
  if (field.limit.empty()) field.limit = fmt::format("{}", field.values.at(field.values.count() - 1));
}

constexpr std::array numeric_fields = {
    Field::num_gpus,          Field::tensor,         Field::pipeline,      Field::virtual_pipeline,
    Field::context,           Field::expert,         Field::expert_tensor, Field::data,
    Field::zero_stage,        Field::shard_group,    Field::seq_length,    Field::micro_batch_size,
    Field::global_batch_size, Field::vocab_multiple, Field::peft_rank,     Field::activation_layers};

}  // namespace

std::optional<std::string> solve_pointer(std::string_view field) {
  if (field == "layers" || field == "num_hidden_layers") return std::string(layers_pointer);
  if (std::optional<std::string> pointer = io::field_pointer(field)) return pointer;
  for (const std::string_view pointer : names_of<Field>) {
    if (pointer.substr(pointer.rfind('/') + 1) == field) return std::string(pointer);
  }
  return std::nullopt;
}

std::vector<std::string_view> solve_words() {
  std::vector<std::string_view> words = {"layers"};
  for (const Field field : numeric_fields) {
    const std::string_view flag = io::flag_of(name(field));
    words.push_back(flag.empty() ? name(field).substr(name(field).rfind('/') + 1) : flag);
  }
  return words;
}

Diagnostics solve_field_problems(std::string_view word) {
  const std::optional<std::string> pointer = solve_pointer(word);
  if (!pointer) {
    return {
        usage_diagnostic(fmt::format("solve: unknown field \"{}\"{}", word, io::did_you_mean(word, io::field_words())),
                         "a field is seq_length, training.seq_length, /training/seq_length or a flag's name without "
                         "dashes")};
  }
  const bool known =
      std::any_of(numeric_fields.begin(), numeric_fields.end(), [&](Field field) { return name(field) == *pointer; });
  if (known || pointer->rfind("/model/", 0) == 0) return {};
  return {usage_diagnostic(fmt::format("solve: {} is not a whole number that can be solved for", *pointer),
                           fmt::format("a field of the model or one of {}", fmt::join(solve_words(), ", ")))};
}

SolveField solve_field(std::string_view pointer, const Run& run, bool batch_stated) {
  SolveField field;
  field.pointer = pointer;
  field.word = field.pointer.substr(field.pointer.rfind('/') + 1);
  set_known(run, batch_stated, field);
  return field;
}

}  // namespace shardplan::advise
