// Which p, m, v and group a schedule can run with, and what would be legal instead.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/core/names.hpp"
#include "shardplan/schedule/shape.hpp"

namespace shardplan::schedule {

/// The number of a shape that a rule finds wrong.
enum class ShapeField : std::uint8_t { p, m, v, group };

struct ScheduleProblem {
  ShapeField field = ShapeField::m;
  int value = 0;
  std::string rule;          ///< "dualpipe needs an even number of microbatches, at least 2p = 16"
  std::vector<int> nearest;  ///< legal values of the field next to `value`, below and above, the others unchanged

  /// "14 or 18"; empty when no value of this field alone helps.
  std::string nearest_text() const;
};

/// The first rule that the shape breaks, or nothing. Counts below 1 are problems too.
std::optional<ScheduleProblem> check_schedule(const Shape& shape);

inline std::optional<ScheduleProblem> check_schedule(ScheduleKind kind, int p, int m, int v, int group = 0) {
  return check_schedule(Shape{kind, p, m, v, group, BackwardOrder::fifo});
}

/// The same verdict without the words: no allocation.
bool is_legal(const Shape& shape) noexcept;

}  // namespace shardplan::schedule

namespace shardplan {
template <>
inline constexpr std::array<std::string_view, 4> names_of<schedule::ShapeField> = {"p", "m", "v", "group"};
}  // namespace shardplan
