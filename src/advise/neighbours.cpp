// The layouts one step from a search's best one.
#include <algorithm>
#include <string>
#include <utility>

#include "shardplan/advise/search_reasons.hpp"
#include "shardplan/advise/trials.hpp"
#include "shardplan/physics/frameworks/facts.hpp"

namespace shardplan::advise {
namespace {

using plan::Draft;
using plan::WhyNot;

/// Layouts next to one, legal or not; the layout itself where a step leads nowhere.
class Steps {
 public:
  explicit Steps(const Layout& from) : from_(from) {}

  template <class Change>
  void add(Change&& change) {
    Layout to = from_;
    change(to);
    list_.push_back(to);
  }

  /// Half and twice of a member, and what goes with it.
  template <class Member>
  void add_both(Member member) {
    for (const bool more : {false, true}) {
      add([&](Layout& to) {
        auto& value = to.*member;
        value = more ? value * 2 : std::max<std::decay_t<decltype(value)>>(1, value / 2);
        if (to.tensor == 1) to.sequence_parallel = false;
        if (to.tensor > 1 && from_.tensor == 1) to.sequence_parallel = true;
        if (to.pipeline == 1) set_chunks(to, 1);
      });
    }
  }

  void add_sharding(int zero_stage, Fsdp fsdp) {
    add([&](Layout& to) {
      to.zero_stage = zero_stage;
      to.fsdp = fsdp;
      to.shard_group = 0;
    });
  }

  void add_chunks(int chunks) {
    add([&](Layout& to) { set_chunks(to, chunks); });
  }

  const std::vector<Layout>& list() const noexcept { return list_; }

 private:
  /// What goes with one chunk a rank, or several.
  static void set_chunks(Layout& layout, int chunks) {
    layout.virtual_pipeline = chunks;
    layout.schedule = chunks > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
  }

  Layout from_;
  std::vector<Layout> list_;
};

std::vector<Layout> steps_from(const Layout& best, const Run& run) {
  Steps steps(best);
  steps.add_both(&Layout::tensor);
  steps.add_both(&Layout::pipeline);
  steps.add_both(&Layout::context);
  if (run.model.has_experts()) steps.add_both(&Layout::expert);
  steps.add_both(&Layout::micro_batch_size);
  if (best.pipeline > 1) {
    steps.add_chunks(1);
    steps.add_chunks(std::max(2, 2 * best.virtual_pipeline));
  }
  steps.add([](Layout& to) {
    const bool none = to.recompute.mode == RecomputeMode::none;
    to.recompute = Recompute{none ? RecomputeMode::full : RecomputeMode::none, 0, 0};
  });
  steps.add([](Layout& to) { to.sequence_parallel = to.tensor > 1 && !to.sequence_parallel; });
  if (best.fsdp == Fsdp::none || !facts_of(run.training.framework).shards_by_fsdp()) {
    for (const int stage : {0, 1, 2, 3}) steps.add_sharding(stage, Fsdp::none);
  }
  steps.add_sharding(0, Fsdp::full_shard);
  return steps.list();
}

}  // namespace

std::vector<WhyNot> neighbours(const Draft& base, const Layout& best, std::size_t most) {
  Trial of_best;
  of_best.resolve(plan::with_layout(base, best));
  const Estimate& estimate = of_best.estimate();
  Trial trial;
  std::vector<WhyNot> found;
  for (const Layout& other : steps_from(best, base.run)) {
    if (order_of(other, best) == 0 || !trial.resolve(plan::with_layout(base, other))) continue;
    found.push_back(plan::why_not(of_best.run(), estimate, trial.run(), trial.estimate(),
                                  plan::flags_of(plan::change_between(best, other))));
  }
  const auto rank = [](const WhyNot& why) { return why.verdict == WhyNot::Verdict::does_not_fit ? 0 : 1; };
  std::stable_sort(found.begin(), found.end(), [&](const WhyNot& a, const WhyNot& b) {
    return rank(a) != rank(b) ? rank(a) < rank(b) : a.step_s < b.step_s;
  });
  // What neither fits nor would be faster says little.
  const auto idle = [&](const WhyNot& why) { return rank(why) == 0 && why.reason.find("slower") != std::string::npos; };
  found.erase(std::remove_if(found.begin(), found.end(), idle), found.end());
  if (found.size() > most) found.resize(most);
  return found;
}

}  // namespace shardplan::advise
