// From a run to what the operator lists read: symbols with numbers in them, choices as flags.
#pragma once

#include "shardplan/core/run.hpp"
#include "shardplan/physics/ends.hpp"
#include "shardplan/physics/layer_options.hpp"
#include "shardplan/physics/symbols.hpp"

namespace shardplan {

/// Symbols of one layer kind under the run's layout.
Symbols<double> symbols_for(const Run& run, const LayerKind& kind) noexcept;

/// Symbols of a whole, uncut model and one sequence: what parameter counts and model FLOP are folded with.
Symbols<double> whole_model_symbols(const Model& model, const LayerKind& kind, double seq_length) noexcept;

/// Choices of one layer; `frozen_input` where it stands behind a frozen embedding.
LayerOptions options_for(const Run& run, const LayerKind& kind, bool frozen_input) noexcept;

/// Choices of a whole model that only counts: everything trains, nothing is adapted.
LayerOptions whole_model_options(const Model& model) noexcept;

/// The loss of the run.
LossBytes loss_bytes_for(const Run& run) noexcept;

/// Autocast over fp32 weights: fp32 residual stream, 16-bit copies of the weights. FSDP gathers 16-bit weights, so
/// there autocast finds nothing to cast.
bool autocast_over_fp32(const Run& run) noexcept;

/// An fp32 norm in front of a quantised linear makes the residual stream and the MLP fp32 (k-bit preparation, or
/// LayerNorm under autocast; a stack may run a quantised base in fp32 throughout).
bool quantized_stream_is_fp32(const Run& run) noexcept;

}  // namespace shardplan
