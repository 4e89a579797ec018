// What the backward pass holds for a moment, beyond states, gradients and kept activations.
#pragma once

#include <cstdint>

#include "shardplan/physics/layer_options.hpp"
#include "shardplan/physics/operator.hpp"
#include "shardplan/physics/symbols.hpp"

namespace shardplan {

/// The parts of a layer's transient.
struct LayerTransient {
  double gradient = 0;         ///< dY, the incoming gradient
  double inner = 0;            ///< the most that gradients inside the layer hold, less what has been freed by then
  double weight_gradient = 0;  ///< a weight gradient that stays; one that is added and freed is part of `inner`

  double total() const noexcept { return gradient + inner + weight_gradient; }
};

/// What becomes of a weight gradient that its product has made.
///   added: into a buffer that exists already, then freed (accumulation, bucket views, DeepSpeed's buckets).
///   stays: it is the gradient (a loop that set gradients to None), or waits unsharded for its unit (FSDP).
enum class MadeGradient : std::uint8_t { added, stays };

/// The largest of six points of one layer's backward, as parts. T tokens, P bytes of the MLP's product, Y of the
/// hidden state (1/t of it with sequence parallelism), Y' of the whole one (activations.md section 5, measured to the
/// byte; memory.md section 3).
///   last linear:    d(product) P, its weight's gradient 2fh, with dropout its gradient less the mask Y - Y/2, with
///                   sequence parallelism the gathered gradient Y'.
///   activation:     d(product), d(gate), d(up) 3P, less the product where it was kept and is freed by then.
///   column input:   with sequence parallelism, the gathered input and its gradient before they are scattered 2Y',
///                   d(gate, up) 2P, less all that the MLP kept behind it (Megatron-Core tensor_parallel/layers.py,
///                   LinearWithGradAccumulationAndAsyncCommunication.backward).
///   context gather: with all-gathered keys and values, both and their gradients whole, the gradients of q, k, v and of
///                   the output, less all that was kept behind the core.
///   attention core: unfused, the gradients of the probabilities (2as^2b, 4as^2b in fp32), of q, k, v and the output,
///   the scores
///                   again under selective recomputation, less all that was kept behind the core.
///   weight norm:    DoRA's norm of W + sBA, written out: the product BA, its multiple and the sum, and the identity
///   that
///                   makes it (PEFT dora.py).
/// Less of the first where weights are frozen: their gradients do not exist.
LayerTransient layer_transient(const Symbols<double>& v, const LayerOptions& o, const LayerKind& kind,
                               const OperatorList<double>& list, const Recompute& recompute,
                               MadeGradient made) noexcept;

/// Bytes that torchtitan's op-level checkpointing keeps of a layer: its input, the attention core's output with its
/// log-sum-exp, and every second matrix product's output (torchtitan parallelize_llama.py, _save_list).
double op_level_kept_bytes(const Symbols<double>& v, const LayerKind& kind) noexcept;

}  // namespace shardplan
