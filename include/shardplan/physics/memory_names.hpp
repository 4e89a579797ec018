// What the steps of a unit's memory are called where formulas are shown.
#pragma once

#include "shardplan/physics/trace.hpp"

namespace shardplan::memory_names {

inline constexpr std::string_view autograd =
    "arXiv:2205.05198 section 4; PyTorch autograd, measured (docs/validation.md)";
inline constexpr std::string_view operators_list = "sum over the operators of include/shardplan/physics";
inline constexpr std::string_view palm = "arXiv:2204.02311 appendix B";
inline constexpr std::string_view measured = "PyTorch autograd, measured (docs/validation.md)";
inline constexpr std::string_view op_level = "torchtitan parallelize_llama.py, _save_list";

/// What an operator keeps for backward.
constexpr StepName saved_by(std::string_view op) noexcept { return {op, "saved", "", "B", autograd}; }

/// What of it stays under the run's recomputation.
constexpr StepName kept_by(std::string_view op) noexcept { return {op, "kept", "", "B", autograd}; }
constexpr StepName parameters_of(std::string_view op) noexcept { return {op, "parameters", "", "", operators_list}; }
constexpr StepName forward_flop_of(std::string_view op) noexcept { return {op, "forward_flop", "", "FLOP", palm}; }
constexpr StepName backward_flop_of(std::string_view op) noexcept { return {op, "backward_flop", "", "FLOP", palm}; }

// Sums over a unit's operators.
inline constexpr StepName unit_saved = {"saved", "saved", "keeps for backward, one microbatch", "B", autograd};
inline constexpr StepName unit_checkpoint = {"checkpoint", "checkpoint", "its input", "B",
                                             "arXiv:1604.06174; arXiv:2205.05198 section 5"};
inline constexpr StepName unit_kept = {"kept", "kept", "keeps under the run's recomputation", "B", autograd};
inline constexpr StepName unit_kept_by_operator = {"kept", "kept", "keeps under the run's recomputation", "B",
                                                   op_level};

/// Weights of a unit, dense or of experts. What is counted tensor by tensor depends on the optimizer.
struct WeightNames {
  StepName trained, narrow, frozen, quantized, quantized_rows, adapters;
  StepName counted, counted_bytes, treated, adapter_counted, adapter_counted_bytes, unpaged_bytes, largest_bytes;
  StepName step_bytes, largest_tensor;
};
inline constexpr std::string_view by_tensor = "the optimizer's states, tensor by tensor (list optimizers)";
inline constexpr WeightNames dense_weights = {
    {"P", "trained", "trained parameters on this rank", "", operators_list},
    {"P_narrow", "narrow", "parameters that are multiplied narrow on this rank", "", operators_list},
    {"P_frozen", "frozen", "frozen parameters on this rank", "", operators_list},
    {"P_quantized", "quantized", "quantized parameters on this rank", "", operators_list},
    {"rows", "quantized_rows", "rows of quantized matrices on this rank", "", operators_list},
    {"P_adapters", "adapters", "parameters of adapters on this rank", "", operators_list},
    {"counted", "counted", "elements counted tensor by tensor", "", by_tensor},
    {"counted_bytes", "counted_bytes", "states counted tensor by tensor", "B", by_tensor},
    {"treated", "treated", "elements of matrices of the optimizer", "", by_tensor},
    {"adapter_counted", "adapter_counted", "adapter elements counted", "", by_tensor},
    {"adapter_bytes", "adapter_bytes", "adapter states counted", "B", by_tensor},
    {"unpaged", "unpaged", "states too small to page", "B", by_tensor},
    {"largest", "largest", "states of the largest matrix", "B", by_tensor},
    {"matrix_step", "matrix_step", "the most that stepping one matrix holds on the side", "B", by_tensor},
    {"largest_tensor", "largest_tensor", "elements of the largest tensor that trains", "", operators_list}};
inline constexpr WeightNames expert_weights = {
    {"P_experts", "trained_experts", "trained parameters of experts on this rank", "", operators_list},
    {"P_narrow_experts", "narrow_experts", "parameters of experts that are multiplied narrow on this rank", "",
     operators_list},
    {"P_frozen_experts", "frozen_experts", "frozen parameters of experts on this rank", "", operators_list},
    {"P_quantized_experts", "quantized_experts", "quantized parameters of experts on this rank", "", operators_list},
    {"rows_experts", "quantized_rows_experts", "rows of experts' quantized matrices on this rank", "", operators_list},
    {"P_adapters_experts", "adapters_experts", "parameters of experts' adapters on this rank", "", operators_list},
    {"counted_experts", "counted_experts", "elements of experts counted tensor by tensor", "", by_tensor},
    {"counted_bytes_experts", "counted_bytes_experts", "states of experts counted tensor by tensor", "B", by_tensor},
    {"treated_experts", "treated_experts", "elements of experts' matrices of the optimizer", "", by_tensor},
    {"adapter_counted_experts", "adapter_counted_experts", "elements of experts' adapters counted", "", by_tensor},
    {"adapter_bytes_experts", "adapter_bytes_experts", "states of experts' adapters counted", "B", by_tensor},
    {"unpaged_experts", "unpaged_experts", "states of experts too small to page", "B", by_tensor},
    {"largest_experts", "largest_experts", "states of the largest matrix of an expert", "B", by_tensor},
    {"matrix_step_experts", "matrix_step_experts", "the most that stepping one matrix of an expert holds on the side",
     "B", by_tensor},
    {"largest_tensor_experts", "largest_tensor_experts", "elements of an expert's largest tensor that trains", "",
     operators_list}};

// States of a unit whose shards are rounded for themselves.
inline constexpr std::string_view zero = "arXiv:1910.02054 section 5; docs/run.md, states of each framework";
inline constexpr std::string_view optimizer_states = "shardplan list optimizers; arXiv:1910.02054 section 5";
inline constexpr StepName unit_parameters = {"parameters", "parameters", "bytes of parameters on this rank", "B", zero};
inline constexpr StepName unit_gradients = {"gradients", "gradients", "bytes of gradients on this rank", "B", zero};
inline constexpr StepName unit_optimizer = {"optimizer", "optimizer", "bytes of optimizer states on this rank", "B",
                                            zero};

// Op-level recomputation.
inline constexpr StepName ops_input = {"input", "kept.input", "its input", "B", op_level};
inline constexpr StepName ops_attention = {
    "attention", "kept.attention", "attention's output and log-sum-exp, and every second projection's", "B", op_level};
inline constexpr StepName ops_mlp = {"mlp", "kept.mlp", "every second output of its MLP's products", "B", op_level};

// The most that a layer's backward holds, and its points.
inline constexpr StepName output_gradient = {"dY", "transient.output_gradient", "gradient of its output", "B",
                                             measured};
inline constexpr StepName product_gradient = {"dP", "transient.product_gradient",
                                              "gradient of what the MLP's last linear reads", "B", measured};
inline constexpr StepName made_weight_gradient = {"dW", "transient.weight_gradient",
                                                  "gradient of one weight of the MLP in 16 bit", "B", measured};
inline constexpr StepName kept_behind_input = {"freed", "transient.freed_behind_input",
                                               "kept behind the MLP's input, free by then", "B", autograd};
inline constexpr StepName kept_behind_attention = {"freed", "transient.freed_behind_attention",
                                                   "kept behind the attention core, free by then", "B", autograd};
inline constexpr StepName scores_again = {"scores", "transient.scores_again", "scores, recomputed", "B", autograd};
inline constexpr StepName last_linear_point = {"last_linear", "transient.last_linear",
                                               "held in the backward of the MLP's last linear", "B", measured};
inline constexpr StepName activation_point = {"activation", "transient.activation",
                                              "held in the backward of the MLP's activation", "B", measured};
inline constexpr StepName column_input_point = {
    "column_input", "transient.column_input", "held in the backward of the MLP's first linear, its input gathered", "B",
    "Megatron-Core tensor_parallel/layers.py, LinearWithGradAccumulationAndAsyncCommunication.backward"};
inline constexpr StepName context_gather_point = {"gathered_keys", "transient.context_gather",
                                                  "held in the backward of attention, keys and values gathered", "B",
                                                  measured};
inline constexpr StepName attention_core_point = {"attention_core", "transient.attention_core",
                                                  "held in the backward of unfused attention", "B", measured};
inline constexpr StepName weight_norm_point = {"weight_norm", "transient.weight_norm", "held by DoRA's norm of W + sBA",
                                               "B", "PEFT dora.py"};
inline constexpr StepName inside_layer = {"inside", "transient.inside", "the most that its gradients hold at once", "B",
                                          measured};

}  // namespace shardplan::memory_names
