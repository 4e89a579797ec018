// Time of the matrix products that some optimizers need for their update.
#pragma once

#include "shardplan/core/run.hpp"
#include "shardplan/physics/operator.hpp"
#include "shardplan/physics/optimizer_states.hpp"
#include "shardplan/physics/trace.hpp"

namespace shardplan {

/// Seconds over the matrices of one rank, before they are dealt out among data-parallel ranks.
template <class N>
struct MatrixStepTimeOf {
  N dense_s{};
  N expert_s{};
  N largest_s{};  ///< of one matrix: it is not cut

  void add(const MatrixStepTimeOf& other, N times) {
    dense_s += times * other.dense_s;
    expert_s += times * other.expert_s;
    largest_s = larger(largest_s, other.largest_s);
  }
};
using MatrixStepTime = MatrixStepTimeOf<double>;

/// One matrix of rows x cols, its smaller side m and its larger side n:
///   Newton-Schulz, five iterations of X X^T, its square and their product with X: 5 (2 (2 m m n + m m m)) FLOP in
///   16 bit (Jordan et al. 2024; Megatron-LM --muon-num-ns-steps 5).
///   A projection to rank r: 2 r m n FLOP, and as many back (GaLore; APOLLO has only the first).
double matrix_step_seconds(const Run& run, const StateCounting& counting, double rows, double cols) noexcept;

/// Of a layer's matrices that train.
MatrixStepTime matrix_step_time(const Run& run, const StateCounting& counting,
                                const OperatorList<double>& list) noexcept;

}  // namespace shardplan
