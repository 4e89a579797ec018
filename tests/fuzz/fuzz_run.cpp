// Any bytes as a run file: parse, validate, estimate, print. Nothing may crash, hang or lose a byte of the sums.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "shardplan/catalog/catalog.hpp"
#include "shardplan/io/estimate_json.hpp"
#include "shardplan/io/run_file.hpp"
#include "shardplan/plan/workspace.hpp"

using namespace shardplan;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static EstimateWorkspace workspace;
  static Estimate result;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const io::ReadRun read = io::read_run(io::run_input_from_json(text), catalog::builtin_catalog());
  if (!read.ok()) {
    for (const Diagnostic& problem : read.problems) {
      if (problem.message.empty()) std::abort();
    }
    return 0;
  }
  estimate(read.run, workspace, result);
  for (const StageEstimate& stage : result.stages) {
    for (std::size_t i = 0; i < moment_count; ++i) {
      const MemoryParts& parts = stage.moments[i];
      const bool negative = parts.parameters < 0 || parts.gradients < 0 || parts.optimizer < 0 ||
                            parts.activations < 0 || parts.transient < 0 || parts.communication_buffers < 0;
      if (negative) std::abort();
    }
  }
  if (!(result.time.step_s > 0)) std::abort();
  io::EstimateContext context;
  context.run_json = read.run_json;
  context.warnings = &read.warnings;
  if (io::estimate_json(read.run, result, context).empty()) std::abort();
  return 0;
}
