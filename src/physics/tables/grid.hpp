// The grids that measured points are resampled onto.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shardplan::tables {

// Matrix products: m from 2^9 to 2^15, n and k from 2^9 to 2^16, in half octaves.
inline constexpr double gemm_first = 9;
inline constexpr int gemm_rows = 13;
inline constexpr int gemm_cols = 15;
inline constexpr std::size_t gemm_values = std::size_t{gemm_rows} * gemm_cols * gemm_cols;
inline constexpr double gemm_unit = 2048;  ///< a value is log2(rate / dense peak) in these steps

// Flash attention: head dimensions 64 and 128, sequences from 2^10 to 2^14, heads of all batches from 2^2 to 2^8.5, the
// latter two in half octaves.
inline constexpr double attention_first_head = 6;
inline constexpr double attention_first_length = 10;
inline constexpr double attention_first_heads = 2;
inline constexpr int attention_head_sizes = 2;
inline constexpr int attention_lengths = 9;
inline constexpr int attention_heads = 14;
inline constexpr std::size_t attention_values = std::size_t{attention_head_sizes} * attention_lengths * attention_heads;
inline constexpr double attention_unit = 2048;  ///< a value is log2(rate / dense peak) in these steps

// Collectives: 2, 4 and 8 ranks, messages from 2^9 to 2^29 bytes.
inline constexpr std::array<std::string_view, 4> collective_names = {"all_reduce", "all_gather", "reduce_scatter",
                                                                     "all_to_all"};
inline constexpr int collective_first = 9;
inline constexpr int collective_sizes = 21;
inline constexpr int collective_ranks = 3;
inline constexpr std::size_t collective_values = collective_names.size() * collective_ranks * collective_sizes;
inline constexpr double collective_unit = 1024;  ///< a value is log2(microseconds) in these steps
inline constexpr std::int16_t missing = -32768;  ///< not measured

}  // namespace shardplan::tables
