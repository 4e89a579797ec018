// What the text, markdown and CSV reports say, before it has a shape: names, rows of the step, groups of stages.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/core/run.hpp"
#include "shardplan/plan/estimate.hpp"
#include "shardplan/report/number.hpp"
#include "shardplan/report/style.hpp"

namespace shardplan::report {

std::string_view moment_text(Moment moment) noexcept;

/// "full", "full:4", "core_attn+mlp"; empty for none.
std::string recompute_text(const Recompute& recompute);

/// "InfiniBand", and for traffic inside a node the GPU's link ("NVLink", "PCIe").
std::string fabric_text(FabricType fabric);
std::string link_text(const Run& run, Scope scope);

/// "reduce-scatter", "send".
std::string collective_text(Collective op);

/// "GPU" for torch.nn.DataParallel, whose entries are GPU 0 and the others, else "stage".
std::string_view stage_word(const Run& run) noexcept;
/// Where the largest total stands: "(stage 0, backward)", with one stage "(backward)".
std::string peak_place(const Run& run, const Estimate& estimate);

/// Reserved and framework bytes of the stage with least headroom: what the card must hold.
struct Need {
  std::int64_t bytes = 0;
  std::int64_t low = 0;
  std::int64_t high = 0;
  int stage = 0;
};
Need need_of(const Estimate& estimate) noexcept;

/// The bytes of MemoryParts in the order in which they are shown.
struct PartName {
  std::string_view head;  ///< column head and bar letter
  std::string_view word;  ///< row of the page with one stage
  char letter;
  Role role;
};
inline constexpr std::size_t part_count = 7;
inline constexpr std::array<PartName, part_count> part_names = {{
    {"param", "parameters", 'P', Role::parameters},
    {"grad", "gradients", 'G', Role::gradients},
    {"optim", "optimizer", 'O', Role::optimizer},
    {"activ", "activations", 'A', Role::activations},
    {"transient", "transient", 'T', Role::transient},
    {"comm", "comm buffers", 'C', Role::communication},
    {"CUDA+NCCL", "CUDA+NCCL", 'N', Role::framework},
}};
inline constexpr std::size_t communication_part = 5;
std::array<std::int64_t, part_count> parts_of(const MemoryParts& parts) noexcept;
/// In hundredths of the unit, summing to the rounded total.
std::array<std::int64_t, part_count> rounded_parts(const MemoryParts& parts, Units units);

/// One row of the step's breakdown. The rows sum to the step.
struct TimeRow {
  std::string label;
  double time_s = 0;
  std::string note;
  bool compute = false;
};
/// Compute first, then by time; rows of no time are left out, the bubble of a pipeline apart.
std::vector<TimeRow> time_rows(const Run& run, const Estimate& estimate);

/// What binds the step: operators that are neither products nor attention (memory bandwidth, kernel launches) where
/// they take most of the compute, else the largest other row where it takes a tenth or more, else compute.
/// "TP exchange 26%".
std::string binding_text(const Run& run, const Estimate& estimate);

/// The GPU's curve is measured; otherwise times are "about".
bool is_measured(const Run& run) noexcept;

/// How the step and its parts are printed: four digits, three where times are "about".
TimeScale step_scale(const Run& run, const Estimate& estimate) noexcept;

/// "TP8+SP PP4x5 DP4 ZeRO-1".
std::string layout_text(const Run& run);
/// The parts of the two lines that name the run.
std::vector<std::string> model_line(const Run& run, const Estimate& estimate);
std::vector<std::string> layout_line(const Run& run, const std::vector<std::string>& defaults);

/// "2 bf16 + 4 fp32 main grad + 12/4 fp32 master, m, v = 9.00 bytes per parameter", from the bytes of the stage that
/// peaks. Empty where the weights do not all train or the stage holds none.
std::string bytes_per_parameter(const Run& run, const Estimate& estimate);

/// Bytes of a state for one parameter: "2", sharded "12/4", "3.07" where the shards are not alike.
enum class State : std::uint8_t { parameters, gradients, optimizer };
std::string bytes_for_one(const Run& run, State state, std::int64_t bytes, std::int64_t parameters);

/// "host memory 312.50 of 2,048.00 GiB a node | ...", empty where nothing is offloaded.
std::string host_text(const Run& run, const Estimate& estimate, Units units);

/// MFU in every convention.
std::string mfu_text(const Run& run, const Estimate& estimate);

}  // namespace shardplan::report
