// Breadth-first, looped pipeline (arXiv:2211.05953): every microbatch through a chunk before the next chunk starts.
#include "orders.hpp"

namespace shardplan::schedule {

void write_bfs(const Shape& shape, int, RankWriter& out) {
  for (int chunk = 0; chunk < shape.v; ++chunk) out.repeat(shape.m, {F(chunk)});
  for (int chunk = shape.v - 1; chunk >= 0; --chunk) out.repeat(shape.m, {BW(chunk)});
}

}  // namespace shardplan::schedule
