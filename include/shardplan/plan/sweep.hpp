// A run over lists of values, as data: `sweep` fills it, its reports print it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/core/names.hpp"
#include "shardplan/plan/legality.hpp"
#include "shardplan/plan/results.hpp"

namespace shardplan::plan {

/// A field and the values that it takes.
struct SweepAxis {
  std::string label;                ///< "tp", "training.overlap.tp"
  std::string pointer;              ///< of the run file
  std::vector<std::string> values;  ///< JSON where they parse as such, else the text of a string
  std::vector<std::string>
      typed;  ///< as the tables show them, where `label` says it in other words ("no-sp"); or empty

  const std::string& shown(std::size_t i) const { return typed.empty() ? values[i] : typed[i]; }
};

enum class PointStatus : std::uint8_t { fits, does_not_fit, illegal };

/// One run of the sweep. An illegal one has its first broken rule and no figures.
struct SweepPoint {
  PointStatus status = PointStatus::illegal;
  Rule rule = Rule::node_shape;
  std::int64_t capacity_bytes = 0;
  std::int64_t headroom_bytes = 0;
  std::vector<double> figures;  ///< in the order of result_fields()
};

struct Sweep {
  std::vector<SweepAxis> axes;
  std::vector<SweepPoint> points;         ///< the last axis runs fastest
  std::vector<const ResultField*> shown;  ///< in the order of --show
  std::map<Rule, std::string> broken;     ///< what the first point that breaks a rule says
};

/// Which value of each axis a point has.
std::vector<std::size_t> places_of(const Sweep& sweep, std::size_t point);

/// A figure of a point that is legal; NaN where it is not known.
double figure(const SweepPoint& point, const ResultField& field) noexcept;

/// What the best point is best at: of the shown figures that tell the points that fit apart the first that is no size
/// and that may be better or worse, else the first that may; nullptr where none does. Runs of other numbers of GPUs
/// compare by the tokens of a GPU in place of those of the run.
const ResultField* objective_of(const Sweep& sweep) noexcept;

/// The best point that fits; points.size() where none does, or nothing that is shown tells them apart.
std::size_t best_point(const Sweep& sweep) noexcept;

/// The legal point that lacks least memory; points.size() where none is legal.
std::size_t smallest_point(const Sweep& sweep) noexcept;

/// How many points have a status.
std::size_t count(const Sweep& sweep, PointStatus status) noexcept;

/// The card that all legal points have; 0 where they differ.
std::int64_t common_capacity(const Sweep& sweep) noexcept;

}  // namespace shardplan::plan

namespace shardplan {
template <>
inline constexpr std::array<std::string_view, 3> names_of<plan::PointStatus> = {"fits", "does_not_fit", "illegal"};
}  // namespace shardplan
