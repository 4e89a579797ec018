// torch.nn.DataParallel: one process, weights broadcast each forward pass, logits and gradients gathered on GPU 0.
#include "rows.hpp"

namespace shardplan::frameworks {

constinit const FrameworkFacts dp = {
    .framework = Framework::dp,
    .title = "DataParallel",
    .family = Framework::fsdp,  // torch's frameworks run each other's stacks
    .default_stack = "framework-dp",
    .data_only = true,
    .single_process = true,  // torch/nn/parallel/data_parallel.py

    .zero = {},
    .fsdp = FsdpKind::none,
    .rounding = StateRounding::unit,
    .state_defaults = StateDefaults::stored,
    .fp32_gradients = Fp32Gradients::never,
    .autocast_over_fp32 = true,
    .step = StepTransient::torch,

    .fp8_gather = Fp8Gather::none,

    .context = {},
    .pipeline = {},
    .offload = {},
    .recompute = {.per_operator = true},  // torch.utils.checkpoint: selective checkpoint contexts
};

}  // namespace shardplan::frameworks
