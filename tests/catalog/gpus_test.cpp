// Facts of GPUs and node types that people know by heart.
#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/cluster_file.hpp"
#include "shardplan/io/gpu_file.hpp"
#include "support/catch.hpp"

using namespace shardplan;

namespace {

constexpr double gib = 1024.0 * 1024.0 * 1024.0;

Gpu gpu(std::string_view name) {
  const Result<Gpu> result = io::find_gpu(name, "test", "", catalog::builtin_catalog());
  REQUIRE(result.ok());
  return result.value;
}

Cluster cluster(std::string_view name) {
  const Result<Cluster> result = io::find_cluster(name, "test", "", catalog::builtin_catalog());
  REQUIRE(result.ok());
  return result.value;
}

}  // namespace

TEST_CASE("short names mean the usual card") {
  struct Row {
    const char* alias;
    const char* name;
  };
  const Row rows[] = {{"a100", "A100-SXM-80GB"}, {"h100", "H100-SXM-80GB"}, {"h800", "H800-SXM-80GB"},
                      {"h200", "H200-SXM"},      {"b200", "B200"},          {"v100", "V100-SXM2-32GB"},
                      {"4090", "RTX-4090"},      {"3090", "RTX-3090"},      {"a6000", "RTX-A6000"},
                      {"l40s", "L40S"},          {"a10g", "A10G"},          {"H100-SXM", "H100-SXM-80GB"}};
  for (const Row& row : rows) CHECK(gpu(row.alias).name == row.name);
}

TEST_CASE("dense rates, bandwidths and memory") {
  struct Row {
    const char* name;
    double bf16;
    double fp8;
    double memory_bandwidth;
    double link;
    double usable_gib;
  };
  const Row rows[] = {{"A100-SXM-80GB", 312e12, 0, 2039e9, 300e9, 79.15},
                      {"H100-SXM-80GB", 989.4e12, 1978.9e12, 3350e9, 450e9, 79.11},
                      {"H800-SXM-80GB", 989.4e12, 1978.9e12, 3350e9, 200e9, 79.11},
                      {"B200", 2250e12, 4500e12, 7700e9, 900e9, 178.35},
                      {"RTX-4090", 165.2e12, 330.3e12, 1008e9, 0, 23.64}};
  for (const Row& row : rows) {
    INFO(row.name);
    const Gpu card = gpu(row.name);
    CHECK(card.peak(Precision::bf16) == test::Approx(row.bf16));
    CHECK(card.peak(Precision::fp8) == test::Approx(row.fp8));
    CHECK(card.memory_bandwidth == test::Approx(row.memory_bandwidth));
    CHECK(card.link_bandwidth == test::Approx(row.link));
    CHECK(card.memory_cuda_bytes == test::Approx(row.usable_gib * gib));
    CHECK_FALSE(card.memory_is_estimated);
  }
}

TEST_CASE("usable memory that nobody printed is 0.99 of the reported size, and marked") {
  const Gpu card = gpu("L40");
  CHECK(card.memory_is_estimated);
  CHECK(card.memory_cuda_bytes == test::Approx(0.99 * 46068 * 1024 * 1024));
}

TEST_CASE("NVFP4 runs on NVIDIA cards only") {
  CHECK(gpu("B200").peak(Precision::nvfp4) == test::Approx(9000e12));
  CHECK(gpu("MI355X").peak(Precision::nvfp4) == 0);
  CHECK(gpu("H100-SXM-80GB").peak(Precision::nvfp4) == 0);
}

TEST_CASE("cards of one silicon share the measured curve, others have the generic one") {
  CHECK(gpu("H800-SXM-80GB").gemm.peak_fraction == gpu("H100-SXM-80GB").gemm.peak_fraction);
  for (const char* name : {"A100-SXM-40GB", "A800-SXM-80GB", "V100-SXM2-32GB", "H800-SXM-80GB", "H20-96GB", "GB300"}) {
    INFO(name);
    CHECK(gpu(name).gemm.measured);
  }
  for (const char* name : {"RTX-4090", "MI300X", "TPU-v5p", "T4"}) {
    INFO(name);
    CHECK_FALSE(gpu(name).gemm.measured);
    CHECK(gpu(name).gemm.peak_fraction == GemmEfficiency{}.peak_fraction);
  }
}

TEST_CASE("node types") {
  const Cluster dgx = cluster("DGX-H100");
  CHECK(dgx.gpu.name == "H100-SXM-80GB");
  CHECK(dgx.gpus_per_node == 8);
  CHECK(dgx.scale_up_domain == 8);
  CHECK(dgx.intra_node.bandwidth == test::Approx(450e9));
  CHECK(dgx.inter_node.bandwidth == test::Approx(50e9));
  CHECK(dgx.fabric == FabricType::infiniband);
  CHECK(dgx.host.memory_bytes == test::Approx(2048 * gib));

  CHECK(cluster("gb200-nvl72").scale_up_domain == 72);
  CHECK(cluster("gb200-nvl72").gpus_per_node == 4);
  CHECK(cluster("gb300-nvl72").scale_up_domain == 72);
  CHECK(cluster("selene").inter_node.bandwidth == test::Approx(25e9));
  // Eight GPUs behind one 100 Gb/s NIC.
  CHECK(cluster("aws-p3dn.24xlarge").inter_node.bandwidth == test::Approx(100e9 / 8 / 8));
  CHECK(cluster("aws-p5.48xlarge").fabric == FabricType::efa);
  CHECK(cluster("meta-grand-teton-h100").fabric == FabricType::roce);
  CHECK(cluster("jean-zay").fabric == FabricType::omni_path);
  CHECK(cluster("gcp-a3-highgpu-8g").fabric == FabricType::ethernet);
  CHECK(cluster("frontier").fabric == FabricType::roce);
  // No NVLink: PCIe 4.
  CHECK(cluster("workstation-4x4090").intra_node.bandwidth == test::Approx(26e9));
  CHECK(cluster("rtx-4090").gpus_per_node == 1);
}

TEST_CASE("fabrics lose what step times showed") {
  // InfiniBand on A100 runs at line rate, on 8 x 400 Gb/s nodes at two thirds, Omni-Path at a quarter.
  CHECK(cluster("selene").inter_node_efficiency() == test::Approx(0.97).margin(0.03));
  CHECK(cluster("dgx-h100").inter_node_efficiency() == test::Approx(0.64).margin(0.05));
  CHECK(cluster("jean-zay").inter_node_efficiency() == test::Approx(0.263).margin(0.02));
  CHECK(cluster("frontier").inter_node_efficiency() == test::Approx(0.8));
  CHECK_FALSE(cluster("frontier").gpu.fabric_measured[static_cast<std::size_t>(FabricType::roce)]);
}
