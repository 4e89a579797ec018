// Cluster files: what each field means, what is filled in, what is refused.
#include "shardplan/io/cluster_file.hpp"

#include <nlohmann/json.hpp>
#include <string>

#include "shardplan/catalog/catalog.hpp"
#include "shardplan/physics/timing.hpp"
#include "support/catch.hpp"

using namespace shardplan;

namespace {

constexpr double gib = 1024.0 * 1024.0 * 1024.0;

Result<Cluster> read(const std::string& text, std::string_view pointer = "/cluster") {
  return io::read_cluster(nlohmann::json::parse(text), "run.json", pointer, catalog::builtin_catalog());
}

Cluster good(const std::string& text) {
  const Result<Cluster> result = read(text);
  INFO((result.problems.empty() ? "" : result.problems[0].pointer + ": " + result.problems[0].message));
  REQUIRE(result.ok());
  return result.value;
}

const char* const own_gpu = R"({"name": "X1", "vendor": "Own", "memory_reported_mib": 65536,
  "memory_bandwidth_gb_s": 1000, "dense_tflops": {"bf16": 100}, "pcie_gen": 5})";

}  // namespace

TEST_CASE("the sample of the documentation") {
  const Cluster cluster = good(R"({
    "name": "dgx-h100", "gpu": "H100-SXM-80GB", "gpus_per_node": 8, "scale_up_domain": 8, "num_nodes": 16,
    "intra_node": {"bandwidth_gb_s": 450, "latency_us": 3},
    "inter_node": {"type": "infiniband", "bandwidth_gb_s": 50, "latency_us": 6},
    "host": {"memory_gib": 2048, "pcie_gb_s": 55, "nvme_gb_s": 25, "nvme_tib": 30},
    "price_per_gpu_hour": 2.5})");
  CHECK(cluster.name == "dgx-h100");
  CHECK(cluster.gpu.name == "H100-SXM-80GB");
  CHECK(cluster.num_nodes == 16);
  CHECK(cluster.intra_node.bandwidth == test::Approx(450e9));
  CHECK(cluster.intra_node.latency_s == test::Approx(3e-6));
  CHECK(cluster.inter_node.bandwidth == test::Approx(50e9));
  CHECK(cluster.inter_node.latency_s == test::Approx(6e-6));
  CHECK(cluster.host.memory_bytes == test::Approx(2048 * gib));
  CHECK(cluster.host.pcie_bandwidth == test::Approx(55e9));
  CHECK(cluster.host.nvme_bandwidth == test::Approx(25e9));
  CHECK(cluster.host.nvme_bytes == test::Approx(30 * 1024 * gib));
  CHECK(cluster.has_price);
  CHECK(cluster.price_per_gpu_hour == 2.5);
}

TEST_CASE("what a cluster file leaves out") {
  const Cluster h100 = good(R"({"gpu": "h100"})");
  CHECK(h100.name == "H100-SXM-80GB");
  CHECK(h100.gpus_per_node == 8);
  CHECK(h100.scale_up_domain == 8);
  CHECK(h100.num_nodes == 0);
  CHECK(h100.intra_node.bandwidth == test::Approx(450e9));
  CHECK(h100.fabric == FabricType::infiniband);
  CHECK(h100.inter_node.bandwidth == test::Approx(50e9));
  CHECK(h100.host.memory_bytes == 0);
  CHECK(h100.host.pcie_bandwidth == test::Approx(52e9));
  CHECK_FALSE(h100.has_price);

  CHECK(good(R"({"gpu": "h100", "gpus_per_node": 4})").scale_up_domain == 4);
  CHECK(good(R"({"gpu": "GB200", "gpus_per_node": 4})").scale_up_domain == 72);
  CHECK(good(R"({"gpu": "GB300", "gpus_per_node": 4})").scale_up_domain == 72);
  CHECK(good(R"({"gpu": "GB200", "gpus_per_node": 4, "scale_up_domain": 36})").scale_up_domain == 36);
  CHECK(good(R"({"gpu": "h100", "inter_node": {"type": null, "bandwidth_gb_s": 25}})").fabric ==
        FabricType::infiniband);
  CHECK(good(R"({"gpu": "h100", "price_per_gpu_hour": null})").has_price == false);
}

TEST_CASE("without a link over the whole node traffic takes PCIe") {
  CHECK(good(R"({"gpu": "L40S", "gpus_per_node": 8})").intra_node.bandwidth == test::Approx(26e9));
  CHECK(good(R"({"gpu": "V100-PCIe-16GB", "gpus_per_node": 4})").intra_node.bandwidth == test::Approx(13e9));
  // A bridge joins two cards.
  CHECK(good(R"({"gpu": "RTX-3090", "gpus_per_node": 2})").intra_node.bandwidth == test::Approx(56.25e9));
  CHECK(good(R"({"gpu": "RTX-3090", "gpus_per_node": 4})").intra_node.bandwidth == test::Approx(26e9));
}

TEST_CASE("every fabric") {
  for (const std::string type : {"infiniband", "roce", "efa", "omni-path", "ethernet"}) {
    const Cluster cluster = good(R"({"gpu": "h100", "inter_node": {"type": ")" + type + R"("}})");
    CHECK(name(cluster.fabric) == type);
  }
}

TEST_CASE("a GPU of one's own") {
  const Cluster cluster = good(std::string(R"({"gpu": )") + own_gpu + "}");
  CHECK(cluster.gpu.name == "X1");
  CHECK(cluster.gpu.memory_is_estimated);
  CHECK(cluster.gpu.memory_cuda_bytes == test::Approx(0.99 * 64 * gib));
  CHECK(cluster.gpu.peak(Precision::bf16) == test::Approx(100e12));
  CHECK(cluster.gpu.peak(Precision::fp8) == 0);
  CHECK_FALSE(cluster.gpu.gemm.measured);
  CHECK(cluster.intra_node.bandwidth == test::Approx(52e9));
}

TEST_CASE("what is refused, where and with which words") {
  struct Row {
    const char* text;
    const char* pointer;
    const char* message;
  };
  const Row rows[] = {
      {R"({})", "/cluster/gpu", "required"},
      {R"({"gpu": "H1000"})", "/cluster/gpu", "\"H1000\" is not a built-in GPU"},
      {R"({"gpu": 7})", "/cluster/gpu", "neither"},
      {R"({"gpu": "h100", "gpus_per_node": 0})", "/cluster/gpus_per_node", "0 is not a whole number"},
      {R"({"gpu": "h100", "gpus_per_node": 2.5})", "/cluster/gpus_per_node", "2.5 is not a whole number"},
      {R"({"gpu": "h100", "gpus_per_node": "8"})", "/cluster/gpus_per_node", "\"8\" is not a whole number"},
      {R"({"gpu": "h100", "gpus_per_node": 1e300})", "/cluster/gpus_per_node", "is not a whole number"},
      {R"({"gpu": "h100", "inter_node": {"bandwidth_gb_s": -50}})", "/cluster/inter_node/bandwidth_gb_s",
       "-50 is not a number above 0"},
      {R"({"gpu": "h100", "inter_node": {"type": "infinband"}})", "/cluster/inter_node/type", "infiniband"},
      {R"({"gpu": "h100", "inter_node": 5})", "/cluster/inter_node", "5 is not an object"},
      {R"({"gpu": "h100", "intra_node": {"latency_us": -1}})", "/cluster/intra_node/latency_us", "-1"},
      {R"({"gpu": "h100", "host": {"memory_gb": 12}})", "/cluster/host/memory_gb", "memory_gib"},
      {R"({"gpu": "h100", "gpu_per_node": 8})", "/cluster/gpu_per_node", "did you mean \"gpus_per_node\""},
      {R"({"gpu": "h100", "a/b~c": 8})", "/cluster/a~1b~0c", "unknown field"},
      {R"({"gpu": "h100", "price_per_gpu_hour": -1})", "/cluster/price_per_gpu_hour", "-1"},
      {R"({"gpu": "h100", "name": 3})", "/cluster/name", "3 is not a text"},
      {R"({"gpu": {"name": "X"}})", "/cluster/gpu/memory_bandwidth_gb_s", "required"},
      {R"({"gpu": {"name": "X", "memory_cuda_gib": 10, "memory_bandwidth_gb_s": 1, "dense_tflops": {}}})",
       "/cluster/gpu/dense_tflops", "needs a rate"},
      {R"({"gpu": {"name": "X", "memory_cuda_gib": 10, "memory_bandwidth_gb_s": 1, "dense_tflops": {"bf61": 1}}})",
       "/cluster/gpu/dense_tflops/bf61", "did you mean \"bf16\""},
      {R"({"gpu": "h100", "efficiency": {"gem": []}})", "/cluster/efficiency/gem", "did you mean \"gemm\""},
      {R"({"gpu": "h100", "efficiency": {"gemm": [{"m": 1, "n": 2, "k": 3}]}})", "/cluster/efficiency/gemm/0/seconds",
       "either seconds or tflops"},
      {R"({"gpu": "h100", "efficiency": {"gemm": [{"m": 1024, "n": 1024, "k": 1024, "tflops": 1200}]}})",
       "/cluster/efficiency/gemm/0/tflops", "1200 is more than the 989.4 dense bf16 TFLOP/s of H100"},
      {R"({"gpu": "h100", "efficiency": {"gemm": [{"m": 1024, "n": 1024, "k": 1024, "seconds": 1e-6}]}})",
       "/cluster/efficiency/gemm/0/seconds", "1e-06 s is 2147 tflops, more than"},
      {R"({"gpu": "h100", "efficiency": {"attention": [
           {"batch": 1, "heads": 8, "seq_length": 4096, "head_dim": 128, "tflops": 1100}]}})",
       "/cluster/efficiency/attention/0/tflops", "16-bit TFLOP/s"},
      {R"({"gpu": {"name": "X", "memory_gb": 80, "memory_bandwidth_gb_s": 3000, "dense_tflops": {"bf16": 900},
                    "measured_like": "Z100"}})",
       "/cluster/gpu/measured_like", "\"Z100\" has no measured tables"},
      {R"({"gpu": "h100", "efficiency": {"gemm": 0.5}})", "/cluster/efficiency/gemm",
       "0.5 is not a list of measurements"},
      {R"({"gpu": "h100", "efficiency": {"collectives": [
         {"op": "all_reduce", "group_size": 1, "message_bytes": 1024, "seconds": 1}]}})",
       "/cluster/efficiency/collectives/0/group_size", "1"},
      {R"({"gpu": "h100", "efficiency": {"collectives": [
           {"op": "all_gather", "group_size": 8, "message_bytes": 1000000, "bus_gb_s": 480}]}})",
       "/cluster/efficiency/collectives/0/bus_gb_s", "450 GB/s that all_gather can reach over intra_node"},
      {R"({"gpu": "h100", "efficiency": {"collectives": [
           {"op": "all_reduce", "group_size": 8, "message_bytes": 1000000, "bus_gb_s": 900}]}})",
       "/cluster/efficiency/collectives/0/bus_gb_s", "over intra_node"},
      {R"([])", "/cluster", "a list is not an object"},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    const Result<Cluster> result = read(row.text);
    REQUIRE_FALSE(result.ok());
    bool found = false;
    for (const Diagnostic& problem : result.problems) {
      CHECK(problem.file == "run.json");
      found = found || (problem.pointer == row.pointer && problem.message.find(row.message) != std::string::npos);
    }
    INFO(result.problems[0].pointer << ": " << result.problems[0].message);
    CHECK(found);
  }
}

TEST_CASE("every problem is reported in one go") {
  const Result<Cluster> result = read(R"({"gpu": "H1000", "gpus_per_node": -1, "foo": 1,
    "inter_node": {"type": "token-ring", "bandwidth_gb_s": 0}, "host": {"memory_gib": "much"}})");
  CHECK(result.problems.size() == 6);
}

TEST_CASE("in a file of its own pointers start at the root") {
  const Result<Cluster> result = read(R"({"gpu": "h100", "foo": 1})", "");
  REQUIRE(result.problems.size() == 1);
  CHECK(result.problems[0].pointer == "/foo");
}

TEST_CASE("an unknown cluster is one problem with a suggestion") {
  const Result<Cluster> result = io::find_cluster("dgx-h1000", "run.json", "/cluster", catalog::builtin_catalog());
  REQUIRE(result.problems.size() == 1);
  CHECK_THAT(result.problems[0].message, test::Contains("\"dgx-h1000\" is not a built-in cluster"));
  CHECK_THAT(result.problems[0].message, test::Contains("dgx-h100"));
  CHECK_THAT(result.problems[0].way_out, test::Contains("list clusters"));
}

TEST_CASE("measured matrix products move the curve onto themselves") {
  const Cluster cluster = good(R"({"gpu": "RTX-4090", "gpus_per_node": 1, "efficiency": {"gemm": [
    {"m": 8192, "n": 8192, "k": 8192, "dtype": "bf16", "tflops": 120},
    {"m": 8192, "n": 4096, "k": 4096, "seconds": 0.0025}]}})");
  REQUIRE(cluster.measured.gemm.size() == 2);
  CHECK(cluster.measured.gemm[0].value == test::Approx(2.0 * 8192 * 8192 * 8192 / 120e12));
  CHECK(cluster.gpu.gemm.measured);
  double product = 1;
  for (const EfficiencyPoint& point : cluster.measured.gemm) {
    product *= gemm_seconds(cluster.gpu, Precision::bf16, point.at[0], point.at[1], point.at[2], 1) / point.value;
  }
  CHECK(product == test::Approx(1).epsilon(0.02));
}

TEST_CASE("measured attention and collectives set their efficiencies") {
  const Cluster cluster = good(R"({"gpu": "h100", "efficiency": {
    "attention": [{"batch": 1, "heads": 32, "seq_length": 8192, "head_dim": 128, "tflops": 600},
                  {"batch": 1, "heads": 32, "seq_length": 8192, "head_dim": 128, "pass": "backward", "tflops": 400}],
    "collectives": [{"op": "all_reduce", "group_size": 8, "message_bytes": 1073741824, "bus_gb_s": 360},
                    {"op": "all_reduce", "group_size": 8, "message_bytes": 1048576, "bus_gb_s": 90},
                    {"op": "all_gather", "group_size": 16, "message_bytes": 1073741824, "bus_gb_s": 300}]}})");
  const double ramp = attention_shape_share(cluster.gpu, 1320, 128, 8192, 32);
  CHECK(cluster.gpu.attention.forward * ramp * 989.4e12 == test::Approx(600e12));
  CHECK(cluster.gpu.attention_v3.backward * ramp * 989.4e12 == test::Approx(400e12));
  CHECK(cluster.intra_node_efficiency == test::Approx(360.0 / 450));
  CHECK(cluster.inter_node_efficiency() == test::Approx(300.0 / (8 * 50)));
  // The built-in all-reduces are slower or faster by the points' mean ratio; a run then takes the user's times.
  RankGroup node;
  node.size = node.per_domain = 8;
  node.scope = Scope::intra_node;
  double product = 1;
  for (const auto& [bytes, bus] : {std::pair{1073741824.0, 360e9}, std::pair{1048576.0, 90e9}}) {
    const double sent = 2 * 7.0 / 8 * bytes;
    product *= sent / bus / collective_seconds(cluster, Collective::all_reduce, node, sent);
  }
  CHECK(product == test::Approx(1));
}
