// The facts of every framework, as a table: a framework or a fact that is missing here fails.
#include <array>
#include <string>

#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/plan/legality.hpp"
#include "support/catch.hpp"

namespace {

using namespace shardplan;

/// One line a framework, in the order of Framework. Yes and no as the letters of `marks`, in the order below.
struct Row {
  const char* name;
  const char* family;
  const char* stack;
  int zero, zero_with_pipeline;
  FsdpKind fsdp;
  StateRounding rounding;
  StateDefaults defaults;
  Fp32Gradients gradients;
  StepTransient step;
  Fp8Gather fp8;
  std::int64_t vocabulary;
  const char* schedules;
  const char* context;
  const char* offload;  ///< stages from which the optimizer goes to cpu, nvme, parameters to cpu, nvme; fraction
  ActivationOffload activations;
  const char* marks;
};

constexpr const char* all_schedules = "naive gpipe 1f1b interleaved bfs zb-h1 zb-h2 zb-v dualpipe dualpipe-v ";
constexpr const char* all_comms = "ring all_gather a2a ";

const Row rows[] = {
    {"textbook", "textbook", "framework-textbook", 3, 3, FsdpKind::none, StateRounding::bytes, StateDefaults::mixed,
     Fp32Gradients::never, StepTransient::none, Fp8Gather::none, 1, all_schedules, all_comms, "0 0 0 0 0",
     ActivationOffload::free,
     "any_stack model_parallel virtual modules per_operator quantised adapters experts kv blocks balanced zero_context "
     "scatters "},
    {"megatron", "megatron", "framework-megatron", 1, 1, FsdpKind::megatron, StateRounding::stage, StateDefaults::mixed,
     Fp32Gradients::always, StepTransient::matrices, Fp8Gather::sharded_optimizer, 128, all_schedules, all_comms,
     "1 - - - 0", ActivationOffload::one_stage_plain,
     "overheads model_parallel virtual modules adapters experts kv blocks balanced zero_context scatters main_grad "
     "padded matrices te mtp sp moe_sp "
     "tp_overlap tp_overlap_sp gather_tied two_overlap scatter_send aligned "},
    {"deepspeed", "deepspeed", "framework-deepspeed", 3, 1, FsdpKind::none, StateRounding::unit, StateDefaults::mixed,
     Fp32Gradients::stage_zero, StepTransient::fp32_partition, Fp8Gather::none, 1, "1f1b ", "a2a ", "1 3 3 3 3",
     ActivationOffload::checkpoints,
     "overheads adapters experts kv blocks balanced zero_context scatters pools zeropp follow "},
    {"fsdp", "fsdp", "framework-fsdp", 0, 0, FsdpKind::torch, StateRounding::unit, StateDefaults::stored,
     Fp32Gradients::never, StepTransient::torch, Fp8Gather::tensorwise, 1,
     "naive gpipe 1f1b interleaved bfs zb-v dualpipe-v ", all_comms, "0 - 0 - -", ActivationOffload::free,
     "overheads virtual modules per_operator adapters experts kv zero_context scatters gathers16 rounds together "
     "follow "},
    {"ddp", "fsdp", "framework-ddp", 0, 0, FsdpKind::none, StateRounding::unit, StateDefaults::stored,
     Fp32Gradients::never, StepTransient::torch, Fp8Gather::none, 1, "", "", "- - - - -", ActivationOffload::free,
     "overheads data_only per_operator adapters experts kv blocks balanced zero_context scatters autocast buckets "},
    {"dp", "fsdp", "framework-dp", 0, 0, FsdpKind::none, StateRounding::unit, StateDefaults::stored,
     Fp32Gradients::never, StepTransient::torch, Fp8Gather::none, 1, "", "", "- - - - -", ActivationOffload::free,
     "overheads data_only single per_operator adapters experts kv blocks balanced zero_context scatters autocast "},
    {"nanotron", "nanotron", "nanotron-2025", 1, 1, FsdpKind::none, StateRounding::unit, StateDefaults::mixed,
     Fp32Gradients::always, StepTransient::torch, Fp8Gather::none, 1, "gpipe 1f1b ", "all_gather ", "- - - - -",
     ActivationOffload::none,
     "overheads model_parallel layers_alone blocks buckets apart tp_overlap tp_overlap_sp fills "},
};
static_assert(std::size(rows) == framework_count, "a framework needs a row here");

template <class Enum>
std::string words(const SetOf<Enum>& set) {
  std::string text;
  for (std::size_t i = 0; i < names_of<Enum>.size(); ++i) {
    if (set.has(static_cast<Enum>(i))) text += std::string(names_of<Enum>[i]) + " ";
  }
  return text;
}

std::string stages(const OffloadFacts& facts) {
  std::string text;
  for (const int from : {facts.optimizer_cpu_from, facts.optimizer_nvme_from, facts.parameters_cpu_from,
                         facts.parameters_nvme_from, facts.fraction_from}) {
    text += (text.empty() ? "" : " ") + (from == never ? std::string("-") : std::to_string(from));
  }
  return text;
}

/// Every yes of a framework.
std::string marks(const FrameworkFacts& f) {
  std::string text;
  const auto add = [&text](bool yes, const char* word) { text += yes ? std::string(word) + " " : ""; };
  add(f.any_stack, "any_stack");
  add(f.measures_overheads, "overheads");
  add(f.data_only, "data_only");
  add(f.single_process, "single");
  add(f.model_parallel, "model_parallel");
  add(f.pipeline.virtual_stages, "virtual");
  add(f.recompute.layers_alone, "layers_alone");
  add(f.recompute.modules, "modules");
  add(f.recompute.per_operator, "per_operator");
  add(f.splits_quantized, "quantised");
  add(f.adapters, "adapters");
  add(f.expert_parallel, "experts");
  add(f.replicates_kv_heads, "kv");
  add(f.pipeline.blocks_on_sends, "blocks");
  add(f.balances_context, "balanced");
  add(f.zero.with_context, "zero_context");
  add(f.zero.scatters_gradients, "scatters");
  add(f.calls_main_grad, "main_grad");
  add(f.padded_buffers, "padded");
  add(f.whole_matrices, "matrices");
  add(f.autocast_over_fp32, "autocast");
  add(f.gathers_in_16_bit, "gathers16");
  add(f.zero_pools, "pools");
  add(f.zero.plus_plus, "zeropp");
  add(f.copies_gradient_buckets, "buckets");
  add(f.gradients_apart, "apart");
  add(f.transformer_engine, "te");
  add(f.trains_mtp, "mtp");
  add(f.sequence_parallel_default, "sp");
  add(f.experts_need_sequence_parallel, "moe_sp");
  add(f.tensor_overlap, "tp_overlap");
  add(f.tensor_overlap_needs_sequence, "tp_overlap_sp");
  add(f.gathers_beside_reduction, "gather_tied");
  add(f.pipeline.two_interleaved_overlap, "two_overlap");
  add(f.pipeline.scatters_sends, "scatter_send");
  add(f.pipeline.aligns_reduction, "aligned");
  add(f.pipeline.fills_one_f_one_b, "fills");
  add(f.pipeline.interleaves_in_rounds, "rounds");
  add(f.offload.together, "together");
  add(f.offload.gradients_follow, "follow");
  return text;
}

}  // namespace

TEST_CASE("what each framework does") {
  for (std::size_t i = 0; i < framework_count; ++i) {
    const Row& row = rows[i];
    const auto framework = static_cast<Framework>(i);
    const FrameworkFacts& facts = facts_of(framework);
    CAPTURE(row.name);
    CHECK(facts.framework == framework);
    CHECK(name(framework) == row.name);
    CHECK(name(facts.family) == row.family);
    CHECK(facts.default_stack == row.stack);
    CHECK(facts.zero.highest == row.zero);
    CHECK(facts.zero.highest_with_pipeline == row.zero_with_pipeline);
    CHECK(facts.fsdp == row.fsdp);
    CHECK(facts.rounding == row.rounding);
    CHECK(facts.state_defaults == row.defaults);
    CHECK(facts.fp32_gradients == row.gradients);
    CHECK(facts.step == row.step);
    CHECK(facts.fp8_gather == row.fp8);
    CHECK(facts.vocab_multiple == row.vocabulary);
    CHECK(words(facts.pipeline.schedules) == row.schedules);
    CHECK(words(facts.context) == row.context);
    CHECK(stages(facts.offload) == row.offload);
    CHECK(facts.offload.activations == row.activations);
    CHECK(marks(facts) == row.marks);
  }
}

TEST_CASE("a framework's facts agree with each other, and what is refused has words") {
  for (std::size_t i = 0; i < framework_count; ++i) {
    const FrameworkFacts& f = *framework_table[i];
    CAPTURE(name(f.framework));
    CHECK_FALSE(f.title.empty());
    CHECK(facts_of(f.family).family == f.family);
    CHECK(f.zero.highest >= f.zero.highest_with_pipeline);
    CHECK((f.zero.highest != 1 || !f.zero.words.empty()));
    CHECK(f.data_only == f.pipeline.schedules.empty());
    CHECK((f.data_only || !f.pipeline.schedules_source.empty()));
    CHECK((f.data_only || f.pipeline.schedules.has(f.pipeline.default_schedule)));
    const bool some_context = !f.data_only && f.context != ContextComms::all_but({});
    CHECK((!some_context || !f.context_words.empty()));
    const bool refuses_optimizer = f.offload.optimizer_cpu_from > 0 || f.offload.optimizer_nvme_from != 0;
    CHECK((f.offload.optimizer_cpu_from == never || !refuses_optimizer || !f.offload.optimizer_words.empty()));
    CHECK((f.offload.parameters_cpu_from <= 0 || !f.offload.parameters_words.empty()));
    for (std::size_t kind = 0; kind < names_of<ScheduleKind>.size(); ++kind) {
      const auto schedule = static_cast<ScheduleKind>(kind);
      CHECK(plan::has_schedule(f.framework, schedule) == (f.data_only || f.pipeline.schedules.has(schedule)));
      CHECK((f.data_only || plan::stack_fits(f.framework, f.framework)));
    }
  }
}

TEST_CASE("two interleaved stages of Megatron need overlapped sends, and plain schedules wait for theirs") {
  const FrameworkFacts& megatron = facts_of(Framework::megatron);
  CHECK(megatron.needs_overlapped_sends(ScheduleKind::interleaved, 2));
  CHECK_FALSE(megatron.needs_overlapped_sends(ScheduleKind::interleaved, 4));
  CHECK_FALSE(megatron.needs_overlapped_sends(ScheduleKind::one_f_one_b, 2));
  CHECK(megatron.waits_for_sends(ScheduleKind::gpipe));
  CHECK_FALSE(megatron.waits_for_sends(ScheduleKind::interleaved));
  CHECK_FALSE(facts_of(Framework::fsdp).waits_for_sends(ScheduleKind::one_f_one_b));
  CHECK_FALSE(facts_of(Framework::nanotron).fills(ScheduleKind::one_f_one_b, 8, 6));
  CHECK(facts_of(Framework::nanotron).fills(ScheduleKind::one_f_one_b, 8, 7));
  CHECK(facts_of(Framework::nanotron).fills(ScheduleKind::gpipe, 8, 1));
}

TEST_CASE("a run that names no framework") {
  CHECK(implied_framework(true, true, true) == Framework::fsdp);
  CHECK(implied_framework(false, true, true) == Framework::megatron);
  CHECK(implied_framework(false, false, true) == Framework::deepspeed);
  CHECK(implied_framework(false, false, false) == Framework::ddp);
}
