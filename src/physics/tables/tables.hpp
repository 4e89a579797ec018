// Measured rates of matrix products and collectives, compiled in.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "grid.hpp"

namespace shardplan::tables {

struct MeasuredTables {
  std::string_view gpu;                       ///< lower case
  const std::int16_t* gemm = nullptr;         ///< [m][n][k], bf16; nullptr: not measured
  const std::int16_t* collectives = nullptr;  ///< [op][ranks][size]; nullptr: not measured
  const std::int16_t* attention = nullptr;    ///< [head size][length][heads]; nullptr: not measured
  double link_bandwidth = 0;                  ///< of the collectives' GPU, bytes/s per direction
};

std::span<const MeasuredTables> measured_tables() noexcept;

}  // namespace shardplan::tables
