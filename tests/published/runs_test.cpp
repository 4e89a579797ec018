// The example runs: every file of configs/runs is read, fits and is estimated within reason.
#include <algorithm>
#include <filesystem>

#include "support/catch.hpp"
#include "support/estimated.hpp"
#include "support/process.hpp"

using namespace shardplan;

TEST_CASE("there are at least thirty example runs, each with its source") {
  const std::vector<std::string> files = test::run_files();
  CHECK(files.size() >= 30);
  for (const std::string& file : files) {
    CAPTURE(file);
    const std::string text = test::read_file(file);
    CHECK(text.rfind("{\n  // ", 0) == 0);
  }
}

TEST_CASE("every example run is legal, fits and has an MFU between 15% and 65%") {
  for (const std::string& file : test::run_files()) {
    const io::ReadRun read = test::read_run(test::read_file(file));
    CAPTURE(file, test::problems_of(read));
    CHECK(read.ok());
    if (!read.ok()) continue;
    Estimate result;
    estimate(read.run, result);
    CAPTURE(result.headroom_bytes, result.peak_bytes, result.time.step_s, result.throughput.tokens_per_s_per_gpu);
    CHECK(result.fits);
    // States on NVMe are there to fit, not for speed.
    const bool nvme = read.run.training.offload.optimizer == OffloadDevice::nvme;
    if (!nvme) CHECK(result.throughput.mfu >= 0.15);
    CHECK(result.throughput.mfu <= 0.65);
    CHECK(read.run.require.fits == true);
    if (read.run.require.min_mfu) CHECK(result.throughput.mfu >= *read.run.require.min_mfu);
    if (read.run.require.min_headroom_gib) {
      CHECK(static_cast<double>(result.headroom_bytes) >= *read.run.require.min_headroom_gib * 1024 * 1024 * 1024);
    }
  }
}

TEST_CASE("the program runs every example from another folder") {
  for (const std::string& file : test::run_files()) {
    const test::ProcessResult result = test::run_process({SHARDPLAN_BINARY, "estimate", file}, {}, "/");
    CAPTURE(file, result.err);
    CHECK(result.status == 0);
    CHECK_THAT(result.out, test::StartsWith("FITS"));
  }
}
