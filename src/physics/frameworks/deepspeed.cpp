// DeepSpeed: ZeRO, ZeRO-Offload, ZeRO-Infinity, ZeRO++, its pipeline engine and Ulysses.
#include "rows.hpp"

namespace shardplan::frameworks {

constinit const FrameworkFacts deepspeed = {
    .framework = Framework::deepspeed,
    .title = "DeepSpeed",
    .family = Framework::deepspeed,
    .default_stack = "framework-deepspeed",

    // runtime/engine.py: the pipeline engine takes stages 0 and 1; stages 2 and 3 reduce inside every backward pass.
    .zero = {.highest = 3, .highest_with_pipeline = 1, .reduces_every_microbatch_from = 2, .plus_plus = true},
    .fsdp = FsdpKind::none,
    .rounding = StateRounding::unit,
    .state_defaults = StateDefaults::mixed,
    .fp32_gradients = Fp32Gradients::stage_zero,  // runtime/bf16_optimizer.py
    .zero_pools = true,                           // runtime/zero/config.py: the sizes are the stack's
    .step = StepTransient::fp32_partition,        // runtime/zero/stage_1_and_2.py, stage3.py
    .fp8_gather = Fp8Gather::none,

    .context = {ContextComm::a2a},  // Ulysses: sequence/layer.py
    .context_words = "sequence parallelism is all-to-all (Ulysses)",
    .pipeline = {.schedules = {ScheduleKind::one_f_one_b},
                 .schedules_source = "DeepSpeed runtime/pipe/schedule.py: TrainSchedule"},
    // Swapping with NVMe pins host memory (runtime/zero/offload_config.py): five buffers of 1e8 weights in 16 bit
    // (offload_param: buffer_count, buffer_size), four of a sub-group of fp32 states (offload_optimizer: buffer_count;
    // sub_group_size 1e9).
    .offload = {.optimizer_cpu_from = 1,
                .optimizer_nvme_from = 3,
                .parameters_cpu_from = 3,
                .parameters_nvme_from = 3,
                .fraction_from = 3,  // ZeRO-Offload++ (Twin-Flow): ratio
                .gradients_follow = true,
                .pinned_parameters = 5 * 1e8 * 2,
                .pinned_states = 4 * 4,
                .sub_group = 1e9,
                .activations = ActivationOffload::checkpoints,  // activation_checkpointing.cpu_checkpointing
                .optimizer_words = "DeepSpeed offloads the optimizer to cpu from stage 1 on, to nvme at stage 3",
                .parameters_words = "DeepSpeed offloads parameters at stage 3"},
    .recompute = {},
};

}  // namespace shardplan::frameworks
