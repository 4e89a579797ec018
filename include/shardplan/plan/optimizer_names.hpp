// What the inputs and steps of the optimizer's step and of offloading are called where formulas are shown.
#pragma once

#include "shardplan/plan/step_names.hpp"

namespace shardplan::step_names {

inline constexpr std::string_view offload_source =
    "arXiv:2101.06840 section 4; arXiv:2104.07857; PCIe, host and NVMe bandwidths of the cluster";

inline constexpr InputName gradient_width = {"w_gradient", "bytes of a gradient", "states", "B"};
inline constexpr InputName master_width = {"w_master", "bytes of a master copy", "states", "B"};
inline constexpr InputName weight_width = {"w_weight", "bytes of a weight, read where no fp32 copy is", "states", "B"};
inline constexpr InputName moment_width = {"w_moments", "bytes of a parameter's moments", "states", "B"};
inline constexpr InputName adamw_width = {"w_adamw", "the weight's bytes under AdamW", "states", "B"};
inline constexpr InputName offloaded_fraction = {"offloaded", "share of the optimizer that is offloaded"};
inline constexpr InputName step_bytes = {"step_bytes", "bytes that AdamW moves for a parameter",
                                         "optimizer_bytes_per_parameter", "B"};
inline constexpr InputName step_fixed = {"step_fixed", "start of the step", "optimizer_fixed_s", "s"};
inline constexpr InputName pcie = {"pcie", "bandwidth to the host, one GPU and direction",
                                   "host.pcie_bandwidth, else the GPU's", "B/s"};
inline constexpr InputName nvme = {"nvme", "NVMe bandwidth of a node", "host.nvme_bandwidth", "B/s"};
inline constexpr InputName host_memory = {"host_bandwidth", "host memory bandwidth of a node", "host.memory_bandwidth",
                                          "B/s"};
inline constexpr InputName node_gpus = {"node_gpus", "GPUs that share a node's host"};
inline constexpr InputName adam_bytes = {"adam_bytes", "bytes that the CPU moves for a parameter", "", "B"};
inline constexpr InputName offload_hidden = {"offload_hidden", "of the compute, what transfers hide behind"};
inline constexpr InputName capacity = {"capacity", "bytes of the card", "memory", "B"};

inline constexpr StepName stepped = {"stepped", "states.stepped", "parameters that this rank's optimizer steps over",
                                     "", zero};
inline constexpr StepName moved = {"moved", "time.optimizer.moved",
                                   "bytes moved for a parameter over those of AdamW with fp32 moments", "",
                                   "what a step reads and writes: gradient, master copy, weight, moments"};
inline constexpr StepName optimizer = {"optimizer", "time.optimizer", "the optimizer's step", "s", timing};
inline constexpr StepName offloaded_gradients = {
    "gradients", "time.offload.gradients", "gradients to the host, beside half of the compute", "s", offload_source};
inline constexpr StepName offloaded_weights = {"weights", "states.offloaded_weights", "weights that live elsewhere",
                                               "B", zero};
inline constexpr StepName taken = {"taken", "memory.taken", "what the allocator has reserved, and what lies outside it",
                                   "B", sum};
inline constexpr StepName paged = {"pages", "states.paged_out", "pages that leave the card at the peak", "B",
                                   "arXiv:2305.14314 section 3; states that the card has no room for"};
inline constexpr StepName offload_step = {"once", "time.offload.step",
                                          "once a step: the optimizer on the host, new weights, NVMe, pages", "s",
                                          offload_source};
inline constexpr StepName offload_passes = {"passes", "time.offload.passes", "weights and activations of all passes",
                                            "s", offload_source};
inline constexpr StepName offload = {"offload", "time.offload", "offloading that nothing hides", "s", offload_source};

}  // namespace shardplan::step_names
