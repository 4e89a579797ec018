// Kernel choices, overlap and the dated software profiles that fix them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "shardplan/core/framework.hpp"
#include "shardplan/core/names.hpp"

namespace shardplan {

enum class NormKernel : std::uint8_t { fused, naive };
template <>
inline constexpr std::array<std::string_view, 2> names_of<NormKernel> = {"fused", "naive"};
enum class MlpKernel : std::uint8_t { fused, naive };
template <>
inline constexpr std::array<std::string_view, 2> names_of<MlpKernel> = {"fused", "naive"};
enum class QkvLayout : std::uint8_t { fused, separate };
template <>
inline constexpr std::array<std::string_view, 2> names_of<QkvLayout> = {"fused", "separate"};
enum class SoftmaxKernel : std::uint8_t { fused16, fp32 };
template <>
inline constexpr std::array<std::string_view, 2> names_of<SoftmaxKernel> = {"fused16", "fp32"};
enum class SequenceParallelInput : std::uint8_t { regather, keep };
template <>
inline constexpr std::array<std::string_view, 2> names_of<SequenceParallelInput> = {"regather", "keep"};
enum class WeightGradient : std::uint8_t { fused, separate };
template <>
inline constexpr std::array<std::string_view, 2> names_of<WeightGradient> = {"fused", "separate"};
enum class MoeDispatch : std::uint8_t { permute, loop };
template <>
inline constexpr std::array<std::string_view, 2> names_of<MoeDispatch> = {"permute", "loop"};
enum class MoeProbs : std::uint8_t { activation, after };
template <>
inline constexpr std::array<std::string_view, 2> names_of<MoeProbs> = {"activation", "after"};
enum class MoeCombine : std::uint8_t { scatter_add, index_add };
template <>
inline constexpr std::array<std::string_view, 2> names_of<MoeCombine> = {"scatter_add", "index_add"};

/// `training.kernels`, every null resolved.
struct Kernels {
  NormKernel norm = NormKernel::fused;
  MlpKernel mlp = MlpKernel::fused;
  QkvLayout qkv = QkvLayout::fused;
  SoftmaxKernel softmax = SoftmaxKernel::fused16;
  SequenceParallelInput sp_input = SequenceParallelInput::regather;
  WeightGradient wgrad = WeightGradient::fused;
  bool attention_output_copy = false;
  bool kv_expanded = false;
  bool reentrant_checkpoint = false;
  bool te_dummy_wgrad = false;
  MoeDispatch moe_dispatch = MoeDispatch::permute;
  MoeProbs moe_probs = MoeProbs::activation;
  MoeCombine moe_combine = MoeCombine::scatter_add;
};

/// `training.loss`. chunked carries its N beside it.
enum class LossKind : std::uint8_t {
  hf,
  hf_shift,
  hf_external,
  hf_native,
  fused_ce,
  fused_ce_native,
  compiled,
  logits16,
  megatron,
  te,
  chunked,
  liger
};
template <>
inline constexpr std::array<std::string_view, 12> names_of<LossKind> = {
    "hf",       "hf-shift", "hf-external", "hf-native", "fused-ce", "fused-ce-native",
    "compiled", "logits16", "megatron",    "te",        "chunked",  "liger"};

enum class OptimizerImpl : std::uint8_t { foreach, fused, for_loop };
template <>
inline constexpr std::array<std::string_view, 3> names_of<OptimizerImpl> = {"foreach", "fused", "for_loop"};

/// The kernels behind `attention: "flash"`: FlashAttention-1 and Triton, FlashAttention-2 and PyTorch's own,
/// FlashAttention-3 and Transformer Engine (cuDNN).
enum class FlashKernel : std::uint8_t { v1, v2, v3 };
template <>
inline constexpr std::array<std::string_view, 3> names_of<FlashKernel> = {"v1", "v2", "v3"};

/// `training.overlap`, resolved.
struct Overlap {
  bool grad_reduce = true;
  bool param_gather = true;
  bool tp = false;
  bool p2p = true;
};

/// What a software release keeps in memory besides the operators' own.
struct StackMemory {
  int gathered_layers = 2;                 ///< FSDP units of 16-bit weights alive at once, the root unit apart
  bool root_unit_gathered = true;          ///< embedding, head and final norm stay gathered
  bool gradients_freed = false;            ///< the loop sets gradients to None, so a step's first forward pass has none
  bool retains_frozen_inputs = false;      ///< FSDP1 keeps the inputs of units with frozen weights until backward ends
  bool gradient_bucket_views = false;      ///< DDP: gradients are views of the buckets, which then cost nothing
  bool fp32_reduce_scatter_input = false;  ///< FSDP2: one layer's gradient in fp32
  bool quantized_linear_keeps_input = false;  ///< old bitsandbytes
  bool quantized_base_runs_fp32 = false;      ///< activations, embedding and adapters fp32 with a quantised base
  bool quantized_head = false;
  bool embedding_states_fp32 = false;       ///< bitsandbytes keeps the embedding's optimizer states in fp32
  bool attention_copy_for_a2a = false;      ///< all-to-all context parallelism keeps attention's output twice
  bool fused_loss_keeps_log_probs = false;  ///< `fused-ce`: the fp32 log-probabilities beside the logits' gradient
  bool loss_keeps_cast = false;             ///< `megatron`: the logits' fp32 cast beside their softmax at the peak
  bool two_logits_at_loss = false;          ///< `logits16`: two copies of the logits in the activations' type at most
  bool fused_qkv_adapters = false;          ///< q, k, v adapters share a dropout; their padded buffer keeps its source
  double reserved_factor = 1.05;            ///< reserved / allocated
  bool logits_fragmentation = false;        ///< + 4TV where an unfused fp32 loss is the peak
  // DeepSpeed's pools, in elements.
  std::int64_t live_parameters = 0;  ///< ZeRO-3: gathered parameters alive at most; 0: no such pool
  std::int64_t reduce_bucket = 0;    ///< ZeRO-2 and 3: one bucket of gradients
  int reduce_buckets = 0;
  std::int64_t gather_bucket = 0;  ///< ZeRO-1 and 2: one bucket of updated parameters
  std::int64_t prefetch = 0;       ///< ZeRO-3: parameters fetched ahead
};

/// Constants of the step time that belong to the software.
struct StackTiming {
  bool measured = false;            ///< fitted to steps of this stack; false: taken over from a related one
  double elementwise_factor = 1.0;  ///< on the element-wise HBM bytes, under torch.compile where it is used
  double uncompiled_factor = 1.0;   ///< on top of it, without torch.compile
  double host_forward_s = 4e-4;     ///< launch floor per layer and microbatch
  double host_backward_s = 6e-4;
  double host_per_microbatch_s = 0;
  double host_tensor_parallel_s = 0;  ///< more per layer, microbatch and direction where tensor > 1
  double loss_bytes_per_logit = 12;   ///< HBM traffic per logit and direction
  double optimizer_bytes_per_parameter = 40;
  double optimizer_fixed_s = 0.01;
  double grad_reduce_hidden = 0.9;       ///< share that overlap.grad_reduce / param_gather hides
  double fsdp_hidden = 0.85;             ///< the same of per-layer gathers and reduce-scatters (FSDP, ZeRO-3)
  double tp_hidden = 0.5;                ///< share that overlap.tp hides
  double expert_hidden = 0;              ///< share of the expert all-to-all that hides behind its layer's compute
  double batched_product_share = 0.46;   ///< unfused attention's batched products, of the dense peak
  double misaligned_head_slowdown = 14;  ///< of them where the head dimension is no multiple of 8
  double narrow_head_share = 0.94;       ///< flash attention at head dimensions up to 64, of its rate at 128
  double grouped_product_share = 0.72;   ///< a grouped product's rate, of one product of its shape
  double expert_start_s = 15e-6;         ///< per local expert, product and direction
  double all_to_all_spread = 1.5;        ///< on an all-to-all over n > 8 ranks of one domain, times (n / 8)^(1/3)
  double permutation_factor = 1;         ///< on the bytes of dispatch and combine
  double weight_gradient_share = 0.95;   ///< of the forward rate, with fp32 accumulation
  double fp8_rowwise_share = 0.59;       ///< of the fp8 rate, torchao's row-wise scaling
  double mxfp8_share = 0.97;             ///< of the fp8 rate, blocks of 32
  double nvfp4_share = 0.83;             ///< of the nvfp4 peak over the 16-bit peak
  double fsdp_contention = 0.15;         ///< slow-down of compute and traffic beside each other, of the shorter one
};

/// A dated software profile (`list stacks`).
struct Stack {
  std::string name;  ///< empty: none was named, the framework's kernels hold
  Framework framework = Framework::megatron;
  std::string description;
  Kernels kernels;
  LossKind loss = LossKind::megatron;
  OptimizerImpl optimizer_impl = OptimizerImpl::fused;
  bool compile = false;
  bool autocast = false;
  FlashKernel flash = FlashKernel::v2;       ///< what `attention: "flash"` runs
  int fsdp_version = 0;                      ///< that it was written for; 0: none in particular
  bool tensor_is_sequence_parallel = false;  ///< its tensor parallelism always shards the sequence too (torchtitan)
  Overlap overlap;
  StackMemory memory;
  StackTiming timing;
  std::string source;
};

}  // namespace shardplan
