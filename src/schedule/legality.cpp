#include "shardplan/schedule/legality.hpp"

#include <algorithm>
#include <limits>

namespace shardplan::schedule {
namespace {

/// Which number is wrong, and how the rule reads for this shape; no rule: legal.
struct Verdict {
  std::optional<ShapeField> wrong;
  std::string (*rule)(const Shape& shape) = nullptr;
};

std::string named(const Shape& shape) { return std::string(name(shape.kind)); }
std::string text(std::int64_t value) { return std::to_string(value); }
/// "2p = 16"
std::string least(const Shape& shape) {
  const std::int64_t each = facts_of(shape.kind).least_microbatches;
  return text(each) + "p = " + text(each * shape.p);
}

Verdict fails(ShapeField field, std::string (*rule)(const Shape&)) noexcept { return {field, rule}; }

Verdict check_chunks(const Shape& shape) noexcept {
  switch (facts_of(shape.kind).chunks) {
    case Chunks::any: return {};
    case Chunks::several:
      if (shape.v >= 2) return {};
      return fails(ShapeField::v, [](const Shape& s) {
        return named(s) + " needs at least 2 chunks per rank (v >= 2); with 1 it is 1f1b";
      });
    case Chunks::two:
      if (shape.v == 2) return {};
      return fails(ShapeField::v, [](const Shape& s) { return named(s) + " has exactly 2 chunks per rank (v = 2)"; });
    case Chunks::one:
      if (shape.v == 1) return {};
      return fails(ShapeField::v, [](const Shape& s) { return named(s) + " has 1 chunk per rank (v = 1)"; });
  }
  return {};
}

// Megatron-LM: p <= N <= m, and a smaller last group has at least p microbatches.
Verdict check_groups(const Shape& shape) noexcept {
  const auto too_few = [](const Shape& s) {
    return named(s) + " needs at least p = " + text(s.p) + " microbatches, one group";
  };
  const auto remainder = [](const Shape& s) {
    return named(s) + " needs m divisible by the group size " + text(s.group_size()) +
           " (default p), or a rest of at " + "least p = " + text(s.p) + "; here the rest is " +
           text(s.m % s.group_size());
  };
  if (shape.p < 2) {
    return fails(ShapeField::p, [](const Shape& s) { return named(s) + " needs at least 2 ranks (p >= 2)"; });
  }
  if (shape.m < shape.p) return fails(ShapeField::m, too_few);
  const int n = shape.group_size();
  if (n < shape.p || n > shape.m) {
    return fails(ShapeField::group, [](const Shape& s) {
      return "the microbatch group size must be from p = " + text(s.p) + " to m = " + text(s.m);
    });
  }
  const int rest = shape.m % n;
  if (rest != 0 && rest < shape.p) return fails(shape.group == 0 ? ShapeField::m : ShapeField::group, remainder);
  return {};
}

/// Even numbers of ranks and microbatches, and enough of the latter.
Verdict check_counts(const Shape& shape) noexcept {
  const ScheduleFacts& facts = facts_of(shape.kind);
  if (facts.even && shape.p % 2 != 0) {
    return fails(ShapeField::p, [](const Shape& s) { return named(s) + " needs an even number of ranks"; });
  }
  const bool enough = shape.m >= std::int64_t{facts.least_microbatches} * shape.p;
  if (facts.even && (shape.m % 2 != 0 || !enough)) {
    return fails(ShapeField::m, [](const Shape& s) {
      return named(s) + " needs an even number of microbatches, at least " + least(s);
    });
  }
  if (!enough) {
    return fails(ShapeField::m,
                 [](const Shape& s) { return named(s) + " needs at least " + least(s) + " microbatches"; });
  }
  return {};
}

Verdict judge(const Shape& shape) noexcept {
  const auto positive = [](const Shape&) { return std::string("must be at least 1"); };
  if (shape.p < 1) return fails(ShapeField::p, positive);
  if (shape.m < 1) return fails(ShapeField::m, positive);
  if (shape.v < 1) return fails(ShapeField::v, positive);
  if (shape.group < 0) return fails(ShapeField::group, positive);
  if (const Verdict chunks = check_chunks(shape); chunks.wrong) return chunks;
  if (shape.group != 0 && !facts_of(shape.kind).in_groups) {
    return fails(ShapeField::group,
                 [](const Shape& s) { return "only interleaved has a microbatch group size, not " + named(s); });
  }
  return facts_of(shape.kind).in_groups ? check_groups(shape) : check_counts(shape);
}

int& field_of(Shape& shape, ShapeField field) noexcept {
  switch (field) {
    case ShapeField::p: return shape.p;
    case ShapeField::v: return shape.v;
    case ShapeField::group: return shape.group;
    default: return shape.m;
  }
}

/// The next values below and above that make the shape legal or, where none does, at least put this field right.
std::vector<int> nearest_values(Shape shape, ShapeField field) {
  constexpr int reach = 1 << 16;
  const int from = field_of(shape, field);
  const auto next = [&](int direction, bool all_right) -> std::optional<int> {
    for (int step = 1; step <= reach; ++step) {
      const std::int64_t value = from + std::int64_t{direction} * step;
      if (value < 1 || value > std::numeric_limits<int>::max()) return std::nullopt;
      field_of(shape, field) = static_cast<int>(value);
      const Verdict verdict = judge(shape);
      if (!verdict.wrong || (!all_right && *verdict.wrong != field)) return static_cast<int>(value);
    }
    return std::nullopt;
  };
  std::vector<int> values;
  for (const bool all_right : {true, false}) {
    if (const auto below = next(-1, all_right)) values.push_back(*below);
    if (const auto above = next(+1, all_right)) values.push_back(*above);
    if (!values.empty()) break;
  }
  return values;
}

}  // namespace

std::string ScheduleProblem::nearest_text() const {
  std::string words;
  for (std::size_t i = 0; i < nearest.size(); ++i) words += (i == 0 ? "" : " or ") + std::to_string(nearest[i]);
  return words;
}

bool is_legal(const Shape& shape) noexcept { return !judge(shape).wrong; }

std::optional<ScheduleProblem> check_schedule(const Shape& shape) {
  const Verdict verdict = judge(shape);
  if (!verdict.wrong) return std::nullopt;
  ScheduleProblem problem;
  problem.field = *verdict.wrong;
  Shape copy = shape;
  problem.value = field_of(copy, problem.field);
  problem.rule = verdict.rule(shape);
  problem.nearest = nearest_values(shape, problem.field);
  return problem;
}

}  // namespace shardplan::schedule
