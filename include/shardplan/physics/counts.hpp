// Parameter counts, by part of the model.
#pragma once

#include <cstdint>

namespace shardplan {

struct ParametersByPart {
  std::int64_t embedding = 0;
  std::int64_t attention = 0;
  std::int64_t mlp = 0;
  std::int64_t experts = 0;
  std::int64_t router = 0;
  std::int64_t norm = 0;
  std::int64_t head = 0;
  std::int64_t adapters = 0;
  std::int64_t total() const noexcept {
    return embedding + attention + mlp + experts + router + norm + head + adapters;
  }
};

struct ModelCounts {
  std::int64_t parameters = 0;         ///< of the published model: no padding, tied once, adapters apart
  std::int64_t active_parameters = 0;  ///< every parameter that a token passes
  std::int64_t trainable_parameters = 0;
  std::int64_t padded_vocab_size = 0;
  ParametersByPart by_part;
};

}  // namespace shardplan
