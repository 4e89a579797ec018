#include "next_actions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "shardplan/io/stack_file.hpp"
#include "shardplan/plan/validate.hpp"
#include "shardplan/report/number.hpp"

namespace shardplan::cli {
namespace {

using plan::Draft;
using plan::Field;

/// One change as flags, and what it makes of the statement of the run.
struct Change {
  std::string flags;
  std::string_view reason;
  Draft draft;
};

/// Collects changes of a draft.
class Changes {
 public:
  Changes(const Draft& draft, bool fits, const io::CatalogSource& catalog)
      : base_(draft), fits_(fits), catalog_(catalog) {}

  /// A change that only frees memory: of no use to a run that fits.
  template <class State>
  void add_saving(std::string flags, std::string_view reason, plan::FieldSet fields, State state) {
    if (!fits_) add(std::move(flags), reason, fields, state);
  }

  /// `state(run)` sets the fields, which then count as stated.
  template <class State>
  void add(std::string flags, std::string_view reason, plan::FieldSet fields, State state) {
    Change change{std::move(flags), reason, base_};
    Draft& draft = change.draft;
    state(draft.run);
    draft.given |= fields;
    // As with flags: a degree of data parallelism that was stated gives way to the changed layout.
    if (fields.meets(plan::FieldSet(Field::tensor, Field::pipeline, Field::context))) draft.given.remove(Field::data);
    follow_framework(draft);
    all_.push_back(std::move(change));
  }

  const std::vector<Change>& all() const noexcept { return all_; }
  bool fits() const noexcept { return fits_; }

 private:
  /// The framework, and with it the stack's constants, may rest on what was changed.
  void follow_framework(Draft& draft) const {
    if (draft.given.has(Field::framework)) return;
    const Framework framework = plan::default_framework(draft);
    if (framework == draft.run.training.framework) return;
    draft.run.training.framework = framework;
    if (!draft.given.has(Field::stack)) draft.run.training.stack = io::default_stack(framework, catalog_);
  }

  const Draft& base_;
  bool fits_;
  const io::CatalogSource& catalog_;
  std::vector<Change> all_;
};

void change_degrees(Changes& changes, const Draft& draft, const Run& run) {
  const Parallel& now = run.parallel;
  for (const int tensor : {now.tensor / 2, now.tensor * 2}) {
    if (tensor < 1 || tensor > run.cluster.scale_up_domain) continue;
    changes.add(fmt::format("--tp {}", tensor),
                tensor < now.tensor ? "less TP exchange"
                : changes.fits()    ? ""
                                    : "half of each layer",
                plan::FieldSet(Field::tensor), [tensor](Run& r) { r.parallel.tensor = tensor; });
  }
  const bool equal_layers = !draft.given.has(Field::layers_per_stage);
  for (const int pipeline : {now.pipeline / 2, now.pipeline * 2}) {
    if (pipeline < 1 || !equal_layers) continue;
    changes.add(fmt::format("--pp {}", pipeline),
                pipeline < now.pipeline ? "less bubble"
                : changes.fits()        ? ""
                                        : "fewer layers a GPU",
                plan::FieldSet(Field::pipeline), [pipeline](Run& r) { r.parallel.pipeline = pipeline; });
  }
  const bool one_order = now.schedule == ScheduleKind::one_f_one_b || now.schedule == ScheduleKind::interleaved;
  for (const int chunks : {now.virtual_pipeline * 2, now.virtual_pipeline / 2}) {
    if (now.pipeline == 1 || chunks < 2 || !one_order || !equal_layers) continue;
    const bool restate = draft.given.has(Field::schedule) && now.schedule != ScheduleKind::interleaved;
    changes.add(
        fmt::format("--vpp {}{}", chunks, restate ? " --schedule interleaved" : ""),
        chunks > now.virtual_pipeline ? "less bubble"
        : changes.fits()              ? ""
                                      : "fewer chunks in flight",
        restate ? plan::FieldSet(Field::virtual_pipeline, Field::schedule) : plan::FieldSet(Field::virtual_pipeline),
        [chunks](Run& r) {
          r.parallel.virtual_pipeline = chunks;
          r.parallel.schedule = ScheduleKind::interleaved;
        });
  }
  changes.add_saving(fmt::format("--cp {}", now.context * 2), "half the sequence a rank",
                     plan::FieldSet(Field::context),
                     [context = now.context * 2](Run& r) { r.parallel.context = context; });
  if (!run.model.has_experts()) return;
  for (const int expert : {now.expert * 2, now.expert / 2}) {
    if (expert < 1) continue;
    changes.add(fmt::format("--ep {}", expert), expert > now.expert ? "fewer experts a GPU" : "less exchange of tokens",
                plan::FieldSet(Field::expert), [expert](Run& r) { r.parallel.expert = expert; });
  }
}

void change_sharding(Changes& changes, const Run& run) {
  const Parallel& now = run.parallel;
  if (now.fsdp == Fsdp::none) {
    for (int stage = 1; stage <= 3; ++stage) {
      if (stage == now.zero_stage) continue;
      const auto state = [stage](Run& r) { r.parallel.zero_stage = stage; };
      const plan::FieldSet field(Field::zero_stage);
      // Stage 1 also shortens the optimizer's step; beyond it traffic grows.
      if (stage > std::max(now.zero_stage, 1)) {
        changes.add_saving(fmt::format("--zero {}", stage), "more of the states is sharded", field, state);
      } else {
        changes.add(fmt::format("--zero {}", stage), "sharded optimizer, less traffic", field, state);
      }
    }
  }
  for (const Fsdp mode : {Fsdp::full_shard, Fsdp::shard_grad_op, Fsdp::hybrid_shard}) {
    if (now.zero_stage > 0 || now.fsdp == mode) continue;
    const auto state = [mode](Run& r) { r.parallel.fsdp = mode; };
    const plan::FieldSet field(Field::fsdp);
    if (mode == Fsdp::full_shard || now.fsdp == Fsdp::none) {
      changes.add_saving(fmt::format("--fsdp {}", name(mode)), "states are sharded", field, state);
    } else {
      changes.add(fmt::format("--fsdp {}", name(mode)), "weights are gathered less", field, state);
    }
  }
  if (now.tensor > 1 && !now.sequence_parallel) {
    changes.add("--sp", "norms are split too", plan::FieldSet(Field::sequence_parallel),
                [](Run& r) { r.parallel.sequence_parallel = true; });
  }
}

void change_training(Changes& changes, const Run& run) {
  const Training& now = run.training;
  for (const std::int64_t batch : {now.micro_batch_size * 2, now.micro_batch_size / 2}) {
    if (batch < 1) continue;
    changes.add(fmt::format("--mbs {}", batch),
                batch > now.micro_batch_size ? "larger products" : "half the activations",
                plan::FieldSet(Field::micro_batch_size), [batch](Run& r) { r.training.micro_batch_size = batch; });
  }
  if (now.attention == AttentionKernel::eager) {
    changes.add("--attention flash", "no s x s scores", plan::FieldSet(Field::attention),
                [](Run& r) { r.training.attention = AttentionKernel::flash; });
  }
  const auto recompute = [&](std::string_view word, RecomputeMode mode, std::string_view reason) {
    if (now.recompute.mode == mode) return;
    changes.add(fmt::format("--recompute {}", word), reason, plan::FieldSet(Field::recompute), [mode](Run& r) {
      r.training.recompute = {mode, 0, 0};
    });
  };
  recompute("none", RecomputeMode::none, "nothing twice");
  recompute("selective", RecomputeMode::selective, "only the attention core twice");
  recompute("full", RecomputeMode::full, "a layer keeps its input");
  for (const LossKind loss : {LossKind::te, LossKind::liger}) {
    if (now.loss == loss || (loss == LossKind::te) != (now.framework == Framework::megatron)) continue;
    changes.add(fmt::format("--loss {}", name(loss)), "fewer copies of the logits", plan::FieldSet(Field::loss),
                [loss](Run& r) { r.training.loss = loss; });
  }
  if (now.framework == Framework::megatron && run.parallel.tensor > 1 && !now.overlap.tp) {
    changes.add("--set training.overlap.tp=true", "it hides behind gemms", plan::FieldSet(Field::overlap_tp),
                [](Run& r) { r.training.overlap.tp = true; });
  }
  if (now.offload.optimizer == OffloadDevice::none) {
    changes.add_saving("--offload optimizer=cpu", "its states live in host memory",
                       plan::FieldSet(Field::offload, Field::offload_optimizer),
                       [](Run& r) { r.training.offload.optimizer = OffloadDevice::cpu; });
  }
}

/// A legal change and its estimate, as far as the choice needs it.
struct Tried {
  const Change* change = nullptr;
  bool fits = false;
  bool roomy = false;  ///< fits with 2% of the card to spare
  std::int64_t peak_bytes = 0;
  std::int64_t headroom_bytes = 0;
  std::int64_t global_batch_size = 0;
  double step_s = 0;
  double tokens_per_s = 0;
  double mfu = 0;
};

std::vector<Tried> try_all(const std::vector<Change>& changes) {
  // A step of a hundred thousand microbatches takes a while to simulate: what is tried is bounded, by work and not by
  // time, so that the same run always gets the same answer.
  std::int64_t passes_left = 2'000'000;
  std::vector<Tried> tried;
  Run run;
  Estimate result;
  for (const Change& change : changes) {
    plan::resolve(change.draft, run);
    if (plan::broken_rules(change.draft, run).any()) continue;
    const std::int64_t passes = run.microbatches() * run.parallel.pipeline * run.parallel.virtual_pipeline;
    if (passes > passes_left) continue;
    passes_left -= passes;
    estimate(run, result);
    tried.push_back({&change, result.fits, result.fits && result.headroom_bytes > result.capacity_bytes / 50,
                     result.peak_bytes, result.headroom_bytes, run.training.global_batch_size, result.time.step_s,
                     result.throughput.tokens_per_s, result.throughput.mfu});
  }
  return tried;
}

/// Of --zero 1, --zero 2 and --zero 3 the first: three lines are to be three ideas.
void keep_best_of_each_flag(std::vector<Tried>& tried) {
  const auto flag = [](const Tried& t) {
    return std::string_view(t.change->flags).substr(0, t.change->flags.find(' '));
  };
  for (auto kept = tried.begin(); kept != tried.end(); ++kept) {
    tried.erase(std::remove_if(kept + 1, tried.end(), [&](const Tried& t) { return flag(t) == flag(*kept); }),
                tried.end());
  }
}

/// "28.6 s (-12.0%)", or tokens/s where the step's tokens changed as well.
std::string speed(const Tried& tried, const Run& run, const Estimate& now) {
  if (tried.global_batch_size == run.training.global_batch_size) {
    return fmt::format("{} ({:+.1f}%)", report::seconds_text(tried.step_s), 100 * (tried.step_s / now.time.step_s - 1));
  }
  return fmt::format("{} tokens/s ({:+.1f}%)", report::short_count(tried.tokens_per_s),
                     100 * (tried.tokens_per_s / now.throughput.tokens_per_s - 1));
}

}  // namespace

std::vector<report::Action> next_actions(const plan::Draft& draft, const Run& run, const Estimate& estimate,
                                         report::Units units, const io::CatalogSource& catalog) {
  constexpr std::size_t most = 3;
  constexpr double worth_a_line = 1.01;
  Changes changes(draft, estimate.fits, catalog);
  change_degrees(changes, draft, run);
  change_sharding(changes, run);
  change_training(changes, run);
  std::vector<Tried> tried = try_all(changes.all());

  const bool any_fits = std::any_of(tried.begin(), tried.end(), [](const Tried& t) { return t.fits; });
  const auto useless = [&](const Tried& t) {
    if (estimate.fits) return !t.roomy || t.tokens_per_s < worth_a_line * estimate.throughput.tokens_per_s;
    return any_fits ? !t.fits : t.headroom_bytes <= estimate.headroom_bytes;
  };
  tried.erase(std::remove_if(tried.begin(), tried.end(), useless), tried.end());
  std::stable_sort(tried.begin(), tried.end(), [&](const Tried& a, const Tried& b) {
    return any_fits ? a.tokens_per_s > b.tokens_per_s : a.headroom_bytes > b.headroom_bytes;
  });
  keep_best_of_each_flag(tried);
  tried.resize(std::min(tried.size(), most));

  std::vector<report::Action> actions;
  for (const Tried& t : tried) {
    std::string effect;
    if (estimate.fits) {
      effect = fmt::format("MFU {}, {}, peak {}", report::percent_text(t.mfu), speed(t, run, estimate),
                           report::size_with_unit(t.peak_bytes, units, 1));
    } else {
      effect = fmt::format("frees {}, {}", report::size_with_unit(t.headroom_bytes - estimate.headroom_bytes, units, 1),
                           t.fits ? "step " + speed(t, run, estimate)
                                  : "still " + report::size_with_unit(-t.headroom_bytes, units, 1) + " over");
    }
    actions.push_back({t.change->flags, std::move(effect), std::string(t.change->reason)});
  }
  return actions;
}

}  // namespace shardplan::cli
