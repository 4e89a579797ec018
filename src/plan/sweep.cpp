#include "shardplan/plan/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

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

namespace {

/// The least and the most of a figure over the points that fit; least above most where none has it.
std::pair<double, double> span_of_fitting(const Sweep& sweep, const ResultField& field) noexcept {
  std::pair<double, double> span(std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity());
  for (const SweepPoint& point : sweep.points) {
    const double value = figure(point, field);
    if (point.status != PointStatus::fits || !std::isfinite(value)) continue;
    span = {std::min(span.first, value), std::max(span.second, value)};
  }
  return span;
}

/// Whether a figure tells the points that fit apart; a single one needs no telling.
bool compares(const Sweep& sweep, const ResultField& field, bool single) noexcept {
  constexpr double same = 1e-12;
  const auto [least, most] = span_of_fitting(sweep, field);
  return most >= least && (single || most - least > same * std::max(std::abs(most), std::abs(least)));
}

}  // namespace

const ResultField* objective_of(const Sweep& sweep) noexcept {
  const bool single = count(sweep, PointStatus::fits) == 1;
  const auto find = [&](const auto& matches) {
    const auto found = std::find_if(sweep.shown.begin(), sweep.shown.end(), [&](const ResultField* f) {
      return f->better != 0 && matches(*f) && compares(sweep, *f, single);
    });
    return found == sweep.shown.end() ? nullptr : *found;
  };
  const auto* field = find([](const ResultField& f) { return f.quantity != Quantity::bytes; });
  if (field == nullptr) return find([](const ResultField&) { return true; });
  const bool whole_run = field->word == "tokens" || field->word == "samples" || field->word == "step";
  const auto [fewest, most] = span_of_fitting(sweep, *find_result("gpus"));
  return whole_run && most > fewest ? find_result("tokens-per-gpu") : field;
}

std::size_t best_point(const Sweep& sweep) noexcept {
  const ResultField* const objective = objective_of(sweep);
  std::size_t best = sweep.points.size();
  if (objective == nullptr) return best;
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    if (sweep.points[i].status != PointStatus::fits) continue;
    const double value = figure(sweep.points[i], *objective);
    if (!std::isfinite(value)) continue;
    if (best == sweep.points.size() || objective->better * (value - figure(sweep.points[best], *objective)) > 0)
      best = i;
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
