// PyTorch FSDP (1 and 2), torchtitan and torch.distributed.pipelining.
#include "rows.hpp"

namespace shardplan::frameworks {

constinit const FrameworkFacts fsdp = {
    .framework = Framework::fsdp,
    .title = "FSDP",
    .family = Framework::fsdp,
    .default_stack = "framework-fsdp",

    .zero = {},
    .fsdp = FsdpKind::torch,
    .rounding = StateRounding::unit,
    .state_defaults = StateDefaults::stored,
    .fp32_gradients = Fp32Gradients::never,
    .gathers_in_16_bit = true,  // fully_shard: MixedPrecisionPolicy.param_dtype
    .step = StepTransient::torch,

    .fp8_gather = Fp8Gather::tensorwise,  // torchao enable_fsdp_float8_all_gather

    .context = ContextComms::all_but({}),
    .balances_context = false,
    .pipeline = {.schedules = ScheduleSet::all_but({ScheduleKind::zb_h1, ScheduleKind::zb_h2, ScheduleKind::dualpipe}),
                 .schedules_source = "torch.distributed.pipelining schedules.py: get_schedule_class",
                 .virtual_stages = true,
                 .interleaves_in_rounds = true,  // schedules.py: number_of_rounds
                 .blocks_on_sends = false},      // stage.py sends asynchronously and waits for what it receives alone
    .offload = {.optimizer_cpu_from = 0,
                .parameters_cpu_from = 0,
                .together = true,  // CPUOffloadPolicy
                .gradients_follow = true,
                .optimizer_words = "FSDP offloads to cpu only",
                .parameters_words = "FSDP offloads to cpu only"},
    .recompute = {.modules = true, .per_operator = true},
    .gradient_buckets = "FSDP reduces a wrapped unit, a layer, at a time",
};

}  // namespace shardplan::frameworks
