// What one run needs and how fast it is. Units are in the names; bytes are exact integers.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "shardplan/core/cluster.hpp"
#include "shardplan/core/names.hpp"
#include "shardplan/core/run.hpp"
#include "shardplan/physics/collective.hpp"
#include "shardplan/physics/counts.hpp"

namespace shardplan {

/// The moments of a step at which memory can peak (docs/output.md).
enum class Moment : std::uint8_t { loss, backward, backward_end, optimizer_step, initialisation };
template <>
inline constexpr std::array<std::string_view, 5> names_of<Moment> = {"loss", "backward", "backward_end",
                                                                     "optimizer_step", "initialisation"};
inline constexpr std::size_t moment_count = 5;

/// The parts of a GPU's memory; they sum to the total, exactly.
struct MemoryParts {
  std::int64_t parameters = 0;
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;
  std::int64_t activations = 0;
  std::int64_t transient = 0;
  std::int64_t communication_buffers = 0;
  std::int64_t framework = 0;

  constexpr std::int64_t total() const noexcept {
    return parameters + gradients + optimizer + activations + transient + communication_buffers + framework;
  }
  /// What torch.cuda.max_memory_allocated would show.
  constexpr std::int64_t allocated() const noexcept { return total() - framework; }
};

struct StageEstimate {
  int stage = 0;
  int layers = 0;
  std::int64_t parameters = 0;              ///< weights that this rank works with (before data sharding), all of them
  std::int64_t in_flight_microbatches = 0;  ///< in full stages, rounded up
  std::int64_t in_flight_chunks = 0;
  Moment peak_moment = Moment::backward;
  std::array<MemoryParts, moment_count> moments{};
  std::array<bool, moment_count> has_moment{};
  std::int64_t reserved_bytes = 0;
  std::int64_t reserved_low_bytes = 0;
  std::int64_t reserved_high_bytes = 0;
  std::int64_t host_bytes = 0;  ///< one GPU's share
  std::int64_t nvme_bytes = 0;
  double forward_s = 0;   ///< one microbatch through this stage
  double backward_s = 0;  ///< including recomputation

  const MemoryParts& peak() const noexcept { return moments[static_cast<std::size_t>(peak_moment)]; }
};

/// One collective of a step, as one GPU of the busiest stage sees it.
struct CommunicationCall {
  std::string_view name;  ///< static text
  Collective op = Collective::all_reduce;
  GroupKind group = GroupKind::tensor;
  int group_size = 1;
  Scope scope = Scope::intra_node;
  std::int64_t calls_per_step = 0;
  std::int64_t message_bytes = 0;        ///< the whole tensor over its group
  std::int64_t sent_bytes_per_step = 0;  ///< by one GPU
  double time_s = 0;
  double exposed_s = 0;
};

/// A list of at most `capacity` calls that never allocates.
struct CommunicationCalls {
  static constexpr std::size_t capacity = 40;
  std::array<CommunicationCall, capacity> items{};
  std::size_t count = 0;

  void add(const CommunicationCall& call) noexcept {
    if (count < capacity) items[count++] = call;
  }
  const CommunicationCall* begin() const noexcept { return items.data(); }
  const CommunicationCall* end() const noexcept { return items.data() + count; }
  CommunicationCall* begin() noexcept { return items.data(); }
  CommunicationCall* end() noexcept { return items.data() + count; }
};

struct SentBytes {
  std::int64_t tensor = 0;
  std::int64_t pipeline = 0;
  std::int64_t data = 0;  ///< data, expert_data and embedding groups
  std::int64_t context = 0;
  std::int64_t expert = 0;  ///< expert and expert_tensor groups
  std::int64_t total() const noexcept { return tensor + pipeline + data + context + expert; }
};

struct PipelineEstimate {
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
  std::int64_t num_microbatches = 1;
  double bubble_fraction = 0;
  double ideal_bubble_fraction = 0;
};

/// How well the time of a run like this is known. The bands are 80% bands, calibrated on measured steps
/// (docs/validation.md); the least known aspect decides.
enum class BandClass : std::uint8_t { known, mixture_of_experts, other_fabric, other_stack, no_table };
template <>
inline constexpr std::array<std::string_view, 5> names_of<BandClass> = {"known", "mixture_of_experts", "other_fabric",
                                                                        "other_stack", "no_table"};

/// Seconds; means over the stages. The parts sum to step_s.
struct TimeEstimate {
  double step_s = 0;
  double compute_s = 0;
  double recompute_s = 0;
  double communication_exposed_s = 0;
  double bubble_s = 0;
  double optimizer_s = 0;
  double offload_s = 0;
  double band_low_s = 0;  ///< four of five measured steps lie between these two
  double band_high_s = 0;
  BandClass band_class = BandClass::known;
  // Parts of compute_s and of communication_exposed_s, for the text report.
  double gemm_s = 0;
  double attention_s = 0;
  double other_compute_s = 0;
  std::array<double, 8> exposed_by_group_s{};  ///< by GroupKind
  int data_exposed_stage = 0;                  ///< whose data-parallel traffic all stages wait for
  double data_hidden_s = 0;                    ///< traffic of that stage that nobody waits for
};

/// What offloading and paging move on one GPU in a step, on the stage that waits longest for it.
struct OffloadEstimate {
  double to_host_bytes = 0;    ///< over PCIe
  double from_host_bytes = 0;  ///< over PCIe
  double nvme_read_bytes = 0;
  double nvme_written_bytes = 0;
  double step_s = 0;    ///< once a step, whatever the batch: the optimizer on the host and its states
  double passes_s = 0;  ///< of all passes: weights and activations, which hide behind compute
};

struct ThroughputEstimate {
  double tokens_per_s = 0;
  double tokens_per_s_per_gpu = 0;
  double samples_per_s = 0;
  double model_flop_per_token = 0;
  double score_flop_per_token = 0;
  double peak_flop_per_s = 0;
  double model_flop_per_s_per_gpu = 0;
  double hardware_flop_per_s_per_gpu = 0;
  double mfu = 0;
  double hfu = 0;
  double mfu_causal = 0;
  double mfu_6n = 0;
  double gpu_hours_per_1e12_tokens = 0;
  double price_per_1e12_tokens = 0;
  bool has_price = false;
};

/// One operator of one layer, for one GPU and one microbatch (`--detail`).
struct OperatorDetail {
  std::string_view name;
  std::string_view kind;
  std::int64_t parameters = 0;
  std::int64_t saved_bytes = 0;
  double forward_flop = 0;
  double backward_flop = 0;
  double forward_hbm_bytes = 0;
  double forward_s = 0;
  double backward_s = 0;
  std::int64_t sent_bytes = 0;
};

struct LayerDetail {
  int first = 0;
  int count = 0;
  bool moe = false;
  std::int64_t saved_bytes = 0;
  std::int64_t kept_bytes = 0;
  std::vector<OperatorDetail> operators;
};

/// GPU memory that no tensor of the run explains.
struct OverheadDetail {
  std::string_view name;
  std::int64_t bytes = 0;
  bool allocated = false;  ///< inside the framework's allocator, so part of transient_bytes; else of framework_bytes
  std::string_view source;
};

/// Activations that a rank holds from a time on.
struct HeldActivations {
  double time_s = 0;
  std::int64_t bytes = 0;
};

/// One rank of the simulated step. Times from the first op of the pipeline on.
struct StageTimeline {
  int stage = 0;
  double first_start_s = 0;
  double last_end_s = 0;
  double busy_s = 0;
  double exposed_p2p_s = 0;
  std::vector<double> gradients_ready_s;  ///< per chunk: the end of its last backward
  std::vector<double> reduce_start_s;     ///< per chunk: when its gradients start to be reduced as a whole
  std::vector<HeldActivations> held;      ///< what the layers keep; of a long step the largest of equal spans
};

struct StepTimeline {
  double makespan_s = 0;  ///< to a global barrier before the optimizer
  double max_span_s = 0;  ///< longest first start to last end of one rank: the zero-bubble papers' cost
  std::vector<StageTimeline> stages;
};

/// Filled only when asked for; the one part of an estimate that allocates.
struct EstimateDetail {
  std::vector<LayerDetail> layers;
  std::int64_t embedding_saved_bytes = 0;
  std::int64_t final_norm_saved_bytes = 0;
  std::int64_t head_saved_bytes = 0;
  std::int64_t head_peak_bytes = 0;
  std::int64_t backward_transient_bytes = 0;
  std::vector<OverheadDetail> overheads;
  StepTimeline timeline;
};

struct Estimate {
  ModelCounts model;
  std::int64_t capacity_bytes = 0;
  std::int64_t peak_bytes = 0;
  int peak_stage = 0;     ///< the stage of peak_bytes
  int binding_stage = 0;  ///< the stage where headroom is least
  std::int64_t reserved_bytes = 0;
  std::int64_t reserved_low_bytes = 0;
  std::int64_t reserved_high_bytes = 0;
  std::int64_t headroom_bytes = 0;
  bool fits = false;
  bool fits_gpu = false;  ///< the card alone, host and NVMe apart
  std::int64_t host_bytes_per_node = 0;
  std::int64_t nvme_bytes_per_node = 0;
  std::vector<StageEstimate> stages;  ///< one per pipeline rank (dp: GPU 0 and the others)
  CommunicationCalls communication;
  int communication_stage = 0;
  SentBytes sent;
  PipelineEstimate pipeline;
  TimeEstimate time;
  OffloadEstimate offload;
  ThroughputEstimate throughput;
};

/// Estimates a legal run into `out`, whose buffers are reused: warm, nothing is allocated.
void estimate(const Run& run, Estimate& out) noexcept;

/// The operators behind an estimate.
EstimateDetail estimate_detail(const Run& run);

/// What a user should know about a legal run and its estimate.
std::vector<struct Warning> warnings_of(const Run& run, const Estimate& estimate);

}  // namespace shardplan
