// The GEMM curves of configs/gpus against measured latencies (tests/evidence/gemm.csv names their sources).
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/gpu_file.hpp"
#include "shardplan/physics/timing.hpp"
#include "support/catch.hpp"

using namespace shardplan;

TEST_CASE("the curves meet measured matrix products within 12 percent on average") {
  std::ifstream file(SHARDPLAN_SOURCE_DIR "/tests/evidence/gemm.csv");
  REQUIRE(file.good());
  struct Sum {
    double error = 0;
    double bias = 0;
    int rows = 0;
  };
  std::map<std::string, Sum> sums;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#' || line.rfind("gpu,", 0) == 0) continue;
    std::istringstream fields(line);
    std::string name, m, n, k, latency_ms;
    for (std::string* field : {&name, &m, &n, &k, &latency_ms}) std::getline(fields, *field, ',');
    Gpu gpu = io::find_gpu(name, "test", "", catalog::builtin_catalog()).value;
    REQUIRE(gpu.gemm.measured);
    gpu.gemm.sustained = 1;  // the tables are bursts; training runs at the sustained rate
    const double seconds = gemm_seconds(gpu, Precision::bf16, std::stod(m), std::stod(n), std::stod(k), 1);
    const double ratio = seconds / (std::stod(latency_ms) * 1e-3);
    Sum& sum = sums[name];
    sum.error += std::abs(ratio - 1);
    sum.bias += ratio - 1;
    ++sum.rows;
  }
  REQUIRE(sums.size() == 8);
  double mean = 0;
  for (const auto& [name, sum] : sums) {
    INFO(name << ": " << sum.rows << " rows, mean error " << sum.error / sum.rows << ", bias " << sum.bias / sum.rows);
    CHECK(sum.rows == 24);
    CHECK(sum.error / sum.rows < 0.12);
    CHECK(std::abs(sum.bias / sum.rows) < 0.06);
    mean += sum.error / sum.rows / 8;
  }
  CHECK(mean < 0.08);
}
