// What the inputs and steps of the timing formulas are called where formulas are shown.
#pragma once

#include "shardplan/core/dtype.hpp"
#include "shardplan/core/stack.hpp"
#include "shardplan/physics/trace.hpp"

namespace shardplan::timing_names {

inline constexpr std::string_view model = "src/physics/timing.cpp; each rate below names its table or file";
inline constexpr std::string_view tile_model = "tile model of a product (physics/timing_formulas.hpp)";
inline constexpr std::string_view between = "between measured sizes";

// A GPU.
inline constexpr InputName hbm = {"HBM", "HBM bandwidth", "memory_bandwidth", "B/s"};
inline constexpr InputName processors = {"SM", "multiprocessors", "multiprocessors"};
inline constexpr InputName tile_rate = {"tile_rate", "of the peak, what large tiles reach", "gemm.peak_fraction"};
inline constexpr InputName tile_depth = {"k_0", "extra depth that a tile's start costs", "gemm.k0"};
inline constexpr InputName product_hbm_share = {"gemm_HBM_share", "of the HBM bandwidth, what a product reaches",
                                                "gemm.memory_fraction"};
inline constexpr InputName product_launch = {"gemm_launch", "start of a product", "gemm.launch_s", "s"};
inline constexpr InputName sustained = {"sustained", "training rate over the rate of a short benchmark",
                                        "gemm.sustained"};
inline constexpr InputName nic_share = {"nic_share", "of the NIC's bandwidth, what collectives reach", "fabrics"};

/// The dense peak in a precision.
constexpr InputName peak(Precision precision) noexcept {
  switch (precision) {
    case Precision::fp32: return {"peak_fp32", "dense peak of the GPU in fp32", "peak_tflops", "FLOP/s"};
    case Precision::tf32: return {"peak_tf32", "dense peak of the GPU in tf32", "peak_tflops", "FLOP/s"};
    case Precision::fp16: return {"peak_rate", "dense peak of the GPU in fp16", "peak_tflops", "FLOP/s"};
    case Precision::bf16: return {"peak_rate", "dense peak of the GPU in bf16", "peak_tflops", "FLOP/s"};
    case Precision::fp8: return {"peak_fp8", "dense peak of the GPU in fp8", "peak_tflops", "FLOP/s"};
    case Precision::nvfp4: return {"peak_nvfp4", "dense peak of the GPU in nvfp4", "peak_tflops", "FLOP/s"};
  }
  return {};
}

inline constexpr InputName plain_peak = {"peak_rate", "dense peak of the GPU in 16 bit", "peak_tflops", "FLOP/s"};
inline constexpr InputName narrow = {"narrow", "rate of narrow products over 16 bit", "peak_tflops; the stack's share"};
constexpr InputName flash_forward(FlashKernel kernel) noexcept {
  constexpr std::string_view meaning = "flash attention's share of the peak at long sequences, forward";
  switch (kernel) {
    case FlashKernel::v1: return {"flash_forward", meaning, "attention.flash-v1.forward"};
    case FlashKernel::v2: return {"flash_forward", meaning, "attention.flash-v2.forward"};
    case FlashKernel::v3: return {"flash_forward", meaning, "attention.flash-v3.forward"};
  }
  return {};
}
constexpr InputName flash_backward(FlashKernel kernel) noexcept {
  constexpr std::string_view meaning = "flash attention's share of the peak at long sequences, backward";
  switch (kernel) {
    case FlashKernel::v1: return {"flash_backward", meaning, "attention.flash-v1.backward"};
    case FlashKernel::v2: return {"flash_backward", meaning, "attention.flash-v2.backward"};
    case FlashKernel::v3: return {"flash_backward", meaning, "attention.flash-v3.backward"};
  }
  return {};
}
constexpr InputName flash_half_rate(FlashKernel kernel) noexcept {
  constexpr std::string_view meaning = "sequence at which flash attention reaches half of its rate";
  switch (kernel) {
    case FlashKernel::v1: return {"s_0", meaning, "attention.flash-v1.s0"};
    case FlashKernel::v2: return {"s_0", meaning, "attention.flash-v2.s0"};
    case FlashKernel::v3: return {"s_0", meaning, "attention.flash-v3.s0"};
  }
  return {};
}

// A stack.
inline constexpr InputName elementwise = {"elementwise", "on the bytes of element-wise kernels", "elementwise_factor"};
inline constexpr InputName uncompiled = {"uncompiled", "the same without torch.compile", "uncompiled_factor"};
inline constexpr InputName permutation = {"permutation", "on the bytes of dispatch and combine", "permutation_factor"};
inline constexpr InputName grouped = {"grouped", "a grouped product's rate over one product's",
                                      "grouped_product_share"};
inline constexpr InputName expert_start = {"expert_start", "per local expert, product and direction", "expert_start_s",
                                           "s"};
inline constexpr InputName weight_gradient_share = {"weight_gradient", "rate of weight gradients over the forward rate",
                                                    "weight_gradient_share"};
inline constexpr InputName batched = {"batched", "unfused attention's products, of the peak", "batched_product_share"};
inline constexpr InputName misaligned = {"misaligned", "heads whose size is no multiple of 8",
                                         "misaligned_head_slowdown"};
inline constexpr InputName narrow_head = {"narrow_head", "rate at heads of 64 over 128", "narrow_head_share"};

// A cluster.
inline constexpr InputName link = {"link", "bandwidth inside a node, one GPU and direction", "intra_node.bandwidth",
                                   "B/s"};
inline constexpr InputName link_share = {"link_share", "of it, what large collectives reach", "intra_node.efficiency"};
inline constexpr InputName latency = {"latency", "start of a message inside a node", "intra_node.latency", "s"};
inline constexpr InputName nic = {"nic", "bandwidth between nodes, one GPU and direction", "inter_node.bandwidth",
                                  "B/s"};
inline constexpr InputName nic_latency = {"nic_latency", "start of a message between nodes", "inter_node.latency", "s"};
inline constexpr InputName slowdown = {"slowdown", "own collectives over the built-in table", "efficiency.collectives"};
inline constexpr InputName link_ratio = {"link_ratio", "link of the table's GPU over this cluster's",
                                         "intra_node.bandwidth"};

// The layout.
inline constexpr InputName ranks_per_node = {"per_node", "members of the group in one node", "parallel.order"};
inline constexpr InputName log2_nodes = {"log2_nodes", "log2 of the nodes that the group spans", "parallel.order"};

inline constexpr InputName context = {"c", "context parallel (parallel.context)"};
inline constexpr InputName flash_rows = {"rows", "queries and keys that one kernel sees"};

// The model of the step's time (docs/validation.md).
inline constexpr InputName hbm_share = {"HBM_share", "of the HBM bandwidth, what element-wise kernels reach"};
inline constexpr InputName launch = {"launch", "start of a kernel", "", "s"};
inline constexpr InputName node_step = {"node_step", "start of a pass, per log2 of the nodes", "", "s"};
inline constexpr InputName half_rate = {"half_rate", "message at which NVLink reaches half of its rate", "", "B"};

inline constexpr InputName cast_bytes = {"cast_bytes", "HBM traffic of casts per element", "", "B"};
inline constexpr InputName window_tile = {"window_tile", "keys of a flash kernel's tile"};

// Steps.
inline constexpr std::string_view traffic = "include/shardplan/physics: element-wise HBM traffic of the operator";
inline constexpr StepName forward_bytes = {"bytes", "forward_bytes", "bytes through HBM, forward", "B", traffic};
inline constexpr StepName backward_bytes = {"bytes", "backward_bytes", "bytes through HBM, backward", "B", traffic};
inline constexpr StepName score_flop = {"FLOP", "forward_flop", "scores in full", "FLOP", model};
inline constexpr StepName score_flop_backward = {"FLOP", "backward_flop", "scores in full", "FLOP", model};
inline constexpr StepName adapters_time = {"adapters", "adapters_time", "its adapters, one direction", "s", model};
inline constexpr StepName flash_shape = {"shape", "shape", "", "fraction", between};
inline constexpr StepName product_share = {"share", "share", "", "fraction", between};
inline constexpr StepName product_flop = {"FLOP", "../forward_flop", "of one of the operator's three products", "FLOP",
                                          model};
inline constexpr StepName product_edge = {"edge", "edge", "the nearest product that was measured", "s", between};
inline constexpr StepName product_tiles = {"tiles", "tiles", "by the tile model", "s", tile_model};
inline constexpr StepName product_tiles_edge = {"tiles_edge", "tiles_edge",
                                                "the nearest measured product by the tile model", "s", tile_model};
inline constexpr StepName measured_call = {"measured", "measured", "", "s", between};
inline constexpr StepName measured_start = {"small", "small", "the same of 64 KiB, the start of a call", "s", between};

// Steps of an operator and of a unit.
inline constexpr StepName operator_forward = {"forward", "forward", "forward", "s", model};
inline constexpr StepName operator_backward = {"backward", "backward", "backward", "s", model};
inline constexpr StepName operator_input_gradient = {"input_gradient", "input_gradient", "gradient of its input", "s",
                                                     model};
inline constexpr StepName operator_weight_gradient = {"weight_gradient", "weight_gradient", "gradient of its weights",
                                                      "s", model};
inline constexpr StepName operator_both_gradients = {"backward", "backward", "backward", "s", "sum of its parts"};
inline constexpr StepName unit_products = {"gemm", "gemm_time", "matrix products, forward, backward and again", "s",
                                           model};
inline constexpr StepName unit_attention = {"attention", "attention_time", "attention, forward, backward and again",
                                            "s", model};

}  // namespace shardplan::timing_names
