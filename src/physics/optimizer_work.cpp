#include "shardplan/physics/optimizer_work_formulas.hpp"

namespace shardplan {

double matrix_step_seconds(const Run& run, const StateCounting& counting, double rows, double cols) noexcept {
  return matrix_update_time(NoTrace{}, run, counting, rows, cols);
}

MatrixStepTime matrix_step_time(const Run& run, const StateCounting& counting,
                                const OperatorList<double>& list) noexcept {
  return matrix_updates(NoTrace{}, run, counting, list);
}

}  // namespace shardplan
