// ZeRO, FSDP, context and sequence.
#include <fmt/format.h>

#include "describe.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/plan/saturate.hpp"

namespace shardplan::plan {
namespace {

constexpr std::int64_t longest_sequence = std::int64_t{1} << 28;

Words describe_stage(const Run& run) {
  const int stage = run.parallel.zero_stage;
  const FrameworkFacts& facts = facts_of(run.training.framework);
  const std::string_view framework = name(run.training.framework);
  if (facts.shards_by_fsdp()) {
    return {fmt::format("{}: {} shards by \"fsdp\", not by zero_stage", stage, framework),
            {set(Field::fsdp, stage == 3 ? R"("full_shard")" : R"("shard_grad_op")", Field::zero_stage, "null",
                 stage == 3 ? "ZeRO-3" : "nearly ZeRO-2"),
             set(Field::framework, R"("deepspeed")", Field::fsdp, "null")}};
  }
  if (facts.zero.highest == 0) {
    return {fmt::format("{}: {} keeps every state whole", stage, framework),
            {set(Field::framework, R"("deepspeed")"), set(Field::zero_stage, "null")}};
  }
  Words words{fmt::format("{}: {} has zero_stage 0 and 1 ({})", stage, framework, facts.zero.words),
              {set(Field::zero_stage, "1")}};
  if (facts.fsdp != FsdpKind::none) {
    words.ways.push_back(
        with(set(Field::fsdp, R"("full_shard")", Field::framework, fmt::format("\"{}\"", framework), "Megatron-FSDP"),
             Field::zero_stage, "null"));
  }
  words.ways.push_back(set(Field::framework, R"("deepspeed")"));
  return words;
}

/// ZeRO's stage beside FSDP, which the framework may have brought along.
Words describe_both(const Run& run) {
  const Parallel& parallel = run.parallel;
  const bool brought = facts_of(run.training.framework).shards_by_fsdp();
  const std::string sharding = parallel.fsdp == Fsdp::full_shard ? "shards all states, as ZeRO-3" : "";
  return {fmt::format("{}: zero_stage and fsdp \"{}\" exclude each other{}", parallel.zero_stage, name(parallel.fsdp),
                      brought ? "; framework fsdp shards by \"fsdp\"" : ""),
          {set(Field::zero_stage, "null",
               fmt::format("fsdp \"{}\"{}{}", name(parallel.fsdp), sharding.empty() ? " holds" : " ", sharding)),
           set(Field::fsdp, "null"), set(Field::framework, R"("deepspeed")", Field::fsdp, "null")}};
}

/// Contexts that all-to-all attention allows at this tensor size.
std::string context_choices(const Subject& subject) {
  std::vector<std::int64_t> legal;
  const std::int64_t heads = subject.facts.heads / subject.run.parallel.tensor;
  if (heads > 0) legal = divisors_near(heads, subject.run.parallel.context);
  return legal.empty() ? std::string() : fmt::format("context may be {}", join(legal));
}

Words describe_context(const Run& run) {
  const FrameworkFacts& facts = facts_of(run.training.framework);
  const Parallel& parallel = run.parallel;
  Words words{fmt::format("\"{}\" with context {}: {}'s {}", name(parallel.context_comm), parallel.context, facts.title,
                          facts.context_words)};
  for (std::size_t i = 0; i < names_of<ContextComm>.size(); ++i) {
    const auto comm = static_cast<ContextComm>(i);
    if (facts.context.has(comm)) words.ways.push_back(set(Field::context_comm, fmt::format("\"{}\"", name(comm))));
  }
  return words;
}

}  // namespace

Words describe_sharding(Rule rule, const Subject& subject) {
  const Run& run = subject.run;
  const Parallel& parallel = run.parallel;
  const Training& training = run.training;
  const std::string_view framework = name(training.framework);
  const bool all_to_all = parallel.context_comm == ContextComm::a2a;
  switch (rule) {
    case Rule::zero_and_fsdp: return describe_both(run);
    case Rule::zero_framework: return describe_stage(run);
    case Rule::fsdp_framework:
      return {fmt::format("\"{}\": {} does not shard by fsdp", name(parallel.fsdp), framework),
              {set(Field::framework, R"("fsdp")"), set(Field::zero_stage, "3", Field::fsdp, "null"),
               set(Field::framework, R"("megatron")")}};
    case Rule::zero_pipeline:
      return {fmt::format("{} with pipeline {}: DeepSpeed's pipeline engine takes zero_stage 0 and 1, for gradients "
                          "add up over the microbatches",
                          parallel.zero_stage, parallel.pipeline),
              {set(Field::zero_stage, "1"), set(Field::pipeline, "1")}};
    case Rule::zero_context:
      return {fmt::format("{} with context {}: {} shards over data alone and then reduces no gradients over context "
                          "ranks",
                          parallel.zero_stage, parallel.context, framework),
              {set(Field::zero_stage, "0"), set(Field::context, "1"), set(Field::framework, R"("megatron")")}};
    case Rule::grad_sync_zero:
      return {
          fmt::format("\"last\": DeepSpeed's zero_stage {} partitions gradients, so it reduces them every microbatch",
                      parallel.zero_stage),
          {set(Field::grad_sync, R"("every")"), set(Field::zero_stage, "1")}};
    case Rule::zeropp_stage:
      return {fmt::format("true: ZeRO++ is of framework deepspeed with zero_stage 3; this run is {} with {}", framework,
                          parallel.zero_stage),
              {{{{"/parallel/zeropp", "null"}}, ""}, set(Field::zero_stage, "3", Field::framework, R"("deepspeed")")}};
    case Rule::shard_group_unused:
      return {fmt::format("{} has no effect: only fsdp \"hybrid_shard\" and zeropp.hpz have shard groups",
                          parallel.shard_group),
              {set(Field::shard_group, "null"), set(Field::fsdp, R"("hybrid_shard")")}};
    case Rule::shard_group_divides: {
      const std::int64_t replicas = saturating_product({parallel.data, parallel.context});
      return {fmt::format("{} does not divide data {} x context {} = {} ({} do)", parallel.shard_group, parallel.data,
                          parallel.context, replicas, join(divisors_near(replicas, parallel.shard_group)))};
    }
    case Rule::context_framework: return describe_context(run);
    case Rule::context_heads:
      return {fmt::format("{}: all-to-all splits the heads over tensor {} x context {} = {}, which does not divide "
                          "num_attention_heads {}",
                          parallel.context, parallel.tensor, parallel.context,
                          saturating_product({parallel.tensor, parallel.context}), subject.facts.heads),
              say(context_choices(subject), {set(Field::context_comm, R"("ring")")})};
    case Rule::sequence_context: {
      const std::int64_t step = (all_to_all ? 1 : 2) * std::int64_t{parallel.context};
      return {fmt::format("{} is not a multiple of {}context {}{}", training.seq_length, all_to_all ? "" : "2 x ",
                          parallel.context, all_to_all ? "" : fmt::format(" = {}", step)),
              say(nearest_multiples(training.seq_length, step, longest_sequence))};
    }
    case Rule::sequence_tensor: {
      const std::int64_t step = saturating_product({parallel.context, parallel.tensor});
      return {fmt::format("{} is not a multiple of context {} x tensor {} = {}, as sequence_parallel needs it",
                          training.seq_length, parallel.context, parallel.tensor, step),
              say(nearest_multiples(training.seq_length, step, longest_sequence))};
    }
    case Rule::sequence_positions:
      return {fmt::format("{} is longer than the model's learned position table, max_position_embeddings {}",
                          training.seq_length, subject.facts.longest_sequence),
              {set(Field::seq_length, std::to_string(subject.facts.longest_sequence), "the most")}};
    default: return {};
  }
}

}  // namespace shardplan::plan
