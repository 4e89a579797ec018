#include "flags.hpp"

namespace shardplan::cli {
namespace {

using enum ValueKind;
using enum FlagGroup;

// `also` holds Megatron-LM's, DeepSpeed's and our own long names, for did-you-mean.
constexpr std::array run_rows = {
    Flag{"model", "/model", text, model, "NAME|FILE|-", "built-in name (list models), config.json, or - for stdin",
         "model-name config"},

    Flag{"cluster", "/cluster", text, FlagGroup::cluster, "NAME|FILE", "built-in name (list clusters) or file",
         "node system"},
    Flag{"gpus", "/num_gpus", integer, FlagGroup::cluster, "N", "GPUs of the run",
         "num-gpus world-size ngpus nproc devices"},

    Flag{"tp", "/parallel/tensor", integer, parallel, "N", "ranks that split each matrix",
         "tensor tensor-parallel tensor-model-parallel-size tensor-parallel-size"},
    Flag{"pp", "/parallel/pipeline", integer, parallel, "N", "pipeline stages",
         "pipeline pipeline-parallel pipeline-model-parallel-size pipeline-parallel-size"},
    Flag{"vpp", "/parallel/virtual_pipeline", integer, parallel, "N", "model chunks of each stage",
         "virtual-pipeline interleave virtual-pipeline-model-parallel-size num-virtual-stages"},
    Flag{"cp", "/parallel/context", integer, parallel, "N", "ranks that split each sequence",
         "context context-parallel context-parallel-size ring-attention"},
    Flag{"ep", "/parallel/expert", integer, parallel, "N", "ranks that share out the experts",
         "expert expert-parallel expert-model-parallel-size"},
    Flag{"etp", "/parallel/expert_tensor", integer, parallel, "N", "ranks that split each expert's matrices",
         "expert-tensor expert-tensor-parallel-size"},
    Flag{"dp", "/parallel/data", integer, parallel, "N", "replicas; follows from the GPUs when left out",
         "data data-parallel data-parallel-size replicas"},
    Flag{"sp", "/parallel/sequence_parallel", none, parallel, "", "split norms and dropout along the sequence",
         "sequence-parallel", "true"},
    Flag{"no-sp", "/parallel/sequence_parallel", none, parallel, "", "keep them whole on every tensor rank",
         "no-sequence-parallel", "false"},
    Flag{"zero", "/parallel/zero_stage", integer, parallel, "0..3", "what data parallel ranks share out",
         "zero-stage stage"},
    Flag{"fsdp", "/parallel/fsdp", text, parallel, "MODE", "full_shard, shard_grad_op, no_shard or hybrid_shard",
         "sharding-strategy"},
    Flag{"schedule", "/parallel/schedule", text, parallel, "NAME", "pipeline schedule (list schedules)",
         "pipeline-schedule"},

    Flag{"seq", "/training/seq_length", integer, training, "N", "tokens of a sequence",
         "seq-len seq-length sequence-length max-seq-len context-length"},
    Flag{"mbs", "/training/micro_batch_size", integer, training, "N", "sequences of a microbatch, per replica",
         "micro-batch-size microbatch-size batch-size per-device-train-batch-size"},
    Flag{"gbs", "/training/global_batch_size", integer, training, "N", "sequences of a step, all replicas",
         "global-batch-size train-batch-size"},
    Flag{"microbatches", "/training/global_batch_size", integer, training, "M", "sets gbs to M x mbs x dp",
         "num-microbatches gradient-accumulation-steps grad-accum"},
    Flag{"precision", "/training/precision", text, training, "TYPE", "fp32, tf32, fp16, bf16, fp8 or nvfp4",
         "dtype mixed-precision"},
    Flag{"recompute", "/training/recompute", text, training, "MODE", "none, selective, full, full:N, every:K or ops",
         "recompute-granularity activation-checkpointing gradient-checkpointing checkpointing"},
    Flag{"attention", "/training/attention", text, training, "KERNEL", "eager, flash, flash-v1 or flash-v3",
         "attn-implementation attention-backend flash-attn"},
    Flag{"optimizer", "/training/optimizer", text, training, "NAME", "list optimizers shows them", "optim"},
    Flag{"framework", "/training/framework", text, training, "NAME", "textbook, megatron, deepspeed, fsdp, ddp or dp",
         "backend"},
    Flag{"stack", "/training/stack", text, training, "NAME", "dated software profile (list stacks)", "profile"},
    Flag{"loss", "/training/loss", text, training, "NAME",
         "cross-entropy: hf, fused-ce, compiled, megatron, te, liger, chunked:N ..", "cross-entropy"},
    Flag{"lora-rank", "/training/peft/rank", integer, training, "N", "train adapters of this rank", "lora-r rank lora"},
    Flag{"lora-alpha", "/training/peft/alpha", number, training, "X", "scale of the adapters", "alpha"},
    Flag{"lora-targets", "/training/peft/targets", list, training, "A,B,..", "adapted matrices, or all-linear",
         "lora-target-modules target-modules"},
    Flag{"quant", "/training/peft/quant", text, training, "TYPE", "frozen base as nf4, int8, gptq4 or none",
         "quantization load-in-4bit qlora"},
    Flag{"offload", "/training/offload", pairs, training, "PART=cpu,..",
         "optimizer, parameters, activations to the host", "cpu-offload"},
    Flag{"moe-imbalance", "/training/moe/imbalance", number, training, "X", "tokens of the busiest expert rank / mean",
         "imbalance"},
    Flag{"set", "", any_field, training, "FIELD=VALUE", "any field: /training/loss=liger, training.seq_length=8192",
         "override"},
};

constexpr std::array output_rows = {
    Flag{"format", "", text, output, "FORMAT", "text, json, markdown or csv"},
    Flag{"json", "", none, output, "", "short for --format json", "as-json", "json"},
    Flag{"output", "", text, output, "FILE", "write the result there, whole or not at all", "out outfile", "", 'o'},
    Flag{"units", "", text, output, "UNIT", "gib (2^30 bytes) or gb (10^9)"},
    Flag{"color", "", text, output, "WHEN", "auto, always or never; NO_COLOR is obeyed", "colour colors"},
    Flag{"quiet", "", none, output, "", "the first line only", "silent", "true", 'q'},
    Flag{"ascii", "", none, output, "", "no characters beyond ASCII", "", "true"},
};

}  // namespace

std::span<const Flag> run_flags() { return run_rows; }
std::span<const Flag> output_flags() { return output_rows; }

}  // namespace shardplan::cli
