// Hugging Face nanotron, commit 2411b02 (files of src/nanotron). Its Qwen2ForTraining runs Llama's shapes too.
#include "rows.hpp"

namespace shardplan::frameworks {

constinit const FrameworkFacts nanotron = {
    .framework = Framework::nanotron,
    .title = "nanotron",
    .family = Framework::nanotron,
    .default_stack = "nanotron-2025",
    .model_parallel = true,

    // optim/zero.py:150-193: optimizer states and fp32 weights over data, each tensor cut into equal slices;
    // optim/gradient_accumulator.py:70: fp32 gradients stay whole. trainer.py:641-654: they are all-reduced whole after
    // the last backward pass, and only without context parallelism; optim/zero.py:119: step() gathers the weights.
    .zero = {.highest = 1,
             .highest_with_pipeline = 1,
             .scatters_gradients = false,
             .with_context = false,
             .words = "its ZeroDistributedOptimizer",
             .caveat = "nanotron 0.5 (2025-04) runs ZeRO-1 with fp32 accumulation; since 2025-06 and up to 2411b02 it "
                       "wraps the model in DistributedDataParallel all the same and stops with NotImplementedError in "
                       "optim/gradient_accumulator.py:355"},
    .fsdp = FsdpKind::none,
    .rounding = StateRounding::unit,  // optim/zero.py:176
    .state_defaults = StateDefaults::mixed,
    .fp32_gradients = Fp32Gradients::always,  // optim/gradient_accumulator.py:174: accumulate_grad_in_fp32
    .copies_gradient_buckets = true,          // trainer.py:1156: DistributedDataParallel, without bucket views
    .gradients_apart = true,                  // optim/gradient_accumulator.py:206-226
    .step = StepTransient::torch,             // helpers.py:360: torch.optim.AdamW

    .fp8_gather = Fp8Gather::none,
    .adapters = false,

    // config/parallelism_config.py:45-51: tp_mode all_reduce, pp_engine afab unless the config says otherwise.
    .tensor_overlap = true,                 // tp_linear_async_communication
    .tensor_overlap_needs_sequence = true,  // parallel/tensor_parallel/functional.py:572
    .expert_parallel = false,               // nn/moe.py:153-168: tokens stay on their rank
    .replicates_kv_heads = false,           // models/llama.py:351
    .context = {ContextComm::all_gather},   // models/qwen.py:286: llama3_ring_attention
    .balances_context = false,              // nn/llama3_ring_attention.py:24-41: contiguous slices of the sequence
    .context_words = "context parallelism gathers keys and values (llama3_ring_attention)",
    .pipeline = {.schedules = {ScheduleKind::gpipe, ScheduleKind::one_f_one_b},
                 .schedules_source = "nanotron parallel/pipeline_parallel/engine.py: afab and 1f1b",
                 .default_schedule = ScheduleKind::gpipe,
                 .fills_one_f_one_b = true},  // engine.py: assert nb_microbatches >= pg.size() - 1
    .offload = {.activations = ActivationOffload::none},
    .recompute = {.layers_alone = true},  // models/qwen.py:648: recompute_layer
    .gradient_buckets = "nanotron's DDP closes at ddp_bucket_cap_mb, 25 MiB, by the same rule",
};

}  // namespace shardplan::frameworks
