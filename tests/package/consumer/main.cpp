// The library from outside: a run file's text in, an estimate out.
#include <cstdio>

#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/run_file.hpp"
#include "shardplan/plan/estimate.hpp"
#include "shardplan/version.hpp"

int main() {
  using namespace shardplan;
  const io::ReadRun read =
      io::read_run(io::run_input_from_json(R"({"model": "llama-3.1-70b", "cluster": "dgx-h100", "num_gpus": 128,
                                  "parallel": {"tensor": 8, "pipeline": 4, "zero_stage": 1}})"),
                   catalog::builtin_catalog());
  if (!read.ok()) return 1;
  Estimate result;
  estimate(read.run, result);
  std::printf("shardplan %s: %lld parameters, %s\n", SHARDPLAN_VERSION, static_cast<long long>(result.model.parameters),
              result.fits ? "fits" : "does not fit");
  return result.fits ? 0 : 1;
}
