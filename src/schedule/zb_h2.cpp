// ZB-H2 (arXiv:2401.10241): more warm-up forwards, about twice 1F1B's memory, no bubble within a rank's span.
#include "orders.hpp"

namespace shardplan::schedule {

void write_zb_h2(const Shape& shape, int rank, RankWriter& out) {
  write_lagging_weights(shape.m, 2 * (shape.p - rank) - 1, 2 * rank, out);
}

}  // namespace shardplan::schedule
