#include "shardplan/plan/why_not.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "shardplan/core/bytes.hpp"

namespace shardplan::plan {
namespace {

double exposed(const Estimate& estimate, std::initializer_list<GroupKind> kinds) noexcept {
  double sum = 0;
  for (const GroupKind kind : kinds) sum += estimate.time.exposed_by_group_s[static_cast<std::size_t>(kind)];
  return sum;
}

std::array<double, step_term_count> parts_of(const Estimate& estimate) noexcept {
  const TimeEstimate& t = estimate.time;
  return {t.gemm_s,
          t.attention_s,
          t.compute_s + t.recompute_s - t.gemm_s - t.attention_s,
          exposed(estimate, {GroupKind::tensor}),
          exposed(estimate, {GroupKind::context}),
          exposed(estimate, {GroupKind::expert, GroupKind::expert_tensor}),
          exposed(estimate, {GroupKind::data, GroupKind::expert_data}),
          exposed(estimate, {GroupKind::pipeline}),
          exposed(estimate, {GroupKind::embedding}),
          t.bubble_s,
          t.optimizer_s,
          t.offload_s,
          0};
}

constexpr std::array<std::string_view, step_term_count> term_names = {
    "gemm",     "attention",   "other compute", "TP exchange", "CP exchange", "EP exchange", "DP exchange",
    "PP sends", "tied tables", "bubble",        "optimizer",   "offload",     "rest"};

/// The term that grew most, as a clause: "TP exchange 14% -> 26%".
std::string longest_growth(const WhyNot& why, double best_step) {
  const auto term = std::max_element(why.terms.begin(), why.terms.end(), [](const StepTerm& a, const StepTerm& b) {
    return a.other_s - a.best_s < b.other_s - b.best_s;
  });
  if (term->other_s <= term->best_s || why.step_s <= 0 || best_step <= 0) return {};
  return fmt::format("{} {:.1f} -> {:.1f}% of the step", term->name, 100 * term->best_s / best_step,
                     100 * term->other_s / why.step_s);
}

std::string size_text(std::int64_t bytes) { return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / gib); }

std::string difference(double best, double other) {
  const double change = 100 * (other / best - 1);
  if (std::abs(change) < 0.05) return "as fast";
  return fmt::format("{:.1f}% {}", std::abs(change), change > 0 ? "slower" : "faster");
}

/// A step's tokens may differ, by its sequences or their length.
double seconds_per_token(const Run& run, const Estimate& estimate) noexcept {
  const Training& training = run.training;
  return estimate.time.step_s / static_cast<double>(training.global_batch_size * training.seq_length);
}

}  // namespace

WhyNot why_not(const Run& best_run, const Estimate& best, Run other_run, Estimate other, std::string change) {
  WhyNot why;
  why.change = std::move(change);
  why.step_s = other.time.step_s;
  why.over_bytes = std::max<std::int64_t>(0, -other.headroom_bytes);
  const std::array<double, step_term_count> of_best = parts_of(best), of_other = parts_of(other);
  double best_rest = best.time.step_s, other_rest = other.time.step_s;
  for (std::size_t i = 0; i < step_term_count; ++i) {
    why.terms[i] = {term_names[i], of_best[i], of_other[i]};
    best_rest -= of_best[i];
    other_rest -= of_other[i];
  }
  why.terms.back().best_s = best_rest;
  why.terms.back().other_s = other_rest;
  const double best_cost = seconds_per_token(best_run, best), other_cost = seconds_per_token(other_run, other);
  std::string speed = difference(best_cost, other_cost);
  if (other_run.num_gpus != best_run.num_gpus) {
    const double hours = other_cost * other_run.num_gpus / (best_cost * best_run.num_gpus);
    speed +=
        fmt::format(" on {} GPUs for {}, {:+.1f}% GPU-hours", other_run.num_gpus, best_run.num_gpus, 100 * (hours - 1));
  }
  if (!other.fits) {
    why.verdict = WhyNot::Verdict::does_not_fit;
    const std::string what = why.over_bytes > 0 ? size_text(why.over_bytes) + " over" : "too much for the host";
    why.reason = fmt::format("{}; else {}", what, speed);
  } else if (other_cost > best_cost) {
    why.verdict = speed.starts_with("as fast") ? WhyNot::Verdict::equal : WhyNot::Verdict::slower;
    const std::string growth =
        why.verdict == WhyNot::Verdict::equal ? std::string() : longest_growth(why, best.time.step_s);
    why.reason = speed + (growth.empty() ? "" : ": " + growth);
  } else {
    why.verdict = other_cost < best_cost ? WhyNot::Verdict::faster : WhyNot::Verdict::equal;
    why.reason = speed;
    const std::int64_t more = best.headroom_bytes - other.headroom_bytes;
    if (more != 0) why.reason += fmt::format(", {} {} free", size_text(std::abs(more)), more > 0 ? "less" : "more");
  }
  why.run = std::move(other_run);
  why.estimate = std::move(other);
  return why;
}

}  // namespace shardplan::plan
