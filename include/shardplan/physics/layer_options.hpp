// The choices that shape a layer's operator list, resolved into plain enums and flags before any formula.
#pragma once

#include "shardplan/core/run.hpp"
#include "shardplan/physics/matrices.hpp"

namespace shardplan {

/// What an adapted linear keeps of its input.
///   shared: the base layer's input, once for all linears that read it (no dropout, no cast).
///   own_copy: a copy per linear, `adapter_copy_bytes` wide (a cast to fp32, or dropout).
enum class AdapterInput : std::uint8_t { shared, own_copy };

struct LayerOptions {
  Kernels kernels;
  AttentionKernel attention = AttentionKernel::flash;
  Norm norm = Norm::rmsnorm;
  Activation activation = Activation::silu;
  bool rope = true;
  bool dropout = false;  ///< hidden dropout has a mask
  bool attention_dropout = false;
  bool base_trains = true;           ///< false under PEFT
  bool input_needs_gradient = true;  ///< false: layer 0 behind a frozen embedding
  bool autocast_copies = false;      ///< 16-bit copies of fp32 weights live until the layer's backward
  bool stream_fp32 = false;
  bool activations_fp32 = false;  ///< fp32 and tf32 runs: four bytes an activation
  // Adapters.
  MatrixSet adapted = 0;
  MatrixSet fused_modules = 0;  ///< matrices that are one module of the model: adapted together, they share an adapter
  AdapterInput adapter_input = AdapterInput::shared;
  double adapter_copy_bytes = 2;  ///< of one element of an own copy
  bool adapter_mask = false;      ///< a byte per element for the dropout mask
  bool adapter_fused = false;
  bool dora = false;
  // Quantised base.
  bool quantized = false;
  bool quantized_keeps_input = false;
  double narrow_input_bytes = 0;  ///< of an element of a product's input as fp8 runs keep it; 0: as wide as it is
  // Layout.
  bool tensor = false;
  bool sequence_parallel = false;
  bool context = false;
  ContextComm context_comm = ContextComm::ring;
  bool expert = false;
  bool expert_tensor = false;
  bool attention_copy_for_a2a = false;  ///< Transformer Engine keeps the output before and after Ulysses' all-to-all
  bool fused_qkv_adapters = false;      ///< q, k and v adapters share one dropped input (LitGPT LoRAQKVLinear)
};

}  // namespace shardplan
