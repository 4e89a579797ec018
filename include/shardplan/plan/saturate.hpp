// Products of counts that were checked one by one, but not together.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace shardplan::plan {

/// The product of counts, at most 2^62. Zero times anything is zero.
constexpr std::int64_t saturating_product(std::initializer_list<std::int64_t> factors) noexcept {
  constexpr std::int64_t most = std::int64_t{1} << 62;
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (product != 0 && factor > most / product) return most;
    product *= factor;
  }
  return product;
}

}  // namespace shardplan::plan
