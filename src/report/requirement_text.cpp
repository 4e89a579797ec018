#include "shardplan/report/requirement_text.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "shardplan/core/bytes.hpp"
#include "shardplan/report/number.hpp"

namespace shardplan::report {
namespace {

using plan::Requirement;
using plan::Verdict;

constexpr std::array<std::string_view, plan::requirement_count> words = {
    "", "free", "MFU", "bubble", "step", "tokens/s/GPU", "GPU hours per 1e12 tokens"};

std::string_view unit_of(Requirement requirement, Units units) {
  switch (requirement) {
    case Requirement::min_headroom_gib: return units == Units::gib ? " GiB" : " GB";
    case Requirement::min_mfu:
    case Requirement::max_bubble: return "%";
    case Requirement::max_step_s: return " s";
    default: return "";
  }
}

/// The value in the unit that is printed.
double scaled(Requirement requirement, double value, Units units) {
  if (requirement == Requirement::min_headroom_gib) return value * gib / static_cast<double>(unit_bytes(units));
  const bool share = requirement == Requirement::min_mfu || requirement == Requirement::max_bubble;
  return share ? 100 * value : value;
}

int usual_decimals(Requirement requirement, double value) {
  switch (requirement) {
    case Requirement::max_step_s: return std::abs(value) < 1 ? 4 : 2;
    case Requirement::min_tokens_per_s_per_gpu: return std::abs(value) < 100 ? 1 : 0;
    case Requirement::max_gpu_hours_per_1e12_tokens: return 0;
    default: return 1;
  }
}

/// A limit as somebody wrote it: "4", "38", "0.5".
std::string plain_number(double value) {
  const std::string text = fmt::format("{:.10g}", value);
  if (text.find('e') != std::string::npos || value < 10'000) return text;
  const std::size_t point = text.find('.');
  return fixed_text(value, point == std::string::npos ? 0 : static_cast<int>(text.size() - point - 1));
}

}  // namespace

std::string requirement_value(Requirement requirement, double value, Units units, int more) {
  const double number = scaled(requirement, value, units);
  return fixed_text(number, usual_decimals(requirement, number) + more) + std::string(unit_of(requirement, units));
}

std::string comparison(const Verdict& verdict, Units units) {
  if (verdict.requirement == Requirement::fits) return verdict.holds ? "fits" : "does not fit";
  const bool converted = verdict.requirement == Requirement::min_headroom_gib && units != Units::gib;
  const std::string limit = converted ? requirement_value(verdict.requirement, verdict.limit, units, 1)
                                      : plain_number(scaled(verdict.requirement, verdict.limit, units)) +
                                            std::string(unit_of(verdict.requirement, units));
  const bool minimum = plan::is_minimum(verdict.requirement);
  const std::string_view sign = verdict.holds ? (minimum ? ">=" : "<=") : (minimum ? "<" : ">");
  const double target = scaled(verdict.requirement, verdict.limit, units);
  const double number = scaled(verdict.requirement, verdict.actual, units);
  constexpr int most = 9;
  int more = 0;
  // Rounded to the limit itself, the actual value would seem to be on its other side.
  for (; more < most && !verdict.holds; ++more) {
    const double step = std::pow(10.0, -(usual_decimals(verdict.requirement, number) + more));
    if (std::abs(std::round(number / step) * step - target) > step / 2) break;
  }
  return fmt::format("{} {} {}", requirement_value(verdict.requirement, verdict.actual, units, more), sign, limit);
}

std::string requirement_sentence(const Verdict& verdict, Units units) {
  if (verdict.requirement == Requirement::fits) return comparison(verdict, units);
  return fmt::format("{} {}", words[static_cast<std::size_t>(verdict.requirement)], comparison(verdict, units));
}

}  // namespace shardplan::report
