// What each framework does: everything that depends on which framework runs, and nowhere else. A framework is one
// file of src/physics/frameworks, which says where it was read; a row of core/framework.hpp; and a stack.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "shardplan/core/framework.hpp"
#include "shardplan/core/run.hpp"

namespace shardplan {

/// Schedules or ways of context exchange: a set of a small enum's values.
template <class Enum>
class SetOf {
 public:
  constexpr SetOf() noexcept = default;
  constexpr SetOf(std::initializer_list<Enum> members) noexcept {
    for (const Enum each : members) bits_ |= bit(each);
  }
  static constexpr SetOf all_but(std::initializer_list<Enum> missing) noexcept {
    SetOf set;
    for (std::size_t i = 0; i < names_of<Enum>.size(); ++i) set.bits_ |= bit(static_cast<Enum>(i));
    for (const Enum each : missing) set.bits_ &= ~bit(each);
    return set;
  }
  constexpr bool has(Enum member) const noexcept { return (bits_ & bit(member)) != 0; }
  constexpr bool empty() const noexcept { return bits_ == 0; }
  constexpr bool operator==(const SetOf&) const noexcept = default;

 private:
  static constexpr std::uint32_t bit(Enum member) noexcept { return 1U << static_cast<unsigned>(member); }
  std::uint32_t bits_ = 0;
};
using ScheduleSet = SetOf<ScheduleKind>;
using ContextComms = SetOf<ContextComm>;

/// Whose FSDP `parallel.fsdp` is.
enum class FsdpKind : std::uint8_t { none, torch, megatron };
/// How the bytes of a state that N ranks share are rounded.
enum class StateRounding : std::uint8_t {
  bytes,  ///< P x bytes / N, rounded up once: what papers print
  stage,  ///< whole elements of one buffer that spans the stage
  unit    ///< whole elements of every unit's shard
};
/// The types of the states where the run does not say.
enum class StateDefaults : std::uint8_t {
  mixed,  ///< 16-bit weights, an fp32 master copy, fp32 moments
  stored  ///< torch: what is stored is what trains, fp32 unless `param_dtype` says 16 bit
};
/// When gradients of bf16 weights are accumulated in fp32, with StateDefaults::mixed.
enum class Fp32Gradients : std::uint8_t { never, stage_zero, always };
/// What an optimizer's step holds for a moment.
enum class StepTransient : std::uint8_t {
  none,            ///< not counted
  matrices,        ///< the largest matrix that the optimizer works on; element-wise updates are in place
  fp32_partition,  ///< and the partition's gradient copied to fp32
  torch            ///< or what torch.optim's implementations allocate
};
/// Which runs gather fp8 weights (`fp8.param_gather`).
enum class Fp8Gather : std::uint8_t { none, sharded_optimizer, tensorwise };
/// Which runs move activations to the host.
enum class ActivationOffload : std::uint8_t {
  free,             ///< all
  none,             ///< there is no such option
  one_stage_plain,  ///< those without a pipeline and without recomputation
  checkpoints       ///< those that recompute: what is moved are the checkpoints
};

constexpr int never = -1;  ///< of a ZeRO stage from which something is possible: at none

/// ZeRO's stages (`parallel.zero_stage`).
struct ZeroFacts {
  int highest = 0;
  int highest_with_pipeline = 0;
  int reduces_every_microbatch_from = never;  ///< gradients cannot wait for the last microbatch from this stage on
  bool plus_plus = false;                     ///< hpZ, qwZ and qgZ
  bool scatters_gradients = true;  ///< false: stage 1 all-reduces them whole, once the last backward pass has ended
  bool with_context = true;        ///< the ranks of a context group share a shard set
  std::string_view words = {};     ///< what its documentation calls it, in brackets after the stages
  std::string_view caveat = {};    ///< what to know before launching a stage above 0
};

/// What the host and NVMe can hold. Stages are of ZeRO: 0 always, `never`.
struct OffloadFacts {
  int optimizer_cpu_from = never;
  int optimizer_nvme_from = never;
  int parameters_cpu_from = never;
  int parameters_nvme_from = never;
  int fraction_from = never;      ///< a part of the optimizer only, on the CPU
  bool together = false;          ///< parameters and optimizer go together
  bool gradients_follow = false;  ///< gradients live where the optimizer does
  double pinned_parameters = 0;   ///< host bytes of the buffers through which parameters are swapped with NVMe
  double pinned_states = 0;       ///< ... and bytes per element of those of the optimizer's states
  double sub_group = 0;           ///< ... for this many elements at most
  ActivationOffload activations = ActivationOffload::free;
  std::string_view optimizer_words = {};   ///< after a refused optimizer; empty: it stays on the GPU
  std::string_view parameters_words = {};  ///< after refused parameters; empty: they stay on the GPU
};

/// The forms of `training.recompute` beyond none, selective, full, full:N and every:K.
struct RecomputeFacts {
  bool layers_alone = false;  ///< every layer or none: no selective, full:N, every:K
  bool modules = false;       ///< a list of modules
  bool per_operator = false;  ///< torch's selective checkpointing of single operators
};

struct PipelineFacts {
  ScheduleSet schedules;                   ///< that it runs on more than one stage; empty: it has no pipelines
  std::string_view schedules_source = {};  ///< where that is to be read
  bool virtual_stages = false;             ///< several chunks of the model on a rank
  ScheduleKind default_schedule = ScheduleKind::one_f_one_b;  ///< without virtual stages
  bool fills_one_f_one_b = false;                             ///< 1F1B needs pipeline - 1 microbatches or more
  bool interleaves_in_rounds = false;    ///< microbatches in equal rounds, not in groups of `pipeline`
  bool two_interleaved_overlap = false;  ///< two interleaved stages need overlapped sends
  bool blocks_on_sends = true;           ///< naive, GPipe and 1F1B wait for their sends
  bool scatters_sends = false;           ///< without sequence parallelism a tensor rank sends 1/t, gathered on arrival
  bool aligns_reduction = false;         ///< interleaved chunks' gradients are reduced in the same slot on all ranks
};

/// What holds of a framework, whatever the run. A row that leaves out a member without a default does not compile.
struct FrameworkFacts {
  Framework framework;
  std::string_view title;          ///< as its documentation writes it
  Framework family;                ///< the frameworks whose stacks it can run
  bool any_stack = false;          ///< ... and all others
  std::string_view default_stack;  ///< of configs/stacks: what holds where a run names no stack
  bool measures_overheads = true;  ///< CUDA context, NCCL, cuBLAS, p2p buffers and the allocator's reserve count
  bool data_only = false;          ///< data parallelism is all it has
  bool single_process = false;     ///< one process drives all GPUs of a node and gathers on the first
  bool model_parallel = false;     ///< made to split layers: proposals for what does not fit split them first

  ZeroFacts zero;
  FsdpKind fsdp;
  StateRounding rounding;
  StateDefaults state_defaults;
  Fp32Gradients fp32_gradients;
  bool calls_main_grad = false;          ///< an fp32 gradient beside 16-bit weights is called main grad
  bool autocast_over_fp32 = false;       ///< a 16-bit run computes under torch.autocast over fp32 weights by default
  bool gathers_in_16_bit = false;        ///< FSDP's mixed precision casts as it gathers: no autocast copies
  bool padded_buffers = false;           ///< ZeRO-1 buffers are padded to lcm(shards, 128) elements
  bool whole_matrices = false;           ///< matrix optimizers keep a matrix' states on one rank
  bool zero_pools = false;               ///< the stack's pools of gathered parameters and reduced gradients exist
  bool copies_gradient_buckets = false;  ///< gradients are reduced as copies in buckets that last
  bool gradients_apart = false;  ///< a backward pass leaves gradients in the weights' type, added to fp32 once it ends
  StepTransient step;
  std::int64_t vocab_multiple = 1;  ///< default of `vocab_multiple`

  bool transformer_engine = false;  ///< narrow products are Transformer Engine's: it keeps narrow copies
  Fp8Gather fp8_gather;
  bool splits_quantized = false;  ///< quantised weights can be split by tensor parallelism
  bool adapters = true;           ///< trains adapters over a frozen base
  bool trains_mtp = false;        ///< multi-token-prediction layers are built and trained

  bool sequence_parallel_default = false;       ///< with tensor parallelism
  bool experts_need_sequence_parallel = false;  ///< a mixture of experts with tensor parallelism
  bool tensor_overlap = false;                  ///< `overlap.tp` is its own option
  bool tensor_overlap_needs_sequence = false;   ///< ... with sequence parallelism alone
  bool gathers_beside_reduction = false;        ///< `overlap.param_gather` only with `overlap.grad_reduce`
  bool expert_parallel = true;                  ///< experts can lie on different ranks
  bool replicates_kv_heads = true;              ///< more tensor ranks than KV heads
  ContextComms context;                         ///< context parallel exchanges that it has
  bool balances_context = true;                 ///< context ranks see an even share of a causal mask

  std::string_view context_words = {};  ///< what its context parallelism is, after "'s"

  PipelineFacts pipeline;
  OffloadFacts offload;
  RecomputeFacts recompute;
  std::string_view gradient_buckets = {};  ///< how it cuts gradients into buckets, for `explain buckets`

  /// Whether `parallel.fsdp` says how states are sharded, in place of ZeRO's stages.
  constexpr bool shards_by_fsdp() const noexcept { return fsdp == FsdpKind::torch; }
  constexpr int highest_zero_stage(bool with_pipeline) const noexcept {
    return with_pipeline ? zero.highest_with_pipeline : zero.highest;
  }
  /// Two interleaved stages exchange in both directions at once: without overlap each waits for the other.
  constexpr bool needs_overlapped_sends(ScheduleKind schedule, int stages) const noexcept {
    return pipeline.two_interleaved_overlap && schedule == ScheduleKind::interleaved && stages == 2;
  }
  /// Whether 1F1B's first stage has enough microbatches to fill the pipeline, where the framework insists on it.
  constexpr bool fills(ScheduleKind schedule, int stages, std::int64_t microbatches) const noexcept {
    return !pipeline.fills_one_f_one_b || schedule != ScheduleKind::one_f_one_b || microbatches >= stages - 1;
  }
  /// Whether a schedule's sends are waited for, whatever `overlap.p2p` says. Schedules with more to run in between hide
  /// them.
  constexpr bool waits_for_sends(ScheduleKind schedule) const noexcept {
    const bool plain =
        schedule == ScheduleKind::one_f_one_b || schedule == ScheduleKind::naive || schedule == ScheduleKind::gpipe;
    return plain && pipeline.blocks_on_sends;
  }
};

/// In the order of Framework.
extern const std::array<const FrameworkFacts*, framework_count> framework_table;

inline const FrameworkFacts& facts_of(Framework framework) noexcept {
  return *framework_table[static_cast<std::size_t>(framework)];
}

/// What a run that names no framework is taken to run: torch's FSDP where it is stated, Megatron-LM where layers or
/// sequences are split, DeepSpeed where a ZeRO stage is stated, DistributedDataParallel else.
Framework implied_framework(bool fsdp, bool splits_model, bool zero) noexcept;

}  // namespace shardplan
