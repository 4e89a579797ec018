// What the steps of a unit's memory are called where formulas are shown.
#pragma once

#include "shardplan/physics/trace.hpp"

namespace shardplan::memory_names {

inline constexpr std::string_view autograd =
    "arXiv:2205.05198 section 4; PyTorch autograd, measured (docs/validation.md)";
inline constexpr std::string_view measured = "PyTorch autograd, measured (docs/validation.md)";
inline constexpr std::string_view op_level = "torchtitan parallelize_llama.py, _save_list";

/// What an operator keeps for backward.
constexpr StepName saved_by(std::string_view op) noexcept { return {op, "saved", "keeps for backward", "B", autograd}; }

// Op-level recomputation.
inline constexpr StepName ops_input = {"input", "kept.input", "its input", "B", op_level};
inline constexpr StepName ops_attention = {"attention", "kept.attention",
                                           "attention's output and log-sum-exp, and every second projection's", "B",
                                           op_level};
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
inline constexpr StepName context_gather_point = {
    "gathered_keys", "transient.context_gather", "held in the backward of attention, keys and values gathered", "B",
    measured};
inline constexpr StepName attention_core_point = {"attention_core", "transient.attention_core",
                                                  "held in the backward of unfused attention", "B", measured};
inline constexpr StepName weight_norm_point = {"weight_norm", "transient.weight_norm", "held by DoRA's norm of W + sBA",
                                               "B", "PEFT dora.py"};
inline constexpr StepName inside_layer = {"inside", "transient.inside", "the most that its gradients hold at once", "B",
                                          measured};

}  // namespace shardplan::memory_names
