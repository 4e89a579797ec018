// The inner sums of an estimate, kept between calls so that a warm estimate allocates nothing.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "shardplan/core/run.hpp"
#include "shardplan/physics/ends.hpp"
#include "shardplan/physics/fold.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/physics/optimizer_work.hpp"
#include "shardplan/physics/optimizers.hpp"
#include "shardplan/physics/states.hpp"
#include "shardplan/physics/timing.hpp"
#include "shardplan/physics/topology.hpp"
#include "shardplan/physics/transients.hpp"
#include "shardplan/plan/estimate.hpp"
#include "shardplan/schedule/simulate.hpp"

namespace shardplan {

inline constexpr std::size_t collective_count = 11;

/// One kind of collective of a unit or a stage, for one microbatch.
template <class N>
struct CollectiveSumOf {
  N calls{};
  N message{};  ///< bytes of one call's tensor (the largest)
  N sent{};     ///< bytes one GPU sends, all calls
  N time_s{};
  N exposed_s{};
};
template <class N>
using CollectiveSumsOf = std::array<CollectiveSumOf<N>, collective_count>;
using CollectiveSum = CollectiveSumOf<double>;

/// Rows and columns of a weight matrix on this rank.
template <class N>
struct MatrixShapeOf {
  N rows{}, cols{};
  bool operator==(const MatrixShapeOf& other) const noexcept {
    return value_of(rows) == value_of(other.rows) && value_of(cols) == value_of(other.cols);
  }
};
using MatrixShape = MatrixShapeOf<double>;

/// Everything that one layer (or one end of the model) adds to its stage, for one microbatch. N is double in an
/// estimate; with symbols the same functions write down what they compute (physics/trace.hpp).
template <class N>
struct UnitOf {
  UnitWeightsOf<N> weights;
  StateBytesOf<N> states;  ///< where shards round per unit
  SavedBytesOf<N> bytes;
  UnitFlopOf<N> flop;
  UnitTimeOf<N> time;
  LayerTransientOf<N> transient;
  MatrixStepTimeOf<N> matrix_step;  ///< products of the optimizer's update, once a step
  CollectiveSumsOf<N> collectives{};
  N forward_exposed_s{};                   ///< communication that the forward pass waits for
  N backward_exposed_s{};                  ///< and the backward pass with its recomputation
  FixedList<MatrixShapeOf<N>, 16> shapes;  ///< distinct shapes of trained matrices
};
using Unit = UnitOf<double>;

/// The ends of the model, and the loss.
template <class N>
struct EndsOf {
  UnitOf<N> embedding;
  UnitOf<N> final_norm;
  UnitOf<N> head;           ///< the LM head and the loss
  UnitOf<N> mtp;            ///< multi-token prediction: one block, its projection and one more pass of the head
  N head_input{};           ///< bytes of the final norm's output as the head keeps it
  HeadPeaks<N> head_peaks;  ///< what the loss' and the head's backward hold at most, the head's input apart
  N head_gradient{};        ///< bytes of the head's weight gradient in 16 bit, 0 where frozen
  N logits{};               ///< elements of this rank's logits
};
using Ends = EndsOf<double>;

/// Units in a row that share everything.
template <class N>
struct UnitRunOf {
  const UnitOf<N>* unit = nullptr;
  int count = 0;
};
using UnitRun = UnitRunOf<double>;

/// A model chunk on a rank.
template <class N>
struct ChunkOf {
  int stage = 0;  ///< virtual stage, model order
  int first_layer = 0;
  int layers = 0;
  bool has_embedding = false;
  bool has_head = false;
  N kept{};        ///< activation bytes that one microbatch keeps here, the loss apart
  N first_kept{};  ///< of it, what the first layer keeps
  N elements{};    ///< weights, before data sharding
  N forward_s{};   ///< with exposed communication
  N backward_s{};
  N weight_gradient_s{};
  std::size_t first_unit_run = 0;  ///< of EstimateWorkspace::unit_runs
  std::size_t unit_runs = 0;
};
using Chunk = ChunkOf<double>;

template <class N>
struct StageOf {
  UnitWeightsOf<N> weights;
  StateBytesOf<N> states;  ///< sums over units where shards round per unit
  UnitOf<N> total;         ///< times, FLOP and collectives of one microbatch through all chunks
  int layers = 0;
  bool has_embedding = false;
  bool has_head = false;
  FixedList<MatrixShapeOf<N>, 48> shapes;  ///< distinct shapes of trained matrices
  N largest_layer{};                       ///< elements of the largest layer here: what gathers hold at once
  N root{};                                ///< elements of embedding, head and final norm here
  N layer_saved{};                         ///< of the layer whose recomputation holds most
  N layer_kept{};                          ///< what that layer keeps anyway
  N layer_checkpoint{};
  LayerTransientOf<N> transient;  ///< of the layer with the largest one
  N forward_s{};                  ///< one microbatch through all chunks, with exposed communication
  N backward_s{};
  N data_s{};                             ///< data-parallel traffic of a step
  N data_exposed_s{};                     ///< data-parallel traffic that the step waits for
  std::array<N, 8> exposed_by_group_s{};  ///< of the step, by GroupKind; p2p apart
};
using Stage = StageOf<double>;

template <class N>
struct EstimateWorkspaceOf {
  Topology topology;
  StateRule rule;
  StateCounting counting;
  const Optimizer* optimizer = nullptr;
  std::vector<UnitOf<N>> kinds;           ///< by layer kind
  std::vector<UnitOf<N>> frozen_input;    ///< the same behind a frozen embedding
  std::vector<UnitOf<N>> not_recomputed;  ///< by layer kind, where full:N leaves a layer alone
  EndsOf<N> ends;
  std::vector<int> first_layers;        ///< of each virtual stage
  std::vector<UnitRunOf<N>> unit_runs;  ///< what the chunks are made of, chunk by chunk
  std::vector<ChunkOf<N>> chunks;       ///< rank by rank
  std::vector<StageOf<N>> stages;       ///< rank by rank
  // The simulated schedule is over double: of its times explanations have the values alone.
  std::vector<double> forward, backward, weight, activation;  ///< per virtual stage
  schedule::PipelineSpec spec;
  schedule::PipelineWorkspace pipeline;
  schedule::PipelineResult simulated;
  schedule::PipelineWorkspace ideal;
  schedule::PipelineResult ideal_result;
};
using EstimateWorkspace = EstimateWorkspaceOf<double>;

/// Seconds of one call of a layer's collective. An expert exchange whose dispatcher sends one copy of a token per
/// destination node (DeepEP, HybridEP) takes the time of those copies.
double layer_call_seconds(const Run& run, const Topology& topology, const LayerCollective<double>& call,
                          double top_k) noexcept;

/// One microbatch's hidden state as a pipeline rank hands it on, bytes.
double boundary_bytes(const Run& run) noexcept;

/// Whether chunks' gradients are reduced in the same slot on all ranks (Megatron-LM's align_grad_reduce).
inline bool aligns_reduction(const Run& run) noexcept {
  return facts_of(run.training.framework).pipeline.aligns_reduction &&
         run.parallel.schedule == ScheduleKind::interleaved;
}

/// When one rank may start to reduce a chunk's gradients as a whole, where the reduction overlaps.
double gradient_reduce_start(const Run& run, const schedule::Shape& shape, const schedule::PipelineResult& simulated,
                             std::size_t rank, int chunk) noexcept;

/// The simulated step of every rank, for a workspace whose pipeline has run.
StepTimeline step_timeline(const Run& run, EstimateWorkspace& w);

// The steps of an estimate, in order; each reads what the ones before it filled in.
/// Whether another chunk's or direction's compute runs beside a layer's expert exchange: Megatron-Core's
/// overlap_moe_expert_parallel_comm needs the interleaved schedule, DualPipe is built for it. Other schedules of
/// several chunks run them one after another.
bool overlaps_expert_exchange(ScheduleKind schedule) noexcept;

void build_units(const Run& run, EstimateWorkspace& w) noexcept;
void build_stages(const Run& run, EstimateWorkspace& w) noexcept;
void run_pipeline(const Run& run, EstimateWorkspace& w, Estimate& out) noexcept;
void estimate_communication(const Run& run, EstimateWorkspace& w, Estimate& out) noexcept;
void estimate_memory(const Run& run, const EstimateWorkspace& w, Estimate& out) noexcept;
void estimate_time(const Run& run, const EstimateWorkspace& w, Estimate& out) noexcept;
void estimate_throughput(const Run& run, const EstimateWorkspace& w, Estimate& out) noexcept;

// Parts of these steps, for a search that changes only what they depend on. The topology is of the workspace.

/// What sharding decides of build_units: the rule and, where shards are rounded per unit, each unit's states.
void build_unit_states(const Run& run, EstimateWorkspace& w) noexcept;
/// build_stages without the states, and the states.
void build_chunks(const Run& run, EstimateWorkspace& w) noexcept;
void build_stage_states(const Run& run, EstimateWorkspace& w) noexcept;
void build_stage_states(const Run& run, EstimateWorkspace& w, std::size_t rank) noexcept;
/// What run_pipeline simulates; of the simulation what no time decides, the activations in flight; all of it.
void build_pipeline_spec(const Run& run, EstimateWorkspace& w) noexcept;
void fold_pipeline_memory(const Run& run, EstimateWorkspace& w) noexcept;
void simulate_pipeline(const Run& run, EstimateWorkspace& w) noexcept;

/// What estimate_memory reads once for all stages.
template <class N>
struct MemoryOverheadsOf {
  N framework{};
  N workspaces{};
};
using MemoryOverheads = MemoryOverheadsOf<double>;
MemoryOverheads memory_overheads(const Run& run, const Topology& topology) noexcept;
/// One rank's memory: every field of `out` but the times.
void estimate_stage_memory(const Run& run, const EstimateWorkspace& w, std::size_t rank,
                           const MemoryOverheads& overheads, StageEstimate& out) noexcept;
/// The run's memory from its stages': what fits, and where it is tightest. `host_bytes`, `nvme_bytes`: sums over
/// the ranks.
void conclude_memory(const Run& run, double host_bytes, double nvme_bytes, std::size_t ranks, Estimate& out) noexcept;

/// Estimates a legal run, reusing the workspace's and the result's buffers.
void estimate(const Run& run, EstimateWorkspace& workspace, Estimate& out) noexcept;

}  // namespace shardplan
