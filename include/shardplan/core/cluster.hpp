// GPUs, links, hosts and what a group of ranks spans.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/core/dtype.hpp"
#include "shardplan/core/names.hpp"

namespace shardplan {

enum class FabricType : std::uint8_t { infiniband, roce, efa, omni_path, ethernet };
template <>
inline constexpr std::array<std::string_view, 5> names_of<FabricType> = {"infiniband", "roce", "efa", "omni-path",
                                                                         "ethernet"};

/// How fast matrix products run on a GPU against its peak: tile model with wave quantisation.
///   time = max(waves * tile_flop * (k + k0)/k / (peak/SM * peak_fraction), bytes / (bandwidth * memory_fraction)) +
///   launch
struct GemmEfficiency {
  double peak_fraction = 0.72;   ///< of the dense peak, for large tiles
  double k0 = 20;                ///< extra k that start-up of a tile costs
  double memory_fraction = 0.8;  ///< of the HBM bandwidth
  double launch_s = 3e-6;
  double wave_quantisation = 0.2;  ///< 1: whole waves only, 0: none
  double sustained = 1.0;          ///< training rate over benchmark rate (power, clocks)
  bool measured = false;           ///< false: the generic curve, results are "about"
  int table = -1;                  ///< of measured products (physics/measured.hpp), whose shape the curve extends
};

/// Flash attention's share of the dense bf16 peak: e_inf * s / (s + s0), forward and backward. FLOP are counted causal
/// (half of the score matrix), 2.5 times as many in backward.
struct AttentionEfficiency {
  double forward = 0.5;
  double backward = 0.35;
  double s0 = 1320;
};

struct Gpu {
  std::string name;
  std::string vendor;
  std::string architecture;
  double memory_cuda_bytes = 0;             ///< cudaMemGetInfo's total
  bool memory_is_estimated = false;         ///< true: 0.99 x the reported size
  double memory_reported_bytes = 0;         ///< what nvidia-smi shows
  double memory_bandwidth = 0;              ///< bytes/s
  std::array<double, 6> peak_flop_per_s{};  ///< dense, by Precision; 0: not supported
  double link_bandwidth = 0;                ///< scale-up, bytes/s per direction; 0: PCIe only
  double pcie_bandwidth = 0;                ///< to the host, bytes/s per direction: PCIe or NVLink-C2C
  std::string link_type;
  int scale_up_domain = 1;
  int multiprocessors = 0;
  int major = 0;  ///< CUDA compute capability, 0: not CUDA
  int minor = 0;
  std::string source;
  std::string trust;  ///< A, B or C
  GemmEfficiency gemm;
  AttentionEfficiency attention;     ///< FlashAttention-2 and PyTorch's own
  AttentionEfficiency attention_v1;  ///< FlashAttention-1, Triton
  AttentionEfficiency attention_v3;  ///< FlashAttention-3, Transformer Engine, cuDNN
  int attention_table = -1;          ///< of measured flash attention (physics/measured.hpp): how shapes compare
  int collective_table = -1;         ///< of collectives measured inside a node (physics/measured.hpp)
  /// Share of the NIC's line rate that collectives across nodes reach, by FabricType.
  std::array<double, 5> inter_node_efficiency = {0.8, 0.8, 0.8, 0.8, 0.8};
  std::array<bool, 5> fabric_measured{};  ///< false: the efficiency is a guess

  double peak(Precision precision) const noexcept { return peak_flop_per_s[static_cast<std::size_t>(precision)]; }
};

/// Per GPU and direction.
struct Link {
  double bandwidth = 0;  ///< bytes/s
  double latency_s = 0;
};

/// Per node.
struct Host {
  double memory_bytes = 0;      ///< 0: not stated
  double pcie_bandwidth = 0;    ///< bytes/s per GPU and direction; 0: the GPU's generation
  double memory_bandwidth = 0;  ///< bytes/s
  double nvme_bandwidth = 0;    ///< bytes/s
  double nvme_bytes = 0;
};

/// One measured point of the user's own (cluster file, `efficiency`).
struct EfficiencyPoint {
  std::array<double, 4> at{};
  double value = 0;  ///< seconds
};

/// The user's own measured tables.
struct MeasuredEfficiency {
  std::vector<EfficiencyPoint> gemm;                ///< at: m, n, k, Precision
  std::vector<EfficiencyPoint> attention_forward;   ///< at: batch, heads, seq_length, head_dim
  std::vector<EfficiencyPoint> attention_backward;  ///< at: batch, heads, seq_length, head_dim
  std::vector<EfficiencyPoint> collectives;  ///< at: group size, message bytes, index into measured_collective_names

  bool empty() const noexcept {
    return gemm.empty() && attention_forward.empty() && attention_backward.empty() && collectives.empty();
  }
};
inline constexpr std::array<std::string_view, 4> measured_collective_names = {"all_reduce", "all_gather",
                                                                              "reduce_scatter", "all_to_all"};

struct Cluster {
  std::string name;
  Gpu gpu;
  int gpus_per_node = 8;
  int scale_up_domain = 8;  ///< GPUs one NVLink domain spans
  int num_nodes = 0;        ///< 0: follows from num_gpus
  Link intra_node;
  Link inter_node;
  FabricType fabric = FabricType::infiniband;
  Host host;
  double price_per_gpu_hour = 0;
  bool has_price = false;
  std::string source;
  MeasuredEfficiency measured;
  double intra_node_efficiency = 0.8;  ///< share of intra_node.bandwidth that large collectives reach
  double collective_slowdown = 1;      ///< the user's own collectives over the built-in tables, mean ratio of times

  /// Share of inter_node.bandwidth that collectives reach.
  double inter_node_efficiency() const noexcept { return gpu.inter_node_efficiency[static_cast<std::size_t>(fabric)]; }
};

/// Where the traffic of a group of ranks runs.
enum class Scope : std::uint8_t { none, intra_node, inter_node };
template <>
inline constexpr std::array<std::string_view, 3> names_of<Scope> = {"none", "intra_node", "inter_node"};

}  // namespace shardplan
