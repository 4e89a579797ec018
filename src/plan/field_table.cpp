#include "shardplan/plan/field_table.hpp"

#include <array>

namespace shardplan::plan {
namespace {

using namespace member;
using Kind = ValueType::Kind;

constexpr auto in_parallel = &Run::parallel;
constexpr auto in_training = &Run::training;
constexpr double degree = largest_degree;
constexpr double longest_sequence = std::int64_t{1} << 28;
constexpr double most_rank = 1 << 16;
constexpr std::string_view frameworks = "the framework's";
constexpr std::string_view stacks = "the stack's";
constexpr std::string_view framework_or_stack = "default: the framework's or the stack's";
constexpr std::string_view by_framework = "default: the framework's";

/// A field whose value no member holds as a number.
constexpr Member<Run> own(Kind kind, std::span<const std::string_view> words = {}) { return {{kind, {}, words}}; }

constexpr std::array<std::string_view, 2> initialisations = {"sharded", "full"};
constexpr std::array<std::string_view, 4> recompute_words = {"none", "selective", "full", "ops"};
constexpr std::array<std::string_view, 1> target_words = {"all-linear"};
constexpr std::array<std::string_view, 4> offload_words = {"optimizer=cpu", "optimizer=nvme", "parameters=cpu",
                                                           "activations=cpu"};

template <class Enum>
constexpr std::span<const std::string_view> words_of = names_of<Enum>;

/// Enumerators but the first, which is what a run without the section has.
constexpr Member<Run> peft_method() {
  return at<1, in_training, &Training::peft, &Peft::method>({Kind::word, {}, words_of<PeftMethod>.subspan(1)});
}

/// -1, all of them, is not stated.
constexpr Member<Run> activation_layers() {
  Member<Run> member = integer<in_training, &Training::offload, &Offload::activation_layers>(0, most_layers);
  member.get = [](const Run& run) {
    const int layers = run.training.offload.activation_layers;
    return layers < 0 ? std::numeric_limits<double>::quiet_NaN() : layers;
  };
  return member;
}

// `also` holds Megatron-LM's, DeepSpeed's and our own long names, for did-you-mean.
constexpr std::array<FieldRow, field_count> rows = {{
    {Field::model,
     "/model",
     own(Kind::name),
     "required",
     "what is trained",
     {"model", "NAME|FILE|-", "built-in name (list models), config.json, or - for stdin", "model-name config"}},
    {Field::cluster,
     "/cluster",
     own(Kind::name),
     "required",
     "GPUs, links, hosts",
     {"cluster", "NAME|FILE", "built-in name (list clusters) or file", "node system"}},
    {Field::num_gpus,
     "/num_gpus",
     integer<&Run::num_gpus>(1, degree),
     "`num_nodes` x `gpus_per_node`",
     "GPUs of the run",
     {"gpus", "N", "", "num-gpus world-size ngpus nproc devices"}},

    {Field::tensor,
     "/parallel/tensor",
     integer<in_parallel, &Parallel::tensor>(1, degree),
     "1",
     "ranks that split each matrix",
     {"tp", "N", "", "tensor tensor-parallel tensor-model-parallel-size tensor-parallel-size"}},
    {Field::pipeline,
     "/parallel/pipeline",
     integer<in_parallel, &Parallel::pipeline>(1, degree),
     "1",
     "pipeline stages",
     {"pp", "N", "", "pipeline pipeline-parallel pipeline-model-parallel-size pipeline-parallel-size"}},
    {Field::virtual_pipeline,
     "/parallel/virtual_pipeline",
     integer<in_parallel, &Parallel::virtual_pipeline>(1, degree),
     "1",
     "model chunks of each stage",
     {"vpp", "N", "", "virtual-pipeline interleave virtual-pipeline-model-parallel-size num-virtual-stages"}},
    {Field::context,
     "/parallel/context",
     integer<in_parallel, &Parallel::context>(1, degree),
     "1",
     "ranks that split each sequence",
     {"cp", "N", "", "context context-parallel context-parallel-size ring-attention"}},
    {Field::expert,
     "/parallel/expert",
     integer<in_parallel, &Parallel::expert>(1, degree),
     "1",
     "ranks that share out the experts",
     {"ep", "N", "", "expert expert-parallel expert-model-parallel-size"}},
    {Field::expert_tensor,
     "/parallel/expert_tensor",
     integer<in_parallel, &Parallel::expert_tensor>(1, degree),
     "1",
     "ranks that split each expert",
     {"etp", "N", "ranks that split each expert's matrices", "expert-tensor expert-tensor-parallel-size"}},
    {Field::data,
     "/parallel/data",
     integer<in_parallel, &Parallel::data>(1, degree),
     "`num_gpus` / (`tensor` x `pipeline` x `context`)",
     "replicas; follows from num_gpus when left out",
     {"dp", "N", "replicas; follows from the GPUs when left out", "data data-parallel data-parallel-size replicas"}},
    {Field::sequence_parallel,
     "/parallel/sequence_parallel",
     boolean<in_parallel, &Parallel::sequence_parallel>(),
     frameworks,
     "default true for megatron with tensor > 1",
     {"sp", "", "split norms and dropout along the sequence", "sequence-parallel", "true"},
     {"no-sp", "", "keep them whole on every tensor rank", "no-sequence-parallel", "false"}},
    {Field::zero_stage,
     "/parallel/zero_stage",
     integer<in_parallel, &Parallel::zero_stage>(0, 3),
     "0",
     "what data parallel ranks share out",
     {"zero", "0..3", "", "zero-stage stage"}},
    {Field::fsdp,
     "/parallel/fsdp",
     word<in_parallel, &Parallel::fsdp>(words_of<Fsdp>),
     "none; `full_shard` with framework fsdp",
     "exclusive with zero_stage",
     {"fsdp", "MODE", "full_shard, shard_grad_op, no_shard or hybrid_shard", "sharding-strategy"}},
    {Field::fsdp_version, "/parallel/fsdp_version", integer<in_parallel, &Parallel::fsdp_version>(1, 2), "2",
     "default 2"},
    {Field::grad_sync, "/parallel/grad_sync", word<in_parallel, &Parallel::grad_sync>(words_of<GradSync>), frameworks,
     "reduce gradients"},
    {Field::context_comm, "/parallel/context_comm", word<in_parallel, &Parallel::context_comm>(words_of<ContextComm>),
     "`ring`", "default ring"},
    {Field::shard_group, "/parallel/shard_group", integer<in_parallel, &Parallel::shard_group>(1, degree),
     "the `data` x `context` ranks of one node", "ranks one shard set spans (hybrid_shard, hpZ)"},
    {Field::hpz, "/parallel/zeropp/hpz", boolean<in_parallel, &Parallel::hpz>(), "false",
     "secondary shards in the node"},
    {Field::qwz, "/parallel/zeropp/qwz", boolean<in_parallel, &Parallel::qwz>(), "false", "int8 weights"},
    {Field::qgz, "/parallel/zeropp/qgz", boolean<in_parallel, &Parallel::qgz>(), "false", "int4 gradients"},
    {Field::schedule,
     "/parallel/schedule",
     word<in_parallel, &Parallel::schedule>(words_of<ScheduleKind>),
     "`1f1b`; `interleaved` where `virtual_pipeline` is above 1",
     "default 1f1b",
     {"schedule", "NAME", "pipeline schedule (list schedules)", "pipeline-schedule"}},
    {Field::layers_per_stage, "/parallel/layers_per_stage", own(Kind::list), "equal shares",
     "decoder layers of each stage or chunk, in model order"},
    {Field::order, "/parallel/order", own(Kind::phrase), "`tp-cp-ep-dp-pp`", "which ranks are neighbours"},

    {Field::seq_length,
     "/training/seq_length",
     integer<in_training, &Training::seq_length>(1, longest_sequence),
     "4096, or the model's `max_position_embeddings` if that is less",
     "tokens of a sequence",
     {"seq", "N", "", "seq-len seq-length sequence-length max-seq-len context-length"}},
    {Field::micro_batch_size,
     "/training/micro_batch_size",
     integer<in_training, &Training::micro_batch_size>(1, degree),
     "1",
     "sequences of a microbatch, per replica",
     {"mbs", "N", "", "micro-batch-size microbatch-size batch-size per-device-train-batch-size"}},
    {Field::global_batch_size,
     "/training/global_batch_size",
     integer<in_training, &Training::global_batch_size>(1, largest_global_batch),
     "`micro_batch_size` x `data`, with a pipeline 4 x `pipeline` times that",
     "sequences of a step, all replicas",
     {"gbs", "N", "", "global-batch-size train-batch-size"},
     {"microbatches", "M", "sets gbs to M x mbs x dp", "num-microbatches gradient-accumulation-steps grad-accum", "",
      "/microbatches"}},
    {Field::precision,
     "/training/precision",
     word<in_training, &Training::precision>(words_of<Precision>),
     "`bf16`",
     "default bf16",
     {"precision", "TYPE", "", "dtype mixed-precision"}},
    {Field::fp8_recipe, "/training/fp8/recipe", word<in_training, &Training::fp8_recipe>(words_of<Fp8Recipe>),
     "`delayed`", "scaling"},
    {Field::fp8_param_gather, "/training/fp8/param_gather", boolean<in_training, &Training::fp8_param_gather>(),
     "false", "weights are gathered in fp8"},
    {Field::compile, "/training/compile", boolean<in_training, &Training::compile>(), stacks, "torch.compile"},
    {Field::framework,
     "/training/framework",
     word<in_training, &Training::framework>(words_of<Framework>),
     "by the layout",
     "the physics family",
     {"framework", "NAME", "", "backend"}},
    {Field::stack,
     "/training/stack",
     own(Kind::name),
     "none",
     "dated software profile (`shardplan list stacks`)",
     {"stack", "NAME", "dated software profile (list stacks)", "profile"}},
    {Field::initialisation, "/training/initialisation",
     word<in_training, &Training::full_initialisation>(initialisations), "`sharded`", "default sharded"},
    {Field::optimizer,
     "/training/optimizer",
     own(Kind::name),
     "`adamw`",
     "default adamw (`shardplan list optimizers`)",
     {"optimizer", "NAME", "list optimizers shows them", "optim"}},
    {Field::optimizer_impl, "/training/optimizer_impl",
     word<in_training, &Training::optimizer_impl>(words_of<OptimizerImpl>), stacks, "default: the stack's"},
    {Field::recompute,
     "/training/recompute",
     own(Kind::phrase, recompute_words),
     "`none`",
     "default none",
     {"recompute", "MODE", "none, selective, full, full:N, every:K or ops",
      "recompute-granularity activation-checkpointing gradient-checkpointing checkpointing"}},
    {Field::attention,
     "/training/attention",
     word<in_training, &Training::attention>(words_of<AttentionKernel>),
     "`flash`",
     "default flash",
     {"attention", "KERNEL", "", "attn-implementation attention-backend flash-attn"}},
    {Field::loss,
     "/training/loss",
     own(Kind::phrase, words_of<LossKind>),
     stacks,
     "cross-entropy; default: the framework's",
     {"loss", "NAME", "cross-entropy: hf, fused-ce, compiled, megatron, te, liger, chunked:N ..", "cross-entropy"}},
    {Field::keep_logits, "/training/keep_logits", boolean<in_training, &Training::keep_logits>(), "false",
     "the loop holds the logits through backward"},
    {Field::kernel_norm, "/training/kernels/norm",
     word<in_training, &Training::kernels, &Kernels::norm>(words_of<NormKernel>), stacks, framework_or_stack},
    {Field::kernel_mlp, "/training/kernels/mlp",
     word<in_training, &Training::kernels, &Kernels::mlp>(words_of<MlpKernel>), stacks, framework_or_stack},
    {Field::kernel_qkv, "/training/kernels/qkv",
     word<in_training, &Training::kernels, &Kernels::qkv>(words_of<QkvLayout>), stacks, framework_or_stack},
    {Field::kernel_softmax, "/training/kernels/softmax",
     word<in_training, &Training::kernels, &Kernels::softmax>(words_of<SoftmaxKernel>), stacks, framework_or_stack},
    {Field::kernel_sp_input, "/training/kernels/sp_input",
     word<in_training, &Training::kernels, &Kernels::sp_input>(words_of<SequenceParallelInput>), stacks,
     framework_or_stack},
    {Field::kernel_wgrad, "/training/kernels/wgrad",
     word<in_training, &Training::kernels, &Kernels::wgrad>(words_of<WeightGradient>), stacks, framework_or_stack},
    {Field::attention_output_copy, "/training/kernels/attention_output_copy",
     boolean<in_training, &Training::kernels, &Kernels::attention_output_copy>(), stacks, "the output is copied"},
    {Field::kv_expanded, "/training/kernels/kv_expanded",
     boolean<in_training, &Training::kernels, &Kernels::kv_expanded>(), stacks, "K and V are repeated"},
    {Field::reentrant_checkpoint, "/training/kernels/reentrant_checkpoint",
     boolean<in_training, &Training::kernels, &Kernels::reentrant_checkpoint>(), stacks,
     "torch.utils.checkpoint's older form"},
    {Field::te_dummy_wgrad, "/training/kernels/te_dummy_wgrad",
     boolean<in_training, &Training::kernels, &Kernels::te_dummy_wgrad>(), stacks, "cached dummy weight gradients"},
    {Field::moe_dispatch, "/training/kernels/moe_dispatch",
     word<in_training, &Training::kernels, &Kernels::moe_dispatch>(words_of<MoeDispatch>), stacks, framework_or_stack},
    {Field::moe_probs, "/training/kernels/moe_probs",
     word<in_training, &Training::kernels, &Kernels::moe_probs>(words_of<MoeProbs>), stacks, framework_or_stack},
    {Field::moe_combine, "/training/kernels/moe_combine",
     word<in_training, &Training::kernels, &Kernels::moe_combine>(words_of<MoeCombine>), stacks, framework_or_stack},
    {Field::dropout, "/training/dropout", rate<in_training, &Training::dropout>(), "0", "default 0"},
    {Field::attention_dropout, "/training/attention_dropout", rate<in_training, &Training::attention_dropout>(),
     "`dropout`", "default: dropout"},
    {Field::autocast, "/training/autocast", boolean<in_training, &Training::autocast>(),
     "the stack's; true for ddp and dp with fp32 weights, a 16-bit `precision` and no adapters",
     "torch.autocast around the forward"},
    {Field::param_dtype, "/training/param_dtype", word<in_training, &Training::param_dtype>(words_of<DType>),
     frameworks, by_framework},
    {Field::grad_dtype, "/training/grad_dtype", word<in_training, &Training::grad_dtype>(words_of<DType>), frameworks,
     by_framework},
    {Field::master_weights, "/training/master_weights", boolean<in_training, &Training::master_weights>(), frameworks,
     "an fp32 copy"},
    {Field::optimizer_state_dtype, "/training/optimizer_state_dtype",
     word<in_training, &Training::optimizer_state_dtype>(words_of<DType>),
     "`fp32`, or as wide as the weights without a master copy", by_framework},
    {Field::vocab_multiple, "/training/make_vocab_size_divisible_by",
     integer<in_training, &Training::vocab_multiple>(1, degree), "128 with megatron, else 1", "always times tensor"},
    {Field::capacity_factor, "/training/moe/capacity_factor",
     number<in_training, &Training::capacity_factor>({0, std::nullopt, 1e6}), "none: dropless", "null: dropless"},
    {Field::moe_imbalance,
     "/training/moe/imbalance",
     number<in_training, &Training::moe_imbalance>({std::nullopt, 1, 1e6}),
     "1",
     "tokens of the busiest expert rank / mean",
     {"moe-imbalance", "X", "", "imbalance"}},

    {Field::peft, "/training/peft", own(Kind::object), "none: everything trains", "Adapters"},
    {Field::peft_method, "/training/peft/method", peft_method(), "`lora`; `qlora` where `quant` is given",
     "default lora"},
    {Field::peft_rank,
     "/training/peft/rank",
     integer<in_training, &Training::peft, &Peft::rank>(1, most_rank),
     "16",
     "default 16",
     {"lora-rank", "N", "train adapters of this rank", "lora-r rank lora"}},
    {Field::peft_alpha,
     "/training/peft/alpha",
     number<in_training, &Training::peft, &Peft::alpha>({0, std::nullopt, 1e9}),
     "2 x `rank`",
     "default 32",
     {"lora-alpha", "X", "scale of the adapters", "alpha"}},
    {Field::peft_dropout, "/training/peft/dropout", rate<in_training, &Training::peft, &Peft::dropout>(), "0",
     "default 0"},
    {Field::peft_targets,
     "/training/peft/targets",
     own(Kind::list, target_words),
     "`[\"q_proj\", \"v_proj\"]`",
     "matrices with adapters",
     {"lora-targets", "A,B,..", "adapted matrices, or all-linear", "lora-target-modules target-modules"}},
    {Field::peft_quant,
     "/training/peft/quant",
     word<in_training, &Training::peft, &Peft::quant>(words_of<Quantization>),
     "`none`; `nf4` with `qlora`",
     "of the frozen base",
     {"quant", "TYPE", "frozen base as nf4, int8, gptq4 or none", "quantization load-in-4bit qlora"}},
    {Field::double_quant, "/training/peft/double_quant", boolean<in_training, &Training::peft, &Peft::double_quant>(),
     "true", "quantised constants"},
    {Field::adapter_dtype, "/training/peft/adapter_dtype",
     word<in_training, &Training::peft, &Peft::adapter_dtype>(words_of<DType>.first(2)), "`fp32`", "default fp32"},
    {Field::kbit_preparation, "/training/peft/kbit_preparation",
     boolean<in_training, &Training::peft, &Peft::kbit_preparation>(), "false", "prepare_model_for_kbit_training"},
    {Field::peft_fused, "/training/peft/fused", boolean<in_training, &Training::peft, &Peft::fused>(), "false",
     "FOAK, Unsloth"},

    {Field::offload,
     "/training/offload",
     own(Kind::object, offload_words),
     "none",
     "What lives on the host",
     {"offload", "PART=cpu,..", "optimizer, parameters, activations to the host", "cpu-offload"}},
    {Field::offload_optimizer, "/training/offload/optimizer",
     word<in_training, &Training::offload, &Offload::optimizer>(words_of<OffloadDevice>), "`none`", "default none"},
    {Field::offload_parameters, "/training/offload/parameters",
     word<in_training, &Training::offload, &Offload::parameters>(words_of<OffloadDevice>), "`none`", "default none"},
    {Field::offload_activations, "/training/offload/activations",
     word<in_training, &Training::offload, &Offload::activations>(words_of<OffloadDevice>.first(2)), "`none`",
     "default none"},
    {Field::activation_layers, "/training/offload/activation_layers", activation_layers(), "all", "of each stage"},
    {Field::optimizer_fraction, "/training/offload/optimizer_fraction",
     number<in_training, &Training::offload, &Offload::optimizer_fraction>({0, std::nullopt, 1}), "1", "default 1"},
    {Field::overlap_grad_reduce, "/training/overlap/grad_reduce",
     boolean<in_training, &Training::overlap, &Overlap::grad_reduce>(), stacks, "reduction of gradients"},
    {Field::overlap_param_gather, "/training/overlap/param_gather",
     boolean<in_training, &Training::overlap, &Overlap::param_gather>(), stacks, "gathering of weights"},
    {Field::overlap_tp, "/training/overlap/tp", boolean<in_training, &Training::overlap, &Overlap::tp>(), stacks,
     "tensor parallel exchange"},
    {Field::overlap_p2p, "/training/overlap/p2p", boolean<in_training, &Training::overlap, &Overlap::p2p>(), stacks,
     "pipeline sends"},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].field != static_cast<Field>(i)) return false;
  }
  return true;
}
static_assert(in_order(), "a row for each field, in the order of Field");

constexpr std::array sections = {
    FieldSection{"/parallel", "How the run is laid out."},
    FieldSection{"/parallel/zeropp", "ZeRO++"},
    FieldSection{"/training", "How the run trains."},
    FieldSection{"/training/fp8", "fp8"},
    FieldSection{"/training/kernels", "Which kernels run; each null is the stack's."},
    FieldSection{"/training/moe", "Mixture of experts"},
    FieldSection{"/training/peft", "Adapters"},
    FieldSection{"/training/offload", "What lives on the host"},
    FieldSection{"/training/overlap", "What hides behind compute"},
    FieldSection{"/require", "What `shardplan check` asks for."},
};

constexpr NumberRange not_negative = {std::nullopt, 0};
constexpr NumberRange positive = {0, std::nullopt};
constexpr NumberRange fraction = {std::nullopt, 0, 1};
constexpr std::array<RequirementRow, requirement_count> requirements = {{
    {Requirement::fits, boolean<&Requirements::fits>(), "default true; false: need not fit"},
    {Requirement::min_headroom_gib, number<&Requirements::min_headroom_gib>(not_negative), "GiB that stay free"},
    {Requirement::min_mfu, number<&Requirements::min_mfu>(fraction), "fraction"},
    {Requirement::max_bubble, number<&Requirements::max_bubble>(fraction), "fraction"},
    {Requirement::max_step_s, number<&Requirements::max_step_s>(positive), "seconds"},
    {Requirement::min_tokens_per_s_per_gpu, number<&Requirements::min_tokens_per_s_per_gpu>(not_negative), "tokens"},
    {Requirement::max_gpu_hours_per_1e12_tokens, number<&Requirements::max_gpu_hours_per_1e12_tokens>(positive),
     "GPU hours"},
}};

constexpr std::array<std::string_view, field_count> pointers_of_rows() {
  std::array<std::string_view, field_count> pointers{};
  for (std::size_t i = 0; i < rows.size(); ++i) pointers[i] = rows[i].pointer;
  return pointers;
}

}  // namespace

constinit const std::array<std::string_view, field_count> field_pointers = pointers_of_rows();

std::span<const FieldRow> field_rows() noexcept { return rows; }
std::span<const FieldSection> field_sections() noexcept { return sections; }
std::span<const RequirementRow> requirement_rows() noexcept { return requirements; }

}  // namespace shardplan::plan
