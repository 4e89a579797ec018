// What the steps and inputs of a rank's memory are called where formulas are shown. Addresses are of the JSON output.
#pragma once

#include "shardplan/physics/memory_names.hpp"

namespace shardplan::memory_names {

inline constexpr std::string_view schedule = "the simulated schedule (docs/schedules.md)";
inline constexpr std::string_view sum = "sum of its parts";
inline constexpr std::string_view offload = "arXiv:2101.06840; the run file, training.offload; paged states";
inline constexpr std::string_view buffers = "PyTorch FSDP units, DeepSpeed buckets, p2p messages (docs/run.md, stacks)";
inline constexpr std::string_view fsdp_units = "PyTorch FSDP: units are gathered whole (docs/catalog.md, stacks)";
inline constexpr std::string_view deepspeed = "DeepSpeed runtime/zero/config.py, in elements (docs/catalog.md, stacks)";
inline constexpr std::string_view loss_bytes =
    "bytes per logit of each loss: docs/run.md, loss; PyTorch autograd, measured";

// Weights and states of a rank.
inline constexpr StepName stage_trained = {"P", "states.trained", "parameters that train on this rank", "",
                                           operators_list};
inline constexpr StepName stage_trained_experts = {"P_experts", "states.trained_experts",
                                                   "parameters of experts on this rank", "", operators_list};
inline constexpr StepName stage_trains = {
    "P_trains", "states.trains", "parameters that train here, experts and adapters included", "", operators_list};
inline constexpr StepName stage_largest_layer = {"P_layer", "states.largest_layer", "parameters of its largest layer",
                                                 "", operators_list};
inline constexpr StepName stage_held = {"P_rank", "states.held", "weights that this rank works with", "",
                                        operators_list};
inline constexpr StepName stage_root = {
    "P_root", "states.root", "parameters of embedding, final norm and head on this rank", "", operators_list};

/// A state: all of it, what of it lives elsewhere, what stays on the card.
struct StateNames {
  StepName all, before, offloaded, left;
};
inline constexpr StateNames parameters_names = {
    {"parameters", "states.parameters", "bytes of parameters on this rank", "B", zero},
    {"parameters", "states.parameters.before_offload", "bytes of parameters on this rank", "B", zero},
    {"parameters_offloaded", "states.parameters.offloaded", "parameters that live elsewhere", "B", offload},
    {"parameters", "states.parameters", "bytes of parameters that stay on the card", "B", zero}};
inline constexpr StateNames gradients_names = {
    {"gradients", "states.gradients", "bytes of gradients on this rank", "B", zero},
    {"gradients", "states.gradients.before_offload", "bytes of gradients on this rank", "B", zero},
    {"gradients_offloaded", "states.gradients.offloaded", "gradients that live elsewhere", "B", offload},
    {"gradients", "states.gradients", "bytes of gradients that stay on the card", "B", zero}};
inline constexpr StateNames optimizer_names = {
    {"optimizer", "states.optimizer", "bytes of optimizer states on this rank", "B", optimizer_states},
    {"optimizer", "states.optimizer.before_offload", "bytes of optimizer states on this rank", "B", optimizer_states},
    {"optimizer_offloaded", "states.optimizer.offloaded", "optimizer states that live elsewhere", "B", offload},
    {"optimizer", "states.optimizer", "bytes of optimizer states that stay on the card", "B", optimizer_states}};
inline constexpr InputName optimizer_fraction = {"offloaded", "share of the optimizer that is offloaded"};
inline constexpr InputName microbatches = {"m", "microbatches of a step"};
inline constexpr InputName stages = {"p", "pipeline stages"};
inline constexpr StepName pinned = {
    "pinned", "memory.host.pinned", "buffers pinned to swap with NVMe", "B",
    "DeepSpeed runtime/zero/offload_config.py: buffer_count x buffer_size, sub_group_size"};
inline constexpr StepName host = {"host", "memory.host", "bytes in host memory, one GPU's share", "B",
                                  "arXiv:2101.06840; DeepSpeed offload_config.py"};
inline constexpr StepName nvme = {"nvme", "memory.nvme", "bytes on NVMe, one GPU's share", "B",
                                  "arXiv:2104.07857; DeepSpeed offload_config.py"};

// Activations.
inline constexpr StepName live = {"live", "memory.activations.live", "microbatches in flight when most is held", "",
                                  schedule};
inline constexpr StepName chunks_in_flight = {"chunks", "memory.activations.chunks",
                                              "most that the chunks' microbatches hold at once", "B", schedule};
inline constexpr StepName waiting_losses = {"waiting_losses", "memory.activations.waiting_losses",
                                            "final norm, head and loss of microbatches that wait", "B", schedule};
inline constexpr StepName offloaded_activations = {"offloaded", "memory.activations.offloaded",
                                                   "activations in host memory", "B",
                                                   "the run file, training.offload.activations"};
inline constexpr StepName in_flight = {"in_flight", "memory.activations.in_flight",
                                       "activations of all microbatches in flight", "B", autograd};
inline constexpr StepName current = {"current", "memory.activations.current",
                                     "what the microbatch in its backward keeps", "B", autograd};
inline constexpr StepName first_layer = {"first_layer", "memory.activations.first_layer", "of it, the first layer's",
                                         "B", autograd};
inline constexpr StepName retained = {"retained", "memory.activations.retained", "gradients of retained inputs", "B",
                                      "PyTorch FSDP1, post-backward hook"};
inline constexpr StepName final_norm_saved = {"final_norm", "final_norm.saved", "", "B", measured};
inline constexpr StepName head_saved = {"head_saved", "head.saved", "", "B", measured};
inline constexpr StepName head_input = {"head_input", "memory.activations.head_input",
                                        "the final norm's output, kept by the head", "B", measured};

// Within a pass.
inline constexpr StepName recomputed = {"recomputed", "memory.transient.recomputed",
                                        "activations made again for one segment", "B", "arXiv:1604.06174; measured"};
inline constexpr StepName layer = {"layer", "memory.transient.layer", "the most that one layer's backward holds", "B",
                                   measured};
inline constexpr StepName layer_output = {"layer_output", "memory.transient.layer_output",
                                          "a reentrant checkpoint's output", "B",
                                          "torch.utils.checkpoint, use_reentrant=True"};
inline constexpr StepName loss = {"loss", "memory.transient.logits_and_loss", "logits and what the loss makes of them",
                                  "B", loss_bytes};
inline constexpr StepName head_product = {"head_product", "memory.transient.head_product",
                                          "backward of the head's product", "B", loss_bytes};
inline constexpr StepName head_weight = {"head_weight", "memory.transient.head_weight",
                                         "the head's weight gradient, or its placeholder", "B", loss_bytes};
inline constexpr StepName head_gradient = {"head_gradient", "memory.transient.head_gradient",
                                           "the head's gradient in 16 bit", "B", loss_bytes};
inline constexpr StepName gradients_apart = {
    "gradients_apart", "memory.transient.gradients_apart", "gradients in the weights' type, of a microbatch", "B",
    "nanotron optim/gradient_accumulator.py: added to fp32 once backward has ended"};
inline constexpr StepName root_gradient = {"root_gradient", "memory.transient.root_gradient",
                                           "unsharded gradient of the head", "B", "PyTorch FSDP, root unit"};
inline constexpr StepName placeholders = {"placeholders", "memory.transient.placeholders",
                                          "cached placeholder gradients, one a shape of matrices", "B",
                                          "Transformer Engine, get_dummy_wgrad"};
inline constexpr StepName kept_logits = {"kept_logits", "memory.transient.kept_logits", "logits that the loop holds",
                                         "B", "the run file, training.keep_logits"};
inline constexpr StepName step = {"step", "memory.transient.step", "temporaries of the optimizer's step", "B",
                                  "torch.optim foreach; DeepSpeed's fp32 gradient copy; measured"};
inline constexpr StepName whole_model = {"whole_model", "memory.transient.whole_model",
                                         "the whole model at initialisation", "B",
                                         "the run file, training.initialisation"};
inline constexpr StepName replica_logits = {"replica_logits", "memory.transient.replica_logits",
                                            "logits of all replicas, gathered on GPU 0", "B", "torch.nn.DataParallel"};

// Buffers.
inline constexpr InputName gathered_layers = {"alive", "FSDP units of layers gathered at once",
                                              "memory.gathered_layers"};
inline constexpr InputName live_parameters = {"max_live", "parameters that ZeRO-3 keeps gathered at most",
                                              "memory.live_parameters"};
inline constexpr InputName prefetch = {"prefetch", "parameters that ZeRO-3 fetches ahead", "memory.prefetch"};
inline constexpr InputName gather_bucket = {"allgather_bucket", "one bucket of updated parameters",
                                            "memory.gather_bucket"};
inline constexpr InputName reduce_bucket = {"reduce_bucket", "one bucket of gradients", "memory.reduce_bucket"};
inline constexpr InputName reduce_buckets = {"buckets", "such buckets alive at once", "memory.reduce_buckets"};
inline constexpr StepName gathered_width = {"w_gathered", "memory.transient.gathered.width",
                                            "bytes of a gathered weight, quantised ones as they are stored", "B",
                                            fsdp_units};
inline constexpr StepName gathered_layer = {"layer_weights", "memory.transient.gathered.layer",
                                            "weights of the largest layer, gathered", "B", fsdp_units};
inline constexpr StepName gathered_root = {"root_weights", "memory.transient.gathered.root",
                                           "weights of embedding, final norm and head, gathered", "B", fsdp_units};
inline constexpr StepName live_pool = {"pool", "memory.transient.gathered.pool", "ZeRO-3's pool of gathered parameters",
                                       "B", deepspeed};
inline constexpr StepName secondary = {"secondary", "memory.transient.gathered.secondary",
                                       "ZeRO++'s secondary partition", "B", "arXiv:2306.10209 section 3.2"};
inline constexpr StepName gathered = {"gathered", "memory.transient.gathered", "gathered copies of sharded weights",
                                      "B", buffers};
inline constexpr StepName gathered_at_loss = {"gathered_at_loss", "memory.transient.gathered_at_loss",
                                              "gathered copies at the loss", "B", buffers};
inline constexpr StepName cached = {"cached", "memory.transient.cached", "narrow copies of weights", "B",
                                    "Transformer Engine, cached fp8 weights"};
inline constexpr StepName reduce_scatter_input = {"reduce_input", "memory.buffers.reduce_scatter_input",
                                                  "one layer's gradient as FSDP2 reduces it", "B",
                                                  "PyTorch FSDP2, reduce_dtype (docs/catalog.md, stacks)"};
inline constexpr StepName unsharded_gradients = {"unsharded", "memory.buffers.unsharded_gradients",
                                                 "gradients that accumulate unsharded", "B",
                                                 "FSDP no_sync, set_requires_gradient_sync(False)"};
inline constexpr StepName prefetched = {"prefetched", "memory.buffers.prefetched", "parameters that are fetched ahead",
                                        "B", deepspeed};
inline constexpr StepName gather_buckets = {"gather_bucket", "memory.buffers.gather_bucket",
                                            "a bucket of updated parameters", "B", deepspeed};
inline constexpr StepName gradient_buckets = {"gradient_buckets", "memory.buffers.gradient_buckets",
                                              "buckets of gradients that are reduced", "B", deepspeed};
inline constexpr StepName messages = {"messages", "memory.buffers.messages",
                                      "receive buffers of the neighbouring stages' messages", "B",
                                      "p2p: one hidden state forward, one gradient backward"};
inline constexpr StepName collectives = {"collectives", "memory.buffers.collectives", "buckets, pools and messages",
                                         "B", buffers};
inline constexpr StepName collectives_at_loss = {"collectives_at_loss", "memory.buffers.at_loss", "buffers at the loss",
                                                 "B", buffers};
inline constexpr StepName lasting = {"lasting", "memory.buffers.lasting", "buckets that live as long as the model", "B",
                                     "PyTorch DistributedDataParallel, gradient_as_bucket_view"};

// Outside the allocator, and what no tensor explains inside it.
inline constexpr std::string_view ml_engineering = "about: ml-engineering, GPU memory; measured 1 to 2 GiB for NCCL";
inline constexpr InputName cuda_context = {
    "context", "CUDA context, modules loaded lazily",
    "0.47 GiB was measured on an A100 (ml-engineering); 0.5 GiB is taken for every card", "B"};
inline constexpr InputName nccl_inside = {"nccl_inside", "NCCL buffers of a communicator inside a node", ml_engineering,
                                          "B"};
inline constexpr InputName nccl_across = {"nccl_across", "NCCL buffers of a communicator across nodes", ml_engineering,
                                          "B"};
inline constexpr InputName nccl_most = {"nccl_most", "NCCL buffers, at most", ml_engineering, "B"};
inline constexpr StepName nccl = {"nccl", "nccl", "NCCL: buffers of every communicator", "B", ml_engineering};
inline constexpr StepName outside = {"framework", "memory.outside", "outside the allocator", "B", ml_engineering};
inline constexpr InputName stream_workspace = {"workspace", "cuBLAS workspace of a stream",
                                               "PyTorch CUDABlas.cpp: 32 MiB from Hopper on, 8.1 before", "B"};
inline constexpr StepName workspaces = {"workspaces", "memory.transient.workspaces", "cuBLAS workspaces of two streams",
                                        "B", "PyTorch CUDABlas.cpp"};

// The allocator.
inline constexpr std::string_view reserve =
    "allocated x the stack's reserved_factor; fragments of unfused losses (docs/catalog.md)";
inline constexpr InputName reserve_factor = {"reserve", "reserved over allocated", "memory.reserved_factor"};
inline constexpr InputName reserve_high = {
    "reserve_high", "reserved over allocated, high end of the band",
    "above what measured runs reserved (docs/validation.md, verdicts and bands of peak memory)"};
inline constexpr StepName allocated = {"allocated", "memory.allocated", "torch.cuda.max_memory_allocated", "B",
                                       "all but what is outside the allocator"};
inline constexpr StepName reserved = {"reserved", "memory.reserved", "torch.cuda.max_memory_reserved", "B", reserve};
inline constexpr StepName reserved_low = {"low", "memory.reserved_low",
                                          "low end of the reserve's band: what is allocated", "B", reserve};
inline constexpr StepName reserved_high = {"high", "memory.reserved_high", "high end of the reserve's band", "B",
                                           reserve};
inline constexpr StepName headroom = {"headroom", "memory.headroom", "free where least is", "B", sum};
inline constexpr StepName host_per_node = {"host", "memory.host_bytes_per_node", "host memory of a node", "B",
                                           "arXiv:2101.06840"};
inline constexpr StepName nvme_per_node = {"nvme", "memory.nvme_bytes_per_node", "NVMe of a node", "B",
                                           "arXiv:2104.07857"};
inline constexpr InputName gpus = {"G", "GPUs (num_gpus)"};
inline constexpr InputName node_gpus = {"node_gpus", "GPUs that share a node's host", "gpus_per_node"};

}  // namespace shardplan::memory_names
