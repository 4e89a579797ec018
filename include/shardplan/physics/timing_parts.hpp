// What the times of timing.hpp are made of, for whoever writes them down as formulas.
#pragma once

#include "shardplan/physics/timing.hpp"

namespace shardplan {

namespace timing_constants {
inline constexpr double elementwise_bandwidth_share = 0.8;
inline constexpr double launch_s = 3e-6;
inline constexpr double window_tile = 128;            ///< keys of a flash kernel's tile
inline constexpr double half_rate_bytes = 2.0e6;      ///< message at which NVLink reaches half of that
inline constexpr double small_message_bytes = 65536;  ///< bytes of it hardly matter beside the start of a collective
inline constexpr double inter_node_step_s = 40e-6;    ///< start-up of a pass over nodes, per log2(nodes)
/// A ring step's output is read in 16 bit and added to the fp32 sum, which is read and written.
inline constexpr double merged_bytes = 2 + 4 + 4;
inline constexpr double tile_rows[3] = {256, 128, 64};
inline constexpr double tile_share[3] = {1.0, 0.97, 0.93};  ///< of peak_fraction, by tile_rows
inline constexpr double padded_rows_below = 1024;           ///< kernels pad fewer rows to tiles of 128
inline constexpr double padded_columns_below = 4096;        ///< and fewer columns
}  // namespace timing_constants

/// The 16-bit (or fp32) rate that attention scores, router and the like run at.
double plain_peak(const Gpu& gpu, Precision precision) noexcept;

/// How a narrow product runs against a 16-bit one of the same shape.
struct NarrowRate {
  double speed_up = 1;
  double cast_bytes = 0;  ///< HBM traffic per element of each product's inputs
};

/// `plain`: the peak of the 16-bit product, FLOP/s.
NarrowRate narrow_rate(const Gpu& gpu, const Training& training, double plain) noexcept;

/// How one operator's products run: in `precision`, sped up where they are narrower, at `share` of one product's rate
/// where they are grouped.
struct ProductRate {
  Precision precision = Precision::bf16;
  NarrowRate narrow;
  double share = 1;
};

ProductRate product_rate(const Run& run, Part part, OperatorKind kind) noexcept;

/// The flash kernels that a run's attention runs, and whether their rates at its sizes were measured.
struct FlashRate {
  FlashKernel kernel = FlashKernel::v2;
  const AttentionEfficiency& efficiency;
  bool tabulated = false;
};

FlashRate flash_rate(const Gpu& gpu, const Training& training) noexcept;

/// Whether the last context rank sees nearly all keys of a causal mask.
bool unbalanced_context(const Run& run) noexcept;

constexpr bool is_product(OperatorKind kind) noexcept {
  return kind == OperatorKind::gemm || kind == OperatorKind::grouped_gemm;
}

}  // namespace shardplan
