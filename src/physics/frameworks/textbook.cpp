// The arithmetic of the papers, for study: ZeRO (arXiv:1910.02054), Megatron-LM's activations (arXiv:2205.05198). No
// program stands behind it, so it has everything and costs nothing beyond what the papers count.
#include "rows.hpp"

namespace shardplan::frameworks {

constinit const FrameworkFacts textbook = {
    .framework = Framework::textbook,
    .title = "textbook",
    .family = Framework::textbook,
    .any_stack = true,
    .default_stack = "framework-textbook",
    .measures_overheads = false,
    .model_parallel = true,
    .zero = {.highest = 3, .highest_with_pipeline = 3},
    .fsdp = FsdpKind::none,
    .rounding = StateRounding::bytes,  // arXiv:1910.02054 figure 1: (2 + 2 + K) psi / N
    .state_defaults = StateDefaults::mixed,
    .fp32_gradients = Fp32Gradients::never,
    .step = StepTransient::none,
    .fp8_gather = Fp8Gather::none,
    .splits_quantized = true,
    .context = ContextComms::all_but({}),
    .pipeline = {.schedules = ScheduleSet::all_but({}),
                 .schedules_source = "docs/schedules.md names each one's paper",
                 .virtual_stages = true},
    .offload = {.optimizer_cpu_from = 0,
                .optimizer_nvme_from = 0,
                .parameters_cpu_from = 0,
                .parameters_nvme_from = 0,
                .fraction_from = 0},
    .recompute = {.modules = true, .per_operator = true},
};

}  // namespace shardplan::frameworks
