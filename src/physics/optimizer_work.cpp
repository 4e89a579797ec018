#include "shardplan/physics/optimizer_work.hpp"

#include <algorithm>

#include "shardplan/physics/fold.hpp"
#include "shardplan/physics/timing.hpp"

namespace shardplan {
namespace {

constexpr double newton_schulz_steps = 5;

/// The products run in 16 bit where the GPU has it, whatever the layers run in.
Precision product_precision(const Run& run) noexcept {
  const Precision precision = run.training.precision;
  const bool narrow = precision == Precision::fp8 || precision == Precision::nvfp4;
  return narrow ? Precision::bf16 : precision;
}

}  // namespace

double matrix_step_seconds(const Run& run, const StateCounting& counting, double rows, double cols) noexcept {
  const Gpu& gpu = run.cluster.gpu;
  const double m = std::min(rows, cols), n = std::max(rows, cols);
  switch (counting.optimizer->work) {
    case MatrixWork::none: return 0;
    case MatrixWork::newton_schulz: {
      const Precision precision = gpu.peak(Precision::bf16) > 0 ? Precision::bf16 : Precision::fp16;
      return newton_schulz_steps *
             (gemm_seconds(gpu, precision, m, m, n, 1) + gemm_seconds(gpu, precision, m, m, m, 1) +
              gemm_seconds(gpu, precision, m, n, m, 1));
    }
    case MatrixWork::project:
    case MatrixWork::project_and_back: {
      const Precision precision = product_precision(run);
      const double r = std::min(counting.rank, m);
      const double down = gemm_seconds(gpu, precision, r, n, m, 1);
      return counting.optimizer->work == MatrixWork::project ? down : down + gemm_seconds(gpu, precision, m, n, r, 1);
    }
  }
  return 0;
}

MatrixStepTime matrix_step_time(const Run& run, const StateCounting& counting,
                                const OperatorList<double>& list) noexcept {
  MatrixStepTime time;
  if (counting.optimizer == nullptr || counting.optimizer->work == MatrixWork::none) return time;
  const auto add = [&](const Operator<double>& op, double rows, double cols, double count) {
    const double seconds = matrix_step_seconds(run, counting, rows, cols);
    (op.shard == Shard::expert ? time.expert_s : time.dense_s) += count * seconds;
    time.largest_s = std::max(time.largest_s, seconds);
  };
  for (const Operator<double>& op : list.operators) {
    const double count = std::max(1.0, op.matrices);
    if (op.trains && op.parameters > op.biases && treats(counting.optimizer->scope, role_of(op))) {
      for (std::size_t i = 0; i < op.named; ++i) add(op, op.named_rows[i], op.cols, count);
    }
  }
  return time;
}

}  // namespace shardplan
