// GPipe (arXiv:1811.06965): all forwards, then all backwards.
#include "orders.hpp"

namespace shardplan::schedule {

void write_gpipe(const Shape& shape, int, RankWriter& out) {
  out.repeat(shape.m, {F(0)});
  out.repeat(shape.m, {BW(0)});
}

}  // namespace shardplan::schedule
