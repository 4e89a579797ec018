// Tokens per second and MFU, over numbers: throughput_formulas.hpp has the formulas.
#include "shardplan/plan/throughput_formulas.hpp"

namespace shardplan {

void estimate_throughput(const Run& run, const EstimateWorkspace&, Estimate& out) noexcept {
  fold_throughput(NoTrace{}, run, out);
}

}  // namespace shardplan
