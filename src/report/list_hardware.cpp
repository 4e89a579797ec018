// GPUs and clusters as tables.
#include <fmt/format.h>

#include "shardplan/core/bytes.hpp"
#include "shardplan/report/list_text.hpp"
#include "shardplan/report/number.hpp"

namespace shardplan::report {
namespace {

std::string decimals(double value, int count) { return fixed_text(value, count, 1e30); }

/// A rate in 10^9 or 10^12 per second: as many decimals as it has, two at most.
std::string rate(double value, double unit) {
  if (value <= 0) return "-";
  return fmt::format("{:.5g}", value / unit);
}

std::string size(double bytes, double unit, int count) { return bytes > 0 ? decimals(bytes / unit, count) : "-"; }

/// The unit of a size's column, its thousandfold, and their names in CSV heads.
struct SizeUnit {
  double bytes = 0;
  double large = 0;
  std::string name, large_name, key, large_key;
};

SizeUnit size_unit(Units units) {
  if (units == Units::gb) return {1e9, 1e12, "GB", "TB", "gb", "tb"};
  return {gib, 1024 * gib, "GiB", "TiB", "gib", "tib"};
}

}  // namespace

Table gpus_table(std::span<const Gpu> gpus, int width, Units units) {
  const SizeUnit unit = size_unit(units);
  constexpr int taken = 70;
  Table table({{"name"},
               {"vendor", Align::left, "", 6},
               {"memory", Align::right, unit.name, 3, "memory_" + unit.key},
               {"usable", Align::right, unit.name, 0, "memory_cuda_" + unit.key},
               {"GB/s", Align::right, "", 0, "memory_bandwidth_gb_s"},
               {"fp16", Align::right, "", 5, "fp16_tflops"},
               {"bf16", Align::right, "", 0, "bf16_tflops"},
               {"fp8", Align::right, "", 0, "fp8_tflops"},
               {"link", Align::right, "GB/s", 0, "scale_up_gb_s_per_direction"},
               {"domain", Align::right, "", 4, "scale_up_domain"},
               {"curve", Align::left, "", 2, "efficiency"},
               {"", Align::left, "", 1, "trust"},
               {"source", Align::left, "", 1}});
  for (const Gpu& gpu : gpus) {
    const double link = gpu.link_bandwidth;
    table.add({gpu.name, gpu.vendor, size(gpu.memory_reported_bytes, unit.bytes, 2),
               size(gpu.memory_cuda_bytes, unit.bytes, 2), rate(gpu.memory_bandwidth, 1e9),
               rate(gpu.peak(Precision::fp16), 1e12), rate(gpu.peak(Precision::bf16), 1e12),
               rate(gpu.peak(Precision::fp8), 1e12), link > 0 ? rate(link, 1e9) : "-",
               std::to_string(gpu.scale_up_domain), gpu.gemm.measured ? "measured" : "generic", gpu.trust,
               cut_to_page(gpu.source, width, taken)});
  }
  return table;
}

Table clusters_table(std::span<const Cluster> clusters, int width, Units units) {
  const SizeUnit unit = size_unit(units);
  constexpr int taken = 74;
  Table table({{"name"},
               {"gpu"},
               {"GPUs", Align::right, "", 0, "gpus_per_node"},
               {"domain", Align::right, "", 4, "scale_up_domain"},
               {"intra", Align::right, "GB/s", 0, "intra_node_gb_s"},
               {"inter", Align::right, "GB/s", 0, "inter_node_gb_s"},
               {"fabric", Align::left, "", 2, "inter_node_type"},
               {"host", Align::right, unit.name, 3, "host_memory_" + unit.key},
               {"NVMe", Align::right, unit.large_name, 5, "host_nvme_" + unit.large_key},
               {"source", Align::left, "", 1}});
  for (const Cluster& cluster : clusters) {
    table.add({cluster.name, cluster.gpu.name, std::to_string(cluster.gpus_per_node),
               std::to_string(cluster.scale_up_domain), rate(cluster.intra_node.bandwidth, 1e9),
               rate(cluster.inter_node.bandwidth, 1e9), name(cluster.fabric),
               size(cluster.host.memory_bytes, unit.bytes, 0), size(cluster.host.nvme_bytes, unit.large, 1),
               cut_to_page(cluster.source, width, taken)});
  }
  return table;
}

}  // namespace shardplan::report
