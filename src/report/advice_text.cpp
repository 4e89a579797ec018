#include "shardplan/report/advice_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "shardplan/report/number.hpp"
#include "shardplan/report/requirement_text.hpp"

namespace shardplan::report {
namespace {

using advise::NextAction;
using advise::Tried;
using plan::Requirement;
using plan::Verdict;

/// Says what changes bring, beside the run as it is.
class Effects {
 public:
  Effects(const Run& run, const Estimate& now, Units units)
      : run_(run),
        now_(now),
        shortage_(advise::shortage_of(run, now)),
        tight_(advise::is_tight(run, now)),
        units_(units) {}

  Action action(const NextAction& next) const {
    const Tried& tried = next.tried;
    std::string effect = now_.fits ? faster(tried) : smaller(tried);
    if (next.rank == NextAction::Rank::fewest_gpus) effect = "the fewest GPUs tried that fit: " + effect;
    if (next.rank == NextAction::Rank::nearest) effect = "nothing that was tried fits; the nearest " + effect;
    return {plan::flags_of(tried.change), std::move(effect), tried.reason};
  }

 private:
  std::string size(std::int64_t bytes) const { return size_with_unit(bytes, units_, 1); }

  /// "28.6 s (-12.0%)", or tokens/s where the step's tokens changed as well.
  std::string speed(const Tried& tried, std::string_view step) const {
    if (tried.step_tokens == advise::step_tokens(run_)) {
      return fmt::format("{}{} ({:+.1f}%)", step, seconds_text(tried.step_s),
                         100 * (tried.step_s / now_.time.step_s - 1));
    }
    return fmt::format("{} tokens/s ({:+.1f}%)", short_count(tried.tokens_per_s),
                       100 * (tried.tokens_per_s / now_.throughput.tokens_per_s - 1));
  }

  std::string tight(const Tried& tried) const { return tried.tight && !tight_ ? ", tight_memory" : ""; }

  std::string faster(const Tried& tried) const {
    return fmt::format("MFU {}, {}, peak {}{}", percent_text(tried.mfu), speed(tried, ""), size(tried.peak_bytes),
                       tight(tried));
  }

  /// What was lacking and what is, each on the card, in host memory or on NVMe.
  std::string smaller(const Tried& tried) const {
    std::string effect;
    if (shortage_.gpu > 0) {
      effect = fmt::format("frees {}", size(tried.headroom_bytes - now_.headroom_bytes));
    } else if (shortage_.host > 0) {
      effect = fmt::format("frees {} of host memory a node", size(shortage_.host - tried.shortage.host));
    } else {
      effect = fmt::format("frees {} of NVMe a node", size(shortage_.nvme - tried.shortage.nvme));
    }
    if (tried.fits) return effect + ", " + speed(tried, "step ") + tight(tried);
    const auto lacks = [&](std::int64_t bytes, std::string_view where) {
      if (bytes > 0) effect += fmt::format(", still {} over{}", size(bytes), where);
    };
    lacks(tried.shortage.gpu, "");
    lacks(tried.shortage.host, " in host memory a node");
    lacks(tried.shortage.nvme, " on NVMe a node");
    return effect;
  }

  const Run& run_;
  const Estimate& now_;
  advise::Shortage shortage_;
  bool tight_;
  Units units_;
};

}  // namespace

std::vector<Action> actions_of(const std::vector<NextAction>& actions, const Run& run, const Estimate& now,
                               Units units) {
  const Effects effects(run, now, units);
  std::vector<Action> lines;
  for (const NextAction& action : actions) lines.push_back(effects.action(action));
  return lines;
}

std::string fix_effect(const Tried& tried, const Estimate& now, const std::vector<Verdict>& verdicts, Units units) {
  std::string effect;
  const auto add = [&](const std::string& text) { effect += (effect.empty() ? "" : ", ") + text; };
  for (std::size_t i = 0; i < std::min(verdicts.size(), tried.verdicts.size()); ++i) {
    if (verdicts[i].holds) continue;
    if (verdicts[i].requirement == Requirement::fits) {
      const std::int64_t freed = tried.headroom_bytes - now.headroom_bytes;
      add(now.fits_gpu ? std::string("host memory suffices")
                       : fmt::format("frees {}", size_with_unit(freed, units, 1)));
    } else {
      add(requirement_value(tried.verdicts[i].requirement, tried.verdicts[i].actual, units));
    }
  }
  // What is paid for it.
  constexpr double worth_a_word = 0.99;
  const double speed = tried.tokens_per_s / now.throughput.tokens_per_s;
  if (speed < 0.5) {
    add(fmt::format("{:.1f} times slower", 1 / speed));
  } else if (speed < worth_a_word) {
    add(fmt::format("{:.0f}% slower", 100 * (1 - speed)));
  }
  return effect;
}

}  // namespace shardplan::report
