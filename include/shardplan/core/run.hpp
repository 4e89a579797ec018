// A run: model, cluster, layout and training options, resolved and legal. Plain values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/core/cluster.hpp"
#include "shardplan/core/dtype.hpp"
#include "shardplan/core/model.hpp"
#include "shardplan/core/names.hpp"
#include "shardplan/core/schedule_kind.hpp"
#include "shardplan/core/stack.hpp"

namespace shardplan {

enum class Fsdp : std::uint8_t { none, full_shard, shard_grad_op, no_shard, hybrid_shard };
template <>
inline constexpr std::array<std::string_view, 5> names_of<Fsdp> = {"none", "full_shard", "shard_grad_op", "no_shard",
                                                                   "hybrid_shard"};
/// Whether data-parallel ranks share out weights, gradients and optimizer states.
constexpr bool shards_states(Fsdp fsdp) noexcept { return fsdp != Fsdp::none && fsdp != Fsdp::no_shard; }
enum class GradSync : std::uint8_t { every, last };
template <>
inline constexpr std::array<std::string_view, 2> names_of<GradSync> = {"every", "last"};
enum class ContextComm : std::uint8_t { ring, all_gather, a2a };
template <>
inline constexpr std::array<std::string_view, 3> names_of<ContextComm> = {"ring", "all_gather", "a2a"};

/// The axes of the rank grid, for `parallel.order`.
enum class Axis : std::uint8_t { tensor, context, expert, data, pipeline };
template <>
inline constexpr std::array<std::string_view, 5> names_of<Axis> = {"tp", "cp", "ep", "dp", "pp"};

struct Parallel {
  int tensor = 1;
  int pipeline = 1;
  int virtual_pipeline = 1;
  int context = 1;
  int expert = 1;
  int expert_tensor = 1;
  int data = 1;
  bool sequence_parallel = false;  ///< false where tensor is 1, whatever the file said
  int zero_stage = 0;
  Fsdp fsdp = Fsdp::none;
  int fsdp_version = 2;
  GradSync grad_sync = GradSync::last;
  ContextComm context_comm = ContextComm::ring;
  int shard_group = 0;  ///< ranks one shard set spans (hybrid_shard, hpZ); always filled
  bool hpz = false;
  bool qwz = false;
  bool qgz = false;
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  /// Decoder layers of each of the pipeline x virtual_pipeline model chunks in model order; always filled.
  std::vector<int> layers_per_chunk;
  std::array<Axis, 5> order = {Axis::tensor, Axis::context, Axis::expert, Axis::data, Axis::pipeline};

  int world() const noexcept { return tensor * pipeline * context * data; }
  /// Ranks that hold the same dense weights: they share one shard set.
  int dense_replicas() const noexcept { return data * context; }
  /// Ranks that hold the same experts.
  int expert_replicas() const noexcept { return world() / (pipeline * expert * expert_tensor); }
};

enum class Fp8Recipe : std::uint8_t { delayed, current, tensorwise, rowwise, blockwise, mxfp8 };
template <>
inline constexpr std::array<std::string_view, 6> names_of<Fp8Recipe> = {"delayed", "current",   "tensorwise",
                                                                        "rowwise", "blockwise", "mxfp8"};

enum class RecomputeMode : std::uint8_t { none, selective, full, first_n, every_k, ops, modules };

/// Megatron-Core's `recompute_modules`, a bit set.
enum RecomputeModule : std::uint8_t {
  recompute_core_attn = 1,
  recompute_mlp = 2,
  recompute_layernorm = 4,
  recompute_moe_act = 8,
  recompute_moe = 16,
  recompute_mla_up_proj = 32,
};
inline constexpr std::array<std::string_view, 6> recompute_module_names = {"core_attn", "mlp", "layernorm",
                                                                           "moe_act",   "moe", "mla_up_proj"};

struct Recompute {
  RecomputeMode mode = RecomputeMode::none;
  int n = 0;  ///< full:N and every:K
  std::uint8_t modules = 0;

  /// Whether whole layers run again, not parts of one.
  constexpr bool of_layers() const noexcept {
    return mode == RecomputeMode::full || mode == RecomputeMode::first_n || mode == RecomputeMode::every_k ||
           mode == RecomputeMode::ops;
  }
};

enum class AttentionKernel : std::uint8_t { eager, flash, flash_v1, flash_v3 };
template <>
inline constexpr std::array<std::string_view, 4> names_of<AttentionKernel> = {"eager", "flash", "flash-v1", "flash-v3"};

enum class PeftMethod : std::uint8_t { none, lora, qlora, dora, rslora };
template <>
inline constexpr std::array<std::string_view, 5> names_of<PeftMethod> = {"none", "lora", "qlora", "dora", "rslora"};

struct Peft {
  PeftMethod method = PeftMethod::none;
  int rank = 16;
  double alpha = 32;
  double dropout = 0;
  std::uint32_t targets = 0;              ///< bit set over physics::MatrixId
  std::vector<std::string> target_names;  ///< as the file spelled them ("all-linear" alone is one)
  Quantization quant = Quantization::none;
  bool double_quant = true;
  DType adapter_dtype = DType::fp32;
  bool kbit_preparation = false;
  bool fused = false;

  bool active() const noexcept { return method != PeftMethod::none; }
};

enum class OffloadDevice : std::uint8_t { none, cpu, nvme };
template <>
inline constexpr std::array<std::string_view, 3> names_of<OffloadDevice> = {"none", "cpu", "nvme"};

struct Offload {
  OffloadDevice optimizer = OffloadDevice::none;
  OffloadDevice parameters = OffloadDevice::none;
  OffloadDevice activations = OffloadDevice::none;
  int activation_layers = -1;  ///< of each stage; -1: all
  double optimizer_fraction = 1.0;
};

struct Training {
  std::int64_t seq_length = 0;
  std::int64_t micro_batch_size = 1;
  std::int64_t global_batch_size = 0;
  Precision precision = Precision::bf16;
  Fp8Recipe fp8_recipe = Fp8Recipe::delayed;
  bool fp8_param_gather = false;
  bool compile = false;
  Framework framework = Framework::ddp;
  Stack stack;  ///< resolved: kernels, overlap and loss of the run are the fields below, not the stack's
  bool full_initialisation = false;
  std::string optimizer = "adamw";
  OptimizerImpl optimizer_impl = OptimizerImpl::fused;
  Recompute recompute;
  AttentionKernel attention = AttentionKernel::flash;
  LossKind loss = LossKind::megatron;
  int loss_chunks = 1;
  bool keep_logits = false;
  Kernels kernels;
  double dropout = 0;
  double attention_dropout = 0;
  bool autocast = false;
  DType param_dtype = DType::bf16;  ///< of the weights that train, as stored
  DType grad_dtype = DType::bf16;   ///< of the gradients as accumulated (fsdp: also as reduced)
  bool master_weights = true;       ///< an fp32 copy beside the stored weights
  DType optimizer_state_dtype = DType::fp32;
  std::int64_t vocab_multiple = 1;        ///< padded vocabulary is a multiple of this x tensor
  std::optional<double> capacity_factor;  ///< nullopt: dropless
  double moe_imbalance = 1;
  Peft peft;
  Offload offload;
  Overlap overlap;
};

/// `require`, read by `check`.
struct Requirements {
  std::optional<bool> fits;
  std::optional<double> min_headroom_gib;
  std::optional<double> min_mfu;
  std::optional<double> max_bubble;
  std::optional<double> max_step_s;
  std::optional<double> min_tokens_per_s_per_gpu;
  std::optional<double> max_gpu_hours_per_1e12_tokens;
};

struct Run {
  Model model;
  Cluster cluster;
  int num_gpus = 1;
  Parallel parallel;
  Training training;
  Requirements require;

  std::int64_t microbatches() const noexcept {
    return training.global_batch_size / (training.micro_batch_size * parallel.data);
  }
  std::int64_t padded_vocab() const noexcept {
    const std::int64_t unit = training.vocab_multiple * parallel.tensor;
    return (model.vocab_size + unit - 1) / unit * unit;
  }
};

}  // namespace shardplan
