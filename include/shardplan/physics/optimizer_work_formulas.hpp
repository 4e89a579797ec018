// Time of the matrix products of an optimizer's update, as formulas over numbers or text (trace.hpp).
// optimizer_work.hpp has them over double.
#pragma once

#include "shardplan/physics/fold.hpp"
#include "shardplan/physics/optimizer_work.hpp"
#include "shardplan/physics/timing_formulas.hpp"

namespace shardplan {

inline constexpr double newton_schulz_steps = 5;

inline constexpr StepName matrix_products = {"update", "matrix_update", "products of the update of its matrices", "s",
                                             "Jordan et al. 2024 (Muon); GaLore, arXiv:2403.03507; APOLLO"};

/// matrix_step_seconds of optimizer_work.hpp.
template <class Trace, class N = NumberOf<Trace>>
N matrix_update_time(const Trace& trace, const Run& run, const StateCounting& counting, N rows, N cols) {
  const Gpu& gpu = run.cluster.gpu;
  const bool tall = value_of(cols) < value_of(rows);
  const N m = tall ? cols : rows, n = tall ? rows : cols;
  const auto product = [&](std::string_view which, Precision precision, N a, N b, N c) {
    return product_time(trace.in(which), gpu, precision, {a, b, c, N(1.0)});
  };
  switch (counting.optimizer->work) {
    case MatrixWork::none: return 0.0;
    case MatrixWork::newton_schulz: {
      const Precision precision = gpu.peak(Precision::bf16) > 0 ? Precision::bf16 : Precision::fp16;
      return N(newton_schulz_steps) * (product("gram", precision, m, m, n) + product("square", precision, m, m, m) +
                                       product("apply", precision, m, n, m));
    }
    case MatrixWork::project:
    case MatrixWork::project_and_back: {
      // The products run in 16 bit where the GPU has it, whatever the layers run in.
      const Precision wide = run.training.precision;
      const bool narrow = wide == Precision::fp8 || wide == Precision::nvfp4;
      const Precision precision = narrow ? Precision::bf16 : wide;
      const N r = std::min(counting.rank, value_of(m));
      const N down = product("down", precision, r, n, m);
      return counting.optimizer->work == MatrixWork::project ? down : down + product("back", precision, m, n, r);
    }
  }
  return 0.0;
}

/// matrix_step_time of optimizer_work.hpp.
template <class Trace, class N = NumberOf<Trace>>
MatrixStepTimeOf<N> matrix_updates(const Trace& trace, const Run& run, const StateCounting& counting,
                                   const OperatorList<N>& list) {
  MatrixStepTimeOf<N> time;
  if (counting.optimizer == nullptr || counting.optimizer->work == MatrixWork::none) return time;
  for (const Operator<N>& op : list.operators) {
    if (!op.trains || !(op.parameters > op.biases) || !treats(counting.optimizer->scope, role_of(op))) continue;
    const Trace here = trace.in(op.name, op.name).in("matrix_update");
    const N count = larger(N(1.0), op.matrices);
    for (std::size_t i = 0; i < op.named; ++i) {
      const N seconds = trace.in(op.name, op.name)
                            .step(matrix_products, matrix_update_time(here, run, counting, op.named_rows[i], op.cols));
      (op.shard == Shard::expert ? time.expert_s : time.dense_s) += count * seconds;
      time.largest_s = larger(time.largest_s, seconds);
    }
  }
  return time;
}

}  // namespace shardplan
