#include "shardplan/plan/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardplan::plan {

std::vector<std::size_t> places_of(const Sweep& sweep, std::size_t point) {
  std::vector<std::size_t> places(sweep.axes.size());
  for (std::size_t axis = sweep.axes.size(); axis-- > 0;) {
    const std::size_t size = sweep.axes[axis].values.size();
    places[axis] = point % size;
    point /= size;
  }
  return places;
}

double figure(const SweepPoint& point, const ResultField& field) noexcept {
  const auto index = static_cast<std::size_t>(&field - result_fields().data());
  return index < point.figures.size() ? point.figures[index] : std::numeric_limits<double>::quiet_NaN();
}

const ResultField* objective_of(const Sweep& sweep) noexcept {
  const auto known = [&](const ResultField* f) {
    return std::any_of(sweep.points.begin(), sweep.points.end(),
                       [&](const SweepPoint& point) { return std::isfinite(figure(point, *f)); });
  };
  const auto find = [&](const auto& matches) {
    const auto found = std::find_if(sweep.shown.begin(), sweep.shown.end(),
                                    [&](const ResultField* f) { return matches(f) && known(f); });
    return found == sweep.shown.end() ? nullptr : *found;
  };
  const auto* field = find([](const ResultField* f) { return f->better != 0 && f->quantity != Quantity::bytes; });
  return field != nullptr ? field : find([](const ResultField* f) { return f->better != 0; });
}

std::size_t best_point(const Sweep& sweep) noexcept {
  const ResultField* const objective = objective_of(sweep);
  std::size_t best = sweep.points.size();
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    if (sweep.points[i].status != PointStatus::fits) continue;
    if (best == sweep.points.size()) {
      best = i;
    } else if (objective != nullptr) {
      const double gain = figure(sweep.points[i], *objective) - figure(sweep.points[best], *objective);
      if (objective->better * gain > 0) best = i;
    }
  }
  return best;
}

std::size_t smallest_point(const Sweep& sweep) noexcept {
  std::size_t best = sweep.points.size();
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const SweepPoint& point = sweep.points[i];
    if (point.status == PointStatus::illegal) continue;
    if (best == sweep.points.size() || point.headroom_bytes > sweep.points[best].headroom_bytes) best = i;
  }
  return best;
}

std::size_t count(const Sweep& sweep, PointStatus status) noexcept {
  return static_cast<std::size_t>(std::count_if(sweep.points.begin(), sweep.points.end(),
                                                [&](const SweepPoint& point) { return point.status == status; }));
}

std::int64_t common_capacity(const Sweep& sweep) noexcept {
  std::int64_t capacity = 0;
  for (const SweepPoint& point : sweep.points) {
    if (point.status == PointStatus::illegal) continue;
    if (capacity != 0 && capacity != point.capacity_bytes) return 0;
    capacity = point.capacity_bytes;
  }
  return capacity;
}

}  // namespace shardplan::plan
