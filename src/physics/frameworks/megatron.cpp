// NVIDIA Megatron-LM (core, with its distributed optimizer and Megatron-FSDP) and what is built on it.
#include "rows.hpp"

namespace shardplan::frameworks {

constinit const FrameworkFacts megatron = {
    .framework = Framework::megatron,
    .title = "Megatron-LM",
    .family = Framework::megatron,
    .default_stack = "framework-megatron",
    .model_parallel = true,

    // core/optimizer/distrib_optimizer.py: optimizer states over the data-parallel ranks, nothing else.
    .zero = {.highest = 1, .highest_with_pipeline = 1, .words = "its distributed optimizer"},
    .fsdp = FsdpKind::megatron,
    .rounding = StateRounding::stage,
    .state_defaults = StateDefaults::mixed,
    .fp32_gradients = Fp32Gradients::always,  // training/arguments.py: accumulate_allreduce_grads_in_fp32 with bf16
    .calls_main_grad = true,
    .padded_buffers = true,           // core/distributed/param_and_grad_buffer.py: lcm(data_parallel_world_size, 128)
    .whole_matrices = true,           // core/optimizer/layer_wise_optimizer.py
    .step = StepTransient::matrices,  // fused Adam updates in place
    .vocab_multiple = 128,            // training/arguments.py: make_vocab_size_divisible_by

    .transformer_engine = true,
    .fp8_gather = Fp8Gather::sharded_optimizer,
    .trains_mtp = true,  // core/transformer/multi_token_prediction.py

    .sequence_parallel_default = true,
    .experts_need_sequence_parallel = true,  // core/transformer/moe/moe_layer.py:636
    .tensor_overlap = true,                  // tp_comm_overlap
    .tensor_overlap_needs_sequence = true,   // training/arguments.py
    .gathers_beside_reduction = true,        // training/arguments.py: overlap_param_gather needs overlap_grad_reduce
    .context = ContextComms::all_but({}),    // cp_comm_type
    .pipeline = {.schedules = ScheduleSet::all_but({}),
                 .schedules_source = "Megatron-LM core/pipeline_parallel/schedules.py:161-168 and its forks",
                 .virtual_stages = true,
                 .two_interleaved_overlap = true,  // training/arguments.py
                 .scatters_sends = true,           // arXiv:2104.04473 section 4.1
                 .aligns_reduction = true},        // align_grad_reduce
    // core/optimizer/cpu_offloading/hybrid_optimizer.py; transformer_config.py refuses activations with recomputation.
    .offload = {.optimizer_cpu_from = 1,
                .fraction_from = 0,
                .activations = ActivationOffload::one_stage_plain,
                .optimizer_words = "Megatron-LM offloads its distributed optimizer, to cpu"},
    .recompute = {.modules = true},  // transformer_config.py: recompute_modules
    .gradient_buckets = "Megatron-LM closes at max(40e6, 1e6 D) elements by the same rule",
};

}  // namespace shardplan::frameworks
