// torch.nn.parallel.DistributedDataParallel (arXiv:2006.15704), and one GPU.
#include "rows.hpp"

namespace shardplan::frameworks {

constinit const FrameworkFacts ddp = {
    .framework = Framework::ddp,
    .title = "DDP",
    .family = Framework::fsdp,  // torch's frameworks run each other's stacks
    .default_stack = "framework-ddp",
    .data_only = true,

    .zero = {},
    .fsdp = FsdpKind::none,
    .rounding = StateRounding::unit,
    .state_defaults = StateDefaults::stored,
    .fp32_gradients = Fp32Gradients::never,
    .autocast_over_fp32 = true,
    .copies_gradient_buckets = true,  // torch/csrc/distributed/c10d/reducer.cpp, without gradient_as_bucket_view
    .step = StepTransient::torch,

    .fp8_gather = Fp8Gather::none,

    .context = {},
    .pipeline = {},
    .offload = {},
    .recompute = {.per_operator = true},  // torch.utils.checkpoint: selective checkpoint contexts
};

}  // namespace shardplan::frameworks
