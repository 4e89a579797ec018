// 1F1B with a flush (PipeDream-flush; arXiv:2104.04473 section 2.2): a rank runs ahead by its distance to the last one.
#include <algorithm>

#include "orders.hpp"

namespace shardplan::schedule {

void write_one_f_one_b(const Shape& shape, int rank, RankWriter& out) {
  const int warmup = std::min(shape.p - 1 - rank, shape.m);
  out.repeat(warmup, {F(0)});
  out.repeat(shape.m - warmup, {F(0), BW(0)});
  out.repeat(warmup, {BW(0)});
}

}  // namespace shardplan::schedule
