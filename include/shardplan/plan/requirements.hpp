// What a run must meet: its `require` block, judged against its estimate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "shardplan/core/names.hpp"
#include "shardplan/core/run.hpp"
#include "shardplan/plan/estimate.hpp"

namespace shardplan::plan {

enum class Requirement : std::uint8_t {
  fits,
  min_headroom_gib,
  min_mfu,
  max_bubble,
  max_step_s,
  min_tokens_per_s_per_gpu,
  max_gpu_hours_per_1e12_tokens
};
inline constexpr std::size_t requirement_count = 7;

}  // namespace shardplan::plan

namespace shardplan {
/// The members of `require`.
template <>
inline constexpr std::array<std::string_view, plan::requirement_count> names_of<plan::Requirement> = {
    "fits",
    "min_headroom_gib",
    "min_mfu",
    "max_bubble",
    "max_step_s",
    "min_tokens_per_s_per_gpu",
    "max_gpu_hours_per_1e12_tokens"};
}  // namespace shardplan

namespace shardplan::plan {

/// One requirement and what the estimate says to it. Of `fits` the values are 1 and, where it does not, 0.
struct Verdict {
  Requirement requirement = Requirement::fits;
  double limit = 0;
  double actual = 0;
  bool holds = false;
};

/// Whether `actual` must be at least the limit; else it must be at most the limit.
constexpr bool is_minimum(Requirement requirement) noexcept {
  return requirement == Requirement::fits || requirement == Requirement::min_headroom_gib ||
         requirement == Requirement::min_mfu || requirement == Requirement::min_tokens_per_s_per_gpu;
}

/// Every requirement of a run, in the order of Requirement. A run must fit unless its `fits` says false.
std::vector<Verdict> judge(const Requirements& require, const Estimate& estimate);

/// Whether all of them hold; allocates nothing.
bool meets(const Requirements& require, const Estimate& estimate) noexcept;

/// By how much a requirement is missed, as a share of its limit; 0 where it holds. What does not fit is missed by the
/// share of the card that is lacking, at least a little.
double shortfall(const Verdict& verdict, const Estimate& estimate) noexcept;

}  // namespace shardplan::plan
