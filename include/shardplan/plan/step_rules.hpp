// What the step's time is made of, for whoever writes it down as formulas: constants and rules of the folds.
#pragma once

#include "shardplan/plan/data_calls.hpp"
#include "shardplan/plan/workspace.hpp"

namespace shardplan {

namespace step_constants {
/// A node-aware dispatcher's share of the NIC's line rate: 43 to 58 GB/s measured over 50 GB/s (DeepEP, README).
inline constexpr double node_aware_efficiency = 0.9;
/// fp8 runs dispatch one byte an element and combine two.
inline constexpr double fp8_dispatch_share = 0.75;
/// Share of a microbatch's work that once-a-step traffic can hide behind (fitted: docs/validation.md).
inline constexpr double hidden_behind_pass = 0.6;
inline constexpr double host_memory_bandwidth = 200e9;  ///< bytes/s of a two-socket node, where a cluster does not say
inline constexpr double offload_hidden = 0.8;  ///< of the compute, that weights and activations can cross PCIe beside
/// Read and written per parameter: gradient, master, moments, new weight.
inline constexpr double cpu_adam_bytes = 28;
inline constexpr double fp32_moments = 8;  ///< bytes of AdamW's two
}  // namespace step_constants

/// Whether the recomputed modules hold what a collective is covered by.
bool covered_by_modules(const Recompute& recompute, Covered covered) noexcept;

GroupKind group_of(CollectiveName name) noexcept;

/// Messages that one rank sends to its pipeline neighbours for one microbatch.
double boundary_sends(const schedule::Shape& shape, int rank) noexcept;

Collective op_of(CollectiveName name) noexcept;

/// Where the bytes of a group's collectives are to be read.
std::string_view volume_source(GroupKind group) noexcept;

/// Fills in what each call of a rank takes and what of it the step waits for. A rank that is done before the others
/// reduces while they finish, one that starts after them gathers while they begin: of both only the rest is waited for.
void cost_calls(const Run& run, const EstimateWorkspace& w, std::size_t rank, DataCalls& calls) noexcept;

/// Bytes per parameter that a step moves through HBM, and those of AdamW with fp32 moments on the same weights and
/// gradients. Moments that are counted tensor by tensor are the stage's own.
struct SteppedWidths {
  double gradient = 0;
  double weight = 0;        ///< of the weight that is written, twice where it is read too
  double master = 0;        ///< one copy; it is read and written
  double moments = 0;       ///< the same
  double adamw_weight = 0;  ///< as `weight` of that AdamW
  double adamw_master = 0;  ///< as `master`
};
SteppedWidths stepped_widths(const Run& run, const StateRule& rule, const Optimizer& optimizer) noexcept;

double pcie_bandwidth(const Cluster& cluster) noexcept;
double nvme_bandwidth(const Host& host) noexcept;
double host_memory_rate(const Host& host) noexcept;

/// Elements that this rank's optimizer steps over.
double stepped(const EstimateWorkspace& w, const Stage& stage) noexcept;

/// Seconds of the optimizer's step on one rank's card.
double optimizer_seconds(const Run& run, const EstimateWorkspace& w, const Stage& stage) noexcept;

/// Pages that the card has no room for at the peak leave it and come back each step.
double paged_out(const Run& run, const Stage& stage, const StageEstimate& memory, double capacity) noexcept;

}  // namespace shardplan
