// Rates measured on GPUs, as compiled in: trilinear look-ups on uniform log grids.
//
// Source of the points: NVIDIA aiconfigurator (Apache-2.0), in configs/measured; src/physics/tables/resample.cpp puts
// them on the grids. A look-up costs about 20 ns and allocates nothing.
#pragma once

#include <string>
#include <string_view>

#include "shardplan/physics/collective.hpp"

namespace shardplan {

inline constexpr int no_measured_table = -1;

/// Index of a GPU's tables by its name (case ignored), or no_measured_table.
int measured_table(std::string_view gpu) noexcept;

/// Every GPU that has tables, one text: "a100-sxm-80gb, b200 ...".
std::string measured_gpus();

/// Whose table it is: "h100-sxm-80gb".
std::string_view measured_gpu(int table) noexcept;

bool has_gemm_table(int table) noexcept;
bool has_collective_table(int table) noexcept;

/// The box of measured products: 512 to 32,768 rows, 512 to 65,536 columns and depth.
inline constexpr double least_measured_size = 512;
inline constexpr double most_measured_rows = 32768;
inline constexpr double most_measured_columns = 65536;

/// One bf16 product (m x k)(k x n), sizes clamped to the box: its rate over the GPU's dense peak.
double measured_gemm_share(int table, double m, double n, double k) noexcept;

bool has_attention_table(int table) noexcept;

/// Causal flash attention forward, its share of the dense peak: head dimension, sequence length and heads of all
/// batches, clamped to what was measured (64 and 128; 1,024 to 16,384; 4 to 384).
double measured_attention_share(int table, double head_dim, double length, double heads) noexcept;

/// Link bandwidth of the GPU that the collectives were measured on, bytes/s per direction.
double measured_link_bandwidth(int table) noexcept;

/// Seconds of a collective of `message` bytes (the whole tensor over its group) over `ranks` GPUs of one NVLink domain.
/// Beyond the measured sizes it grows with the bytes; beyond eight ranks rings keep their bus bandwidth.
double measured_collective_seconds(int table, Collective op, double ranks, double message) noexcept;

}  // namespace shardplan
