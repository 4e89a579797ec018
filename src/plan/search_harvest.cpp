// What the nodes of a search have found, and how it is put together: the same whatever the order.
#include <algorithm>

#include "search_node.hpp"

namespace shardplan::plan {

SearchKey key_of(Objective objective, const Found& found) noexcept {
  const double memory = -static_cast<double>(found.headroom_bytes);
  switch (objective) {
    case Objective::throughput: return {found.step_s, memory};
    case Objective::price: return {found.step_s * found.layout.num_gpus, memory};
    case Objective::headroom: return {memory, found.step_s};
    case Objective::gpus: return {static_cast<double>(found.layout.num_gpus), found.step_s};
  }
  return {};
}

void BestList::add(const SearchKey& key, const Found& found) {
  const auto before = [&](const Item& item) {
    if (item.key != key) return item.key < key;
    return order_of(item.found.layout, found.layout) < 0;
  };
  const auto place = std::find_if_not(items_.begin(), items_.end(), before);
  if (place == items_.end() && items_.size() >= top_) return;
  items_.insert(place, {key, found});
  if (items_.size() > top_) items_.pop_back();
}

void BestList::merge(const BestList& other) {
  for (const Item& item : other.items_) add(item.key, item.found);
}

SearchKey BestList::bar() const noexcept {
  constexpr double open = std::numeric_limits<double>::infinity();
  return top_ == 0 || items_.size() < top_ ? SearchKey{open, open} : items_.back().key;
}

namespace {

/// At least as good everywhere. GPU time is left out: it follows from the others.
bool covers(const Found& one, double step_s, std::int64_t headroom, int num_gpus) noexcept {
  return one.step_s <= step_s && one.headroom_bytes >= headroom && one.layout.num_gpus <= num_gpus;
}

}  // namespace

bool Front::open_to(double step_s, std::int64_t headroom, int num_gpus) const noexcept {
  return std::none_of(items_.begin(), items_.end(), [&](const Found& one) {
    // Equal in all: which of the two stands on the front, their order decides.
    return covers(one, step_s, headroom, num_gpus) &&
           (one.step_s < step_s || one.headroom_bytes > headroom || one.layout.num_gpus < num_gpus);
  });
}

void Front::add(const Found& found) {
  const int gpus = found.layout.num_gpus;
  for (Found& one : items_) {
    if (!covers(one, found.step_s, found.headroom_bytes, gpus)) continue;
    const bool same =
        one.step_s == found.step_s && one.headroom_bytes == found.headroom_bytes && one.layout.num_gpus == gpus;
    if (same && order_of(found.layout, one.layout) < 0) one = found;
    return;
  }
  items_.erase(std::remove_if(items_.begin(), items_.end(),
                              [&](const Found& one) {
                                return covers(found, one.step_s, one.headroom_bytes, one.layout.num_gpus);
                              }),
               items_.end());
  items_.push_back(found);
}

void Front::merge(const Front& other) {
  for (const Found& found : other.items_) add(found);
}

void Harvest::clear() noexcept {
  counts = {};
  best.clear();
  front.clear();
  lack = {};
  nearest.reset();
  better = 0;
}

void Harvest::merge(const Harvest& other) {
  counts.layouts += other.counts.layouts;
  counts.estimated += other.counts.estimated;
  counts.simulated += other.counts.simulated;
  counts.cut_by_bound += other.counts.cut_by_bound;
  counts.does_not_fit += other.counts.does_not_fit;
  counts.excess.tenth += other.counts.excess.tenth;
  counts.excess.whole += other.counts.excess.whole;
  counts.excess.more += other.counts.excess.more;
  counts.excess.host += other.counts.excess.host;
  counts.fit += other.counts.fit;
  counts.misses += other.counts.misses;
  counts.without_overlap += other.counts.without_overlap;
  for (std::size_t i = 0; i < rule_count; ++i) counts.illegal[i] += other.counts.illegal[i];
  best.merge(other.best);
  front.merge(other.front);
  better += other.better;
  const bool nearer = other.nearest && (!nearest || other.lack < lack ||
                                        (other.lack == lack && order_of(other.nearest->layout, nearest->layout) < 0));
  if (nearer) {
    lack = other.lack;
    nearest = other.nearest;
  }
}

}  // namespace shardplan::plan
