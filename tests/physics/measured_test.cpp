// The measured tables, and the terms of the step time that are physics rather than fits.
#include "shardplan/physics/measured.hpp"

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/gpu_file.hpp"
#include "shardplan/physics/timing.hpp"
#include "support/catch.hpp"

using namespace shardplan;

namespace {

Gpu gpu(const std::string& name) { return io::find_gpu(name, "test", "", catalog::builtin_catalog()).value; }

struct Mean {
  double error = 0;
  int rows = 0;
};

/// Every measured point of a file against the grid that it was resampled onto.
template <class Predict>
Mean mean_error(const std::string& file, const Predict& predict) {
  std::ifstream in(std::string(SHARDPLAN_SOURCE_DIR "/configs/measured/") + file);
  REQUIRE(in.good());
  Mean mean;
  bool head = true;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (head) {
      head = false;
      continue;
    }
    std::istringstream cells(line);
    std::vector<std::string> row;
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
    mean.error += std::abs(predict(row) / (std::stod(row.back()) * 1e-6) - 1);
    ++mean.rows;
  }
  mean.error /= mean.rows;
  return mean;
}

}  // namespace

TEST_CASE("the grids of matrix products meet their points within four percent on average") {
  for (const char* name : {"a100-sxm-80gb", "h100-sxm-80gb", "h200-sxm", "b200", "b300", "gb200", "l40s"}) {
    const int table = measured_table(name);
    REQUIRE(has_gemm_table(table));
    const double peak = gpu(name).peak(Precision::bf16);
    const Mean mean = mean_error(std::string("gemm-") + name + ".csv", [&](const auto& row) {
      const double m = std::stod(row[0]), n = std::stod(row[1]), k = std::stod(row[2]);
      return 2 * m * n * k / (peak * measured_gemm_share(table, m, n, k));
    });
    INFO(name << ": mean error " << mean.error << " of " << mean.rows);
    CHECK(mean.rows >= 1440);
    CHECK(mean.error < 0.04);
  }
}

TEST_CASE("the grids of attention and collectives meet their points") {
  for (const char* name : {"a100-sxm-80gb", "h100-sxm-80gb", "h200-sxm", "b200", "b300", "gb200", "l40s"}) {
    const int table = measured_table(name);
    const double peak = gpu(name).peak(Precision::bf16);
    const Mean mean = mean_error(std::string("attention-") + name + ".csv", [&](const auto& row) {
      const double d = std::stod(row[0]), s = std::stod(row[1]), heads = std::stod(row[2]) * std::stod(row[3]);
      return 2 * heads * s * s * d / (peak * measured_attention_share(table, d, s, heads));
    });
    INFO(name << ": mean error " << mean.error << " of " << mean.rows);
    CHECK(mean.error < 0.12);  // K/V heads and batches are not axes
  }
  for (const char* name : {"a100-sxm-80gb", "h100-sxm-80gb", "h200-sxm", "b200", "b300", "gb200"}) {
    const int table = measured_table(name);
    const Mean mean = mean_error(std::string("collectives-") + name + ".csv", [&](const auto& row) {
      Collective op = Collective::all_reduce;
      for (const Collective each : {Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all}) {
        if (row[0] == shardplan::name(each)) op = each;
      }
      return measured_collective_seconds(table, op, std::stod(row[1]), std::stod(row[2]));
    });
    INFO(name << ": mean error " << mean.error << " of " << mean.rows);
    CHECK(mean.error < 0.02);
  }
}

TEST_CASE("look-ups are continuous at the edge of what was measured, and grow outside it") {
  const Gpu h100 = gpu("h100");
  const auto product = [&](double m, double n, double k) { return gemm_seconds(h100, Precision::bf16, m, n, k, 1); };
  CHECK(product(32768, 8192, 8192) == test::Approx(product(32769, 8192, 8192)).epsilon(0.02));
  CHECK(product(512, 8192, 8192) == test::Approx(product(511, 8192, 8192)).epsilon(0.05));
  CHECK(product(65536, 8192, 8192) == test::Approx(2 * product(32768, 8192, 8192)).epsilon(0.05));
  CHECK(product(4096, 131072, 8192) == test::Approx(2 * product(4096, 65536, 8192)).epsilon(0.05));
  CHECK(product(1, 1, 1) > 0);
  CHECK(product(1, 4096, 4096) < product(512, 4096, 4096));
  const int table = measured_table("H100-SXM-80GB");
  const double top = measured_collective_seconds(table, Collective::all_gather, 8, 536870912);
  CHECK(measured_collective_seconds(table, Collective::all_gather, 8, 2 * 536870912.0) == test::Approx(2 * top));
  CHECK(measured_collective_seconds(table, Collective::all_gather, 16, 536870912) ==
        test::Approx(top * (15.0 / 16) / (7.0 / 8)));
  CHECK(measured_collective_seconds(table, Collective::all_gather, 8, 1) ==
        test::Approx(measured_collective_seconds(table, Collective::all_gather, 8, 512)));
}

TEST_CASE("GPUs take tables of their own or of the GPU that they are like") {
  CHECK(measured_table("no such GPU") == no_measured_table);
  CHECK(gpu("v100").gemm.table == measured_table("A100-SXM-80GB"));
  CHECK(gpu("gb300").gemm.table == measured_table("B300"));
  CHECK(gpu("h100").gemm.table == measured_table("h100-sxm-80gb"));
  CHECK(gpu("mi300x").gemm.table == no_measured_table);
  CHECK(gpu("l40s").collective_table == no_measured_table);
  // H800's links run at 200 of 450 GB/s: the measured collective slows down by the ratio.
  Cluster cluster;
  cluster.gpu = gpu("h800");
  cluster.intra_node.bandwidth = cluster.gpu.link_bandwidth;
  RankGroup node;
  node.size = node.per_domain = 8;
  node.scope = Scope::intra_node;
  const double slow = collective_seconds(cluster, Collective::all_gather, node, 1e9);
  cluster.intra_node.bandwidth = 450e9;
  CHECK(slow == test::Approx(collective_seconds(cluster, Collective::all_gather, node, 1e9) * 450 / 200));
}
