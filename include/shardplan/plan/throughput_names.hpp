// What parameters, FLOP of a token and rates are called where formulas are shown.
#pragma once

#include "shardplan/physics/operator.hpp"
#include "shardplan/physics/trace.hpp"

namespace shardplan::throughput_names {

inline constexpr std::string_view palm = "arXiv:2204.02311 appendix B";
inline constexpr std::string_view config = "config.json of the model";

// Inputs.
inline constexpr InputName sequences = {"gbs", "sequences of a step (training.global_batch_size)"};
inline constexpr InputName tokens = {"s", "tokens of a sequence (training.seq_length)"};
inline constexpr InputName gpus = {"G", "GPUs (num_gpus)"};
inline constexpr InputName vocabulary = {"vocab", "tokens of the vocabulary"};
inline constexpr InputName vocab_multiple = {"vocab_multiple", "what each tensor rank's rows are a multiple of"};
inline constexpr InputName tensor = {"t", "tensor parallel (parallel.tensor)"};
inline constexpr InputName mtp_layers = {"mtp_layers", "multi-token prediction modules"};
inline constexpr InputName recomputed_share = {"recomputed_share", "of the layers, those that full:N runs again"};
inline constexpr InputName price = {"price_per_gpu_hour", "of a GPU hour", "price_per_gpu_hour"};

/// Parameters of a part of the model.
constexpr StepName part(Part of) noexcept {
  switch (of) {
    case Part::embedding: return {"embedding", "model.parameters_by_part.embedding", "embedding", "", config};
    case Part::attention: return {"attention", "model.parameters_by_part.attention", "attention", "", config};
    case Part::mlp: return {"mlp", "model.parameters_by_part.mlp", "mlp", "", config};
    case Part::experts: return {"experts", "model.parameters_by_part.experts", "experts", "", config};
    case Part::router: return {"router", "model.parameters_by_part.router", "router", "", config};
    case Part::norm: return {"norm", "model.parameters_by_part.norm", "norm", "", config};
    case Part::head: return {"head", "model.parameters_by_part.head", "head", "", config};
  }
  return {};
}

inline constexpr StepName adapters = {"adapters", "model.parameters_by_part.adapters", "low-rank adapters", "",
                                      "arXiv:2106.09685 section 4.1: r (in + out) a matrix"};
inline constexpr StepName parameters = {"parameters", "model.parameters", "of the published model: unpadded, tied once",
                                        "", config};
inline constexpr StepName idle = {"idle", "model.idle_parameters", "experts that a token does not visit", "", config};
inline constexpr StepName active = {"N_active", "model.active_parameters", "parameters that a token passes", "",
                                    config};
inline constexpr StepName trainable = {"trainable", "model.trainable_parameters", "parameters that train", "", config};
inline constexpr StepName padded_vocabulary = {"padded", "model.padded_vocab_size",
                                               "rows of the vocabulary with padding", "",
                                               "make_vocab_size_divisible_by x t (Megatron-LM)"};

// FLOP of a token; the trace adds the kind of layer behind a dot.
inline constexpr StepName layer = {"layer", "layer", "FLOP of one layer and token, forward and backward", "FLOP", palm};
inline constexpr StepName layer_score = {"layer_score", "layer_score", "of it, attention scores in full", "FLOP", palm};
inline constexpr StepName layer_again = {"again", "layer_again", "FLOP of one layer and token that run again", "FLOP",
                                         palm};
inline constexpr StepName module = {"module", "module", "FLOP of one prediction module's block and projection", "FLOP",
                                    palm};
inline constexpr StepName module_score = {"module_score", "module_score", "of it, attention scores in full", "FLOP",
                                          palm};
inline constexpr StepName head = {"head", "throughput.head", "FLOP of the head and one token", "FLOP", palm};
inline constexpr StepName total_flop = {"FLOP", "throughput.model_flop_per_token", "FLOP of a token, scores in full",
                                        "FLOP", palm};
inline constexpr StepName score_flop = {"score", "throughput.score_flop_per_token", "of it, attention scores in full",
                                        "FLOP", palm};
inline constexpr StepName causal_flop = {"causal_FLOP", "throughput.causal_flop_per_token",
                                         "FLOP of a token, scores under the causal mask", "FLOP",
                                         "Megatron-LM num_floating_point_operations; sliding windows exact"};
inline constexpr StepName again_flop = {"again", "throughput.again_flop_per_token", "FLOP of a token that run again",
                                        "FLOP", palm};
inline constexpr StepName padding_flop = {"padding", "throughput.padding_flop_per_token",
                                          "FLOP of a token through rows that pad the vocabulary", "FLOP", palm};
inline constexpr StepName more_flop = {"more", "throughput.recomputed_flop_per_token",
                                       "FLOP of a token: what runs again, and the rows that pad the vocabulary", "FLOP",
                                       palm};

// Rates.
inline constexpr StepName tokens_rate = {"tokens", "throughput.tokens_per_s", "tokens a second", "tokens/s",
                                         "arXiv:2104.04473 section 5.1"};
inline constexpr StepName gpu_rate = {"rate", "throughput.tokens_per_s_per_gpu", "tokens a second and GPU", "tokens/s",
                                      "tokens_per_s over num_gpus"};
inline constexpr StepName sample_rate = {"samples", "throughput.samples_per_s", "sequences a second", "1/s",
                                         "global batch over step"};
inline constexpr StepName peak = {"peak", "throughput.peak", "dense rate of the GPU in the compute precision", "FLOP/s",
                                  "shardplan list gpus"};
inline constexpr StepName model_rate = {"model_rate", "throughput.model", "model FLOP a second and GPU", "FLOP/s",
                                        palm};
inline constexpr StepName hardware_rate = {"hardware_rate", "throughput.hardware",
                                           "FLOP a second and GPU with recomputation", "FLOP/s", palm};
inline constexpr StepName mfu = {"mfu", "throughput.mfu", "model FLOP over the peak, scores in full", "fraction", palm};
inline constexpr StepName hfu = {"hfu", "throughput.hfu", "with recomputation", "fraction", palm};
inline constexpr StepName mfu_causal = {"mfu_causal", "throughput.mfu_causal", "with half of the scores", "fraction",
                                        palm};
inline constexpr StepName mfu_6n = {"mfu_6n", "throughput.mfu_6n", "by 6 FLOP a parameter and token", "fraction",
                                    "arXiv:2001.08361 section 2.1"};
inline constexpr StepName gpu_hours = {"hours", "throughput.gpu_hours_per_1e12_tokens", "GPU hours for 10^12 tokens",
                                       "h", "10^12 over the rate"};
inline constexpr StepName cost = {"cost", "throughput.price_per_1e12_tokens", "price of 10^12 tokens", "",
                                  "the cluster's price"};

}  // namespace shardplan::throughput_names
