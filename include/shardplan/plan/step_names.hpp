// What the steps of a step's time are called where formulas are shown.
#pragma once

#include "shardplan/physics/timing_names.hpp"

namespace shardplan::step_names {

inline constexpr std::string_view timing =
    "src/physics/timing.cpp, src/plan; each rate below it names its table or file";
inline constexpr std::string_view ring = "Patarasuk, Yuan 2009, doi:10.1016/j.jpdc.2008.09.002";
inline constexpr std::string_view sum = "sum of its parts";
inline constexpr std::string_view simulated = "the simulated schedule (docs/schedules.md)";
inline constexpr std::string_view mtp =
    "DeepSeek-V3, arXiv:2412.19437 section 2.2: a block, a projection, a head's pass";

// Inputs.
inline constexpr InputName microbatches = {"m", "microbatches of a step"};
inline constexpr InputName top_k = {"k_top", "experts that a token goes to"};
inline constexpr InputName expert_nodes = {"nodes", "nodes that the expert group spans"};
inline constexpr InputName causal = {
    "causal", "of the scores, what the causal mask leaves: mean keys a query sees over those it is scored against"};
inline constexpr InputName mtp_layers = {"mtp_layers", "multi-token prediction modules"};
inline constexpr InputName tensor = {"t", "tensor parallel (parallel.tensor)"};

// A stack's.
inline constexpr InputName tp_hidden = {"tp_hidden", "share that overlap.tp hides", "tp_hidden"};
inline constexpr InputName expert_hidden = {"expert_hidden", "share of an exchange that hides", "expert_hidden"};
inline constexpr InputName all_to_all_spread = {"spread", "all-to-all over more than 8 ranks of a domain",
                                                "all_to_all_spread"};
inline constexpr InputName host_forward = {"host_forward", "the host's launches of a layer's forward pass",
                                           "host_forward_s", "s"};
inline constexpr InputName host_backward = {"host_backward", "the host's launches of a layer's backward pass",
                                            "host_backward_s", "s"};
inline constexpr InputName host_tensor = {"host_tensor", "more of them under tensor parallelism",
                                          "host_tensor_parallel_s", "s"};
inline constexpr InputName host_microbatch = {"host", "host work of a microbatch", "host_per_microbatch_s", "s"};
inline constexpr InputName loss_bytes = {"loss_bytes", "HBM traffic per logit and direction", "loss_bytes_per_logit",
                                         "B"};

// The model of the step's time.
inline constexpr InputName node_aware = {"node_aware",
                                         "of the NIC's bandwidth, what a node-aware dispatcher reaches (DeepEP)"};
inline constexpr InputName fp8_dispatch = {"fp8_dispatch", "bytes of fp8 dispatch and 16-bit combine over 16 bit"};

// Steps of a unit.
inline constexpr StepName call_bytes = {"bytes", "call_bytes", "bytes that one GPU sends in a call", "B", ring};
inline constexpr StepName call = {"call", "call", "one call", "s", timing};
inline constexpr StepName operators_forward = {"operators", "operators.forward", "its operators alone, forward", "s",
                                               timing};
inline constexpr StepName operators_backward = {"operators", "operators.backward", "its operators alone, backward", "s",
                                                timing};
inline constexpr StepName forward = {"forward", "forward", "forward pass", "s", timing};
inline constexpr StepName backward = {"backward", "backward", "backward pass", "s", timing};
inline constexpr StepName recompute = {"recompute", "recompute", "forward again", "s", timing};
inline constexpr StepName exposed_forward = {"exposed_forward", "exposed_forward", "what the forward pass waits for",
                                             "s", timing};
inline constexpr StepName exposed_backward = {"exposed_backward", "exposed_backward",
                                              "what the backward pass waits for", "s", timing};
inline constexpr StepName logits = {"logits", "logits", "logits of this rank, one microbatch", "",
                                    "config.json of the model"};
inline constexpr StepName loss_time = {"loss", "loss.time", "the loss, one direction", "s", timing};

// Steps of a stage.
inline constexpr StepName chunk_kept = {"kept", "kept", "what one microbatch keeps here, the loss apart", "B",
                                        "arXiv:2205.05198 section 4; PyTorch autograd, measured (docs/validation.md)"};
inline constexpr StepName pass_forward = {"forward", "forward", "forward of one microbatch with what it waits for", "s",
                                          timing};
inline constexpr StepName pass_backward = {
    "backward", "backward", "backward and recomputation of one microbatch with what it waits for", "s", timing};
inline constexpr StepName stage_forward = {"forward", "forward", "forward of one microbatch, all chunks", "s", sum};
inline constexpr StepName stage_backward = {"backward", "backward", "backward of one microbatch, all chunks", "s", sum};

// Data-parallel calls of a stage.
inline constexpr InputName units = {"units", "calls of a pass: layers, and what is outside them"};
inline constexpr InputName fsdp_hidden = {"fsdp_hidden", "share of the traffic that overlap hides at most",
                                          "fsdp_hidden"};
inline constexpr InputName reduce_hidden = {"reduce_hidden", "share of the traffic that overlap hides at most",
                                            "grad_reduce_hidden"};
inline constexpr InputName contention = {"contention", "slow-down of compute and traffic beside each other",
                                         "fsdp_contention"};
inline constexpr InputName pass_share = {"pass_share", "of a microbatch's pass, what once-a-step traffic hides behind"};
inline constexpr std::string_view zero = "arXiv:1910.02054 section 5; docs/run.md, states of each framework";
inline constexpr StepName pass_bytes = {"bytes", "bytes", "bytes of one pass over all of it", "B", zero};
inline constexpr StepName chunk_share = {"part", "communication.chunk_share", "its share of the stage's weights",
                                         "fraction", "sum over the operators of include/shardplan/physics"};
inline constexpr StepName reduces_from = {"ready", "time.simulated.reduces_from",
                                          "its gradients are there and its reduction may start", "s", simulated};
inline constexpr StepName makespan = {"makespan", "time.makespan",
                                      "the pipeline of this step, simulated: first op to last", "s", simulated};
inline constexpr StepName last_end = {"ends", "time.simulated.ends", "end of its last op", "s", simulated};
inline constexpr StepName first_start = {"starts", "time.simulated.starts", "start of its first op", "s", simulated};
inline constexpr StepName pass_traffic = {"traffic", "traffic", "all of it", "s", sum};
inline constexpr StepName pass_traffic_exposed = {"waits", "exposed", "what passes wait for", "s", timing};
inline constexpr StepName reduce_sticks_out = {"reduce_tail", "communication.reduce_tail",
                                               "what reductions stick out behind its backward", "s", timing};
inline constexpr StepName gather_sticks_out = {"gather_tail", "communication.gather_tail",
                                               "what gathers stick out before its forward", "s", timing};
inline constexpr StepName reduce_seen = {"reduce_seen", "communication.reduce_seen",
                                         "share of it that other stages' work does not cover", "fraction", simulated};
inline constexpr StepName gather_seen = {"gather_seen", "communication.gather_seen",
                                         "share of it that other stages' work does not cover", "fraction", simulated};
inline constexpr StepName data_exposed = {"data", "time.communication_exposed.data",
                                          "data-parallel traffic that it would wait for", "s", sum};

// Calls of layers and sends of a stage.
inline constexpr StepName layers_exposed = {"in_layers", "time.communication_exposed.layers",
                                            "collectives of layers that passes wait for", "s", timing};
inline constexpr StepName message_bytes = {"message", "message_bytes", "one microbatch's hidden state, a rank's share",
                                           "B", "arXiv:2104.04473 section 3.2: b s h; DualPipe: deepseek-ai/DualPipe"};
inline constexpr StepName send_call = {"call", "call", "one message", "s", timing};
inline constexpr StepName send_count = {"calls", "calls", "messages to its neighbours in a step", "",
                                        "boundaries of the stage x microbatches"};
inline constexpr StepName sends_exposed = {"sends", "time.communication_exposed.sends",
                                           "time blocked sending to neighbours", "s", simulated};

}  // namespace shardplan::step_names
