// Parameter counts of a published model, folded from the same operator lists as everything else.
#pragma once

#include "shardplan/core/run.hpp"
#include "shardplan/physics/counts.hpp"

namespace shardplan {

/// Exact counts of the model as published: no padding, tied embeddings once, no multi-token-prediction layers.
ModelCounts count_parameters(const Model& model) noexcept;

/// Low-rank adapters of the whole, uncut model.
std::int64_t count_adapters(const Run& run) noexcept;

/// Parameters of one layer kind of the uncut model.
double layer_parameters(const Model& model, const LayerKind& kind) noexcept;

}  // namespace shardplan
