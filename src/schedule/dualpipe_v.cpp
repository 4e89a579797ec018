// DualPipe-V ("cut in half", Sea AI Lab and DeepSeek): DualPipe's order on a vee, without the second copy of the
// weights.
#include "orders.hpp"

namespace shardplan::schedule {

void write_dualpipe_v(const Shape& shape, int rank, RankWriter& out) {
  DualLine line;
  line.half_ranks = shape.p;
  line.position = rank;
  line.microbatches = shape.m;
  write_dual_line(line, out);
}

}  // namespace shardplan::schedule
