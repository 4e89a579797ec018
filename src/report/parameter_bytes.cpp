// Where the bytes of a parameter come from.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "facts.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/physics/optimizers.hpp"

namespace shardplan::report {
namespace {

/// Over how many ranks a state is spread; 1 where experts and dense weights are spread differently.
int shards_of(const Run& run, State state) noexcept {
  const Parallel& parallel = run.parallel;
  if (run.model.has_experts() && parallel.expert_replicas() != parallel.dense_replicas()) return 1;
  const int all = parallel.dense_replicas();
  switch (parallel.fsdp) {
    case Fsdp::full_shard:
    case Fsdp::shard_grad_op: return all;
    case Fsdp::hybrid_shard: return parallel.shard_group;
    case Fsdp::no_shard: return 1;
    case Fsdp::none: break;
  }
  const int least_stage = state == State::parameters ? 3 : state == State::gradients ? 2 : 1;
  return parallel.zero_stage >= least_stage ? all : 1;
}

std::string trimmed(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

/// The bytes before sharding are a round number; padding leaves them a little above it.
bool is_round(double value) noexcept {
  const double nearest = std::round(value * 2) / 2;
  return nearest > 0 && std::abs(value - nearest) < 0.005 * nearest;
}

std::string optimizer_words(const Training& training) {
  const Optimizer* optimizer = find_optimizer(training.optimizer);
  const bool remainder = optimizer != nullptr && optimizer->master == MasterCopy::remainder;
  const bool half = optimizer != nullptr && optimizer->master == MasterCopy::fp16;
  std::string words =
      training.master_weights ? "fp32 master, " : std::string(name(training.optimizer_state_dtype)) + " ";
  if (training.master_weights && half) words = "fp16 master, ";
  if (training.master_weights && remainder && training.param_dtype == DType::bf16) {
    return fmt::format("master remainder, {} m, v", name(training.optimizer_state_dtype));
  }
  if (training.optimizer == "adam" || training.optimizer == "adamw") return words + "m, v";
  if (training.master_weights) return words + training.optimizer;
  return training.optimizer;
}

}  // namespace

std::string bytes_for_one(const Run& run, State state, std::int64_t bytes, std::int64_t parameters) {
  const double each = static_cast<double>(bytes) / static_cast<double>(std::max<std::int64_t>(parameters, 1));
  const int shards = shards_of(run, state);
  if (shards > 1 && is_round(each * shards)) {
    return fmt::format("{}/{}", trimmed(std::round(each * shards * 2) / 2), shards);
  }
  return trimmed(is_round(each) ? std::round(each * 2) / 2 : each);
}

std::string bytes_per_parameter(const Run& run, const Estimate& estimate) {
  const Training& training = run.training;
  const StageEstimate& stage = estimate.stages[static_cast<std::size_t>(estimate.peak_stage)];
  if (training.peft.active() || stage.parameters <= 0) return {};
  const double count = static_cast<double>(stage.parameters);
  const MemoryParts& parts = stage.peak();

  std::string terms;
  const auto add = [&](State state, std::int64_t bytes, std::string_view words) {
    if (bytes <= 0) return;
    terms +=
        fmt::format("{}{} {}", terms.empty() ? "" : " + ", bytes_for_one(run, state, bytes, stage.parameters), words);
  };
  const bool main_grad = facts_of(training.framework).calls_main_grad && training.grad_dtype == DType::fp32 &&
                         training.param_dtype != DType::fp32;
  add(State::parameters, parts.parameters, name(training.param_dtype));
  add(State::gradients, parts.gradients,
      fmt::format("{} {}", name(training.grad_dtype), main_grad ? "main grad" : "grad"));
  add(State::optimizer, parts.optimizer, optimizer_words(training));
  if (terms.empty()) return {};

  const double sum = static_cast<double>(parts.parameters + parts.gradients + parts.optimizer) / count;
  std::string total = trimmed(sum);
  if (total.find('.') == std::string::npos) total += ".0";
  std::string text = fmt::format("bytes per parameter: {} = {}", terms, total);
  const std::int64_t padding = estimate.model.padded_vocab_size - run.model.vocab_size;
  if (padding > 0) text += fmt::format(" (vocab padded +{})", padding);
  return text;
}

}  // namespace shardplan::report
