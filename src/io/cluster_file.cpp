#include "shardplan/io/cluster_file.hpp"

#include <nlohmann/json.hpp>

#include "calibration.hpp"
#include "catalog_lookup.hpp"
#include "efficiency_file.hpp"
#include "file_members.hpp"
#include "object_reader.hpp"
#include "shardplan/core/bytes.hpp"
#include "shardplan/io/gpu_file.hpp"
#include "shardplan/plan/step_rules.hpp"

namespace shardplan::io {
namespace {

constexpr int most = 1'000'000;
constexpr double tib = 1024.0 * gib;
/// NVLink domain of a GB200 or GB300 NVL72 rack.
constexpr int nvl72 = 72;
/// 400 Gb/s per GPU, the usual NIC of nodes since 2022.
constexpr double usual_nic = 50e9;

const NumberRange gb_s = {0, std::nullopt, 1e6};
const NumberRange latency = {std::nullopt, 0, 1e6};
const NumberRange size = {0, std::nullopt, 1e9};

/// Latency of the wire by FabricType, seconds.
constexpr std::array<double, names_of<FabricType>.size()> wire_latency = {6e-6, 6e-6, 15e-6, 6e-6, 30e-6};

void read_gpu_field(ObjectReader& reader, const CatalogSource& catalog, Gpu& gpu) {
  const nlohmann::json* value = reader.member("gpu");
  if (value == nullptr) {
    reader.require("gpu");
    return;
  }
  const std::string pointer = reader.pointer_of("gpu");
  Result<Gpu> result;
  if (value->is_string()) {
    result = find_gpu(value->get_ref<const std::string&>(), reader.file(), pointer, catalog);
  } else if (value->is_object()) {
    result = read_gpu(*value, reader.file(), pointer);
  } else {
    reader.problem("gpu", quoted(*value) + " is neither the name of a GPU nor an object");
  }
  gpu = std::move(result.value);
  reader.problems().insert(reader.problems().end(), result.problems.begin(), result.problems.end());
}

/// The GPU's own link where it joins the whole node (pairs on a bridge do not), else PCIe.
Link own_link(const Gpu& gpu, int gpus_per_node) {
  const bool linked = gpu.link_bandwidth > 0 && (gpu.scale_up_domain >= gpus_per_node || gpu.pcie_bandwidth == 0);
  if (linked) return {gpu.link_bandwidth, 3e-6};
  return {gpu.pcie_bandwidth > 0 ? gpu.pcie_bandwidth : pcie_bandwidth(4), 5e-6};
}

void read_link(ObjectReader& reader, Link& link) {
  const auto bandwidth = reader.number("bandwidth_gb_s", gb_s, "10^9 bytes/s per GPU and direction");
  link.bandwidth = bandwidth.value_or(link.bandwidth * 1e-9) * 1e9;
  link.latency_s = reader.number("latency_us", latency, "of the wire").value_or(link.latency_s * 1e6) * 1e-6;
}

void read_intra_node(ObjectReader& reader, Cluster& cluster) {
  cluster.intra_node = own_link(cluster.gpu, cluster.gpus_per_node);
  reader.object("intra_node", "Link inside a node.", [&](ObjectReader& link) { read_link(link, cluster.intra_node); });
}

void read_inter_node(ObjectReader& reader, Cluster& cluster) {
  cluster.inter_node.bandwidth = usual_nic;
  cluster.inter_node.latency_s = wire_latency[0];
  reader.object("inter_node", "Link between nodes.", [&](ObjectReader& link) {
    cluster.fabric = link.choice<FabricType>("type", "fabric",
                                             "it sets which share of the line rate collectives reach: roce stands for "
                                             "other RDMA fabrics (Slingshot, Spectrum-X), ethernet for TCP; speed and "
                                             "latency are bandwidth_gb_s and latency_us")
                         .value_or(FabricType::infiniband);
    cluster.inter_node.latency_s = wire_latency[static_cast<std::size_t>(cluster.fabric)];
    read_link(link, cluster.inter_node);
  });
}

void read_host(ObjectReader& reader, Cluster& cluster) {
  Host& host = cluster.host;
  host.memory_bandwidth = step_constants::host_memory_bandwidth;
  host.pcie_bandwidth = cluster.gpu.pcie_bandwidth;
  reader.object("host", "Of a node.", [&](ObjectReader& fields) {
    host.memory_bytes = fields.number("memory_gib", size, "host memory").value_or(0) * gib;
    const auto pcie = fields.number("pcie_gb_s", gb_s, "per GPU and direction");
    host.pcie_bandwidth = pcie.value_or(host.pcie_bandwidth * 1e-9) * 1e9;
    host.nvme_bandwidth = fields.number("nvme_gb_s", gb_s, "of the node").value_or(0) * 1e9;
    host.nvme_bytes = fields.number("nvme_tib", size, "of the node").value_or(0) * tib;
  });
}

}  // namespace

void read_cluster_members(ObjectReader& reader, const CatalogSource& catalog, Cluster& cluster) {
  const auto count = [&](std::string_view name, std::string_view about) {
    return reader.integer(name, 1, most, about);
  };
  read_gpu_field(reader, catalog, cluster.gpu);
  cluster.name = reader.text("name", "for reports").value_or(cluster.gpu.name);
  cluster.gpus_per_node = static_cast<int>(count("gpus_per_node", "default 8").value_or(8));
  const int domain = cluster.gpu.scale_up_domain == nvl72 ? nvl72 : cluster.gpus_per_node;
  cluster.scale_up_domain =
      static_cast<int>(count("scale_up_domain", "GPUs one NVLink domain spans; default the node").value_or(domain));
  cluster.num_nodes = static_cast<int>(count("num_nodes", "default: as many as num_gpus needs").value_or(0));
  read_intra_node(reader, cluster);
  read_inter_node(reader, cluster);
  read_host(reader, cluster);
  const auto price = reader.number("price_per_gpu_hour", {std::nullopt, 0, 1e9}, "any currency");
  cluster.has_price = price.has_value();
  cluster.price_per_gpu_hour = price.value_or(0);
  read_efficiency(reader, cluster);
  cluster.source = reader.text("source", "where the numbers are from").value_or("");
  reader.accept({"$schema", "aliases", "notes", "trust"});
}

Result<Cluster> read_cluster(const nlohmann::json& object, std::string_view file, std::string_view pointer,
                             const CatalogSource& catalog) {
  Result<Cluster> result;
  Cluster& cluster = result.value;
  ObjectReader reader(object, file, std::string(pointer), result.problems);
  read_cluster_members(reader, catalog, cluster);
  reader.finish();
  if (result.ok() && !cluster.measured.empty()) apply_measured(cluster);
  return result;
}

Result<Cluster> find_cluster(std::string_view name, std::string_view file, std::string_view pointer,
                             const CatalogSource& catalog) {
  Result<Cluster> result;
  const auto object = look_up(CatalogKind::clusters, name, file, pointer, catalog, result.problems);
  if (object) result = read_cluster(*object, name, "", catalog);
  return result;
}

}  // namespace shardplan::io
