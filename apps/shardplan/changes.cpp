#include "changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "shardplan/io/stack_file.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/plan/legality.hpp"
#include "shardplan/plan/search_space.hpp"

namespace shardplan::cli {
namespace {

using plan::Draft;
using plan::Field;
using plan::FieldSet;

/// Levers that change one run.
class Levers {
 public:
  Levers(const Draft& draft, const Run& run, bool fits) : draft_(draft), run_(run), fits_(fits) {}

  bool fits() const noexcept { return fits_; }
  const Draft& draft() const noexcept { return draft_; }
  const Run& run() const noexcept { return run_; }
  std::vector<Lever> take() { return std::move(all_); }

  template <class Set>
  void add(std::string flags, std::string_view reason, FieldSet fields, Set set) {
    all_.push_back({std::move(flags), reason, fields, [set](Draft& draft) { set(draft.run); }});
  }
  /// A change that only frees memory: of no use to a run that fits.
  template <class Set>
  void add_saving(std::string flags, std::string_view reason, FieldSet fields, Set set) {
    if (!fits_) add(std::move(flags), reason, fields, set);
  }
  void add(Lever lever) { all_.push_back(std::move(lever)); }

 private:
  const Draft& draft_;
  const Run& run_;
  bool fits_;
  std::vector<Lever> all_;
};

/// Context parallelism needs an attention kernel that goes block by block.
bool splits_sequences(const Run& run) { return run.training.attention != AttentionKernel::eager; }

bool shards_over_something(const Run& run) { return run.parallel.dense_replicas() > 1; }

/// The framework in which this run's FSDP would go on: its own where it has one, torch's elsewhere.
Framework fsdp_framework(const Run& run) {
  const Framework framework = run.training.framework;
  return facts_of(framework).fsdp != FsdpKind::none ? framework : implied_framework(true, false, false);
}

void change_degrees(Levers& levers) {
  const Run& run = levers.run();
  const Draft& draft = levers.draft();
  const Parallel& now = run.parallel;
  for (const int tensor : {now.tensor / 2, now.tensor * 2}) {
    if (tensor < 1 || tensor > run.cluster.scale_up_domain) continue;
    levers.add(tensor_lever(tensor, tensor < now.tensor ? "less TP exchange"
                                    : levers.fits()     ? ""
                                                        : "half of each layer"));
  }
  const bool equal_layers = !draft.given.has(Field::layers_per_stage);
  for (const int pipeline : {now.pipeline / 2, now.pipeline * 2}) {
    if (pipeline < 1 || !equal_layers) continue;
    levers.add(pipeline_lever(pipeline, pipeline < now.pipeline ? "less bubble"
                                        : levers.fits()         ? ""
                                                                : "fewer layers a GPU"));
  }
  const bool one_order = now.schedule == ScheduleKind::one_f_one_b || now.schedule == ScheduleKind::interleaved;
  for (const int chunks : {now.virtual_pipeline * 2, now.virtual_pipeline / 2}) {
    if (now.pipeline == 1 || chunks < 2 || !one_order || !equal_layers) continue;
    levers.add(chunks_lever(draft, run, chunks,
                            chunks > now.virtual_pipeline ? "less bubble"
                            : levers.fits()               ? ""
                                                          : "fewer chunks in flight"));
  }
  if (!levers.fits() && splits_sequences(run)) levers.add(context_lever(now.context * 2, "half the sequence a rank"));
  if (!run.model.has_experts()) return;
  for (const int expert : {now.expert * 2, now.expert / 2}) {
    if (expert < 1) continue;
    levers.add(expert_lever(expert, expert > now.expert ? "fewer experts a GPU" : "less exchange of tokens"));
  }
}

void change_sharding(Levers& levers) {
  const Run& run = levers.run();
  const Parallel& now = run.parallel;
  if (now.tensor > 1 && !now.sequence_parallel) {
    levers.add("--sp", "norms are split too", FieldSet(Field::sequence_parallel),
               [](Run& r) { r.parallel.sequence_parallel = true; });
  }
  if (!shards_over_something(run)) return;
  if (now.fsdp == Fsdp::none) {
    for (int stage = 1; stage <= 3; ++stage) {
      if (stage == now.zero_stage) continue;
      // Stage 1 also shortens the optimizer's step; beyond it traffic grows.
      const bool saving = stage > std::max(now.zero_stage, 1);
      if (saving && levers.fits()) continue;
      levers.add(zero_lever(stage, saving ? "more of the states is sharded" : "sharded optimizer, less traffic"));
    }
  }
  for (const Fsdp mode : {Fsdp::full_shard, Fsdp::shard_grad_op, Fsdp::hybrid_shard}) {
    if (now.fsdp == mode) continue;
    const bool saving = mode == Fsdp::full_shard || now.fsdp == Fsdp::none;
    if (saving && levers.fits()) continue;
    levers.add(fsdp_lever(levers.draft(), mode, saving ? "states are sharded" : "weights are gathered less",
                          fsdp_framework(run)));
  }
}

void change_training(Levers& levers) {
  const Run& run = levers.run();
  const Training& now = run.training;
  for (const std::int64_t batch : {now.micro_batch_size * 2, now.micro_batch_size / 2}) {
    if (batch < 1) continue;
    levers.add(micro_batch_lever(batch, batch > now.micro_batch_size ? "larger products" : "half the activations"));
  }
  const bool has_flash = plan::runs_attention(run.cluster.gpu, AttentionKernel::flash);
  if (now.attention == AttentionKernel::eager && has_flash) {
    levers.add(attention_lever(AttentionKernel::flash, "no s x s scores"));
  }
  const auto recompute = [&](const char* word, RecomputeMode mode, std::string_view reason) {
    if (now.recompute.mode != mode) levers.add(recompute_lever(word, {mode, 0, 0}, reason));
  };
  recompute("none", RecomputeMode::none, "nothing twice");
  recompute("selective", RecomputeMode::selective, "only the attention core twice");
  recompute("full", RecomputeMode::full, "a layer keeps its input");
  for (const LossKind loss : {LossKind::te, LossKind::liger}) {
    if (now.loss == loss || (loss == LossKind::te) != facts_of(now.framework).transformer_engine) continue;
    levers.add(fmt::format("--loss {}", name(loss)), "fewer copies of the logits", FieldSet(Field::loss),
               [loss](Run& r) { r.training.loss = loss; });
  }
  if (facts_of(now.framework).tensor_overlap && run.parallel.tensor > 1 && !now.overlap.tp) {
    levers.add("--set training.overlap.tp=true", "it hides behind gemms", FieldSet(Field::overlap_tp),
               [](Run& r) { r.training.overlap.tp = true; });
  }
}

void change_offload(Levers& levers) {
  const Offload& now = levers.run().training.offload;
  if (now.optimizer == OffloadDevice::none) {
    levers.add_saving("--offload optimizer=cpu", "its states live in host memory",
                      FieldSet(Field::offload, Field::offload_optimizer),
                      [](Run& r) { r.training.offload.optimizer = OffloadDevice::cpu; });
    return;
  }
  const auto place = [](OffloadDevice optimizer, OffloadDevice parameters) {
    return [optimizer, parameters](Run& r) {
      r.training.offload.optimizer = optimizer;
      r.training.offload.parameters = parameters;
    };
  };
  const FieldSet fields(Field::offload, Field::offload_optimizer, Field::offload_parameters);
  levers.add_saving("--set training.offload.optimizer=null --set training.offload.parameters=null",
                    "the host holds no states", fields, place(OffloadDevice::none, OffloadDevice::none));
  if (now.optimizer == OffloadDevice::cpu) {
    levers.add_saving("--offload optimizer=nvme", "its states live on NVMe", fields,
                      place(OffloadDevice::nvme, now.parameters));
  }
}

/// The most that this run's framework shards, where there is something to shard over.
std::vector<Lever> strongest_sharding(const Draft& draft, const Run& run) {
  std::vector<Lever> levers;
  const Parallel& now = run.parallel;
  const FrameworkFacts& framework = facts_of(run.training.framework);
  if (framework.zero.highest > 1) {
    const int stage = framework.highest_zero_stage(now.pipeline > 1);
    if (now.zero_stage < stage) levers.push_back(zero_lever(stage, "states are sharded"));
  } else {
    if (framework.zero.highest == 1 && now.zero_stage < 1 && now.fsdp == Fsdp::none) {
      levers.push_back(zero_lever(1, "sharded optimizer"));
    }
    if (now.fsdp != Fsdp::full_shard) {
      levers.push_back(fsdp_lever(draft, Fsdp::full_shard, "states are sharded", fsdp_framework(run)));
    }
  }
  return levers;
}

/// As many ranks as share the experts out evenly, up to eight nodes of eight.
Lever strongest_expert(const Run& run) {
  constexpr std::int64_t most = 64;
  const std::int64_t experts = plan::facts_of(run.model).experts;
  int expert = std::max(1, run.parallel.expert);
  while (2 * expert <= most && experts % (2 * std::int64_t{expert}) == 0) expert *= 2;
  return expert_lever(expert, "fewer experts a GPU");
}

/// Optimizer and parameters on the host, in a framework that can.
Lever offload_everything(const Draft& draft, const Run& run) {
  std::string flags = "--offload optimizer=cpu,parameters=cpu";
  FieldSet fields(Field::offload, Field::offload_optimizer, Field::offload_parameters);
  const int from = facts_of(run.training.framework).offload.parameters_cpu_from;
  const bool zero = from > 0;
  const bool move = !draft.given.has(Field::framework) && from == never;
  if (zero) {
    flags += " --zero 3";
    fields.add(Field::zero_stage);
  } else if (move) {
    flags += " --framework fsdp";
    fields.add(Field::framework);
  }
  return {std::move(flags), "states live in host memory", fields, [move, zero](Draft& d) {
            d.run.training.offload.optimizer = d.run.training.offload.parameters = OffloadDevice::cpu;
            if (zero) d.run.parallel.zero_stage = 3;
            if (!zero && move) d.run.training.framework = implied_framework(true, false, false);
          }};
}

/// The default framework and with it the stack's constants may rest on what was changed.
bool follow_framework(Draft& draft, const io::CatalogSource& catalog) {
  const Framework before = draft.run.training.stack.framework;
  if (!draft.given.has(Field::framework)) draft.run.training.framework = plan::default_framework(draft);
  const Framework framework = draft.run.training.framework;
  if (!draft.given.has(Field::stack) && framework != before) {
    draft.run.training.stack = io::default_stack(framework, catalog);
  }
  return framework != before;
}

}  // namespace

void change_of(const Draft& draft, const std::vector<const Lever*>& levers, const io::CatalogSource& catalog,
               Change& change) {
  change.flags.clear();
  change.reason.clear();
  change.draft = draft;
  Draft& changed = change.draft;
  const Framework before = draft.run.training.framework;
  for (const Lever* const lever : levers) {
    lever->set(changed);
    changed.given |= lever->fields;
    // As with flags: a degree of data parallelism that was stated gives way to the changed layout.
    if (lever->fields.meets(FieldSet(Field::num_gpus, Field::tensor, Field::pipeline, Field::context))) {
      changed.given.remove(Field::data);
    }
    change.flags += (change.flags.empty() ? "" : " ") + lever->flags;
    if (!lever->reason.empty()) change.reason += (change.reason.empty() ? "" : ", ") + std::string(lever->reason);
  }
  follow_framework(changed, catalog);
  const Framework after = changed.run.training.framework;
  if (after != before) {
    const std::string flag = fmt::format("--framework {}", name(after));
    if (change.flags.find(flag) == std::string::npos) change.flags += " " + flag;
    changed.given.add(Field::framework);
    change.reason = fmt::format("{} in place of {}{}{}", name(after), name(before), change.reason.empty() ? "" : ": ",
                                change.reason);
  }
}

std::vector<Lever> single_levers(const Draft& draft, const Run& run, bool fits) {
  Levers levers(draft, run, fits);
  change_degrees(levers);
  change_sharding(levers);
  change_training(levers);
  change_offload(levers);
  return levers.take();
}

std::vector<Lever> far_levers(const Draft& draft, const Run& run) {
  std::vector<Lever> levers;
  const Parallel& now = run.parallel;
  const Training& training = run.training;
  /// Whether a value is neither what the run has nor a single step from it.
  const auto is_far = [](std::int64_t value, std::int64_t has) {
    return value != has && value != 2 * has && 2 * value != has;
  };
  for (int tensor = 1; tensor <= run.cluster.scale_up_domain; tensor *= 2) {
    if (is_far(tensor, now.tensor)) levers.push_back(tensor_lever(tensor, ""));
  }
  const bool equal_layers = !draft.given.has(Field::layers_per_stage);
  const auto layers = static_cast<std::int64_t>(run.model.layers());
  const bool one_order = now.schedule == ScheduleKind::one_f_one_b || now.schedule == ScheduleKind::interleaved;
  for (const int part : plan::divisors(layers)) {
    if (!equal_layers) break;
    if (part <= run.num_gpus && is_far(part, now.pipeline)) levers.push_back(pipeline_lever(part, ""));
    const bool chunks = one_order && now.pipeline > 1 && part > 1 && layers % (std::int64_t{part} * now.pipeline) == 0;
    if (chunks && is_far(part, now.virtual_pipeline)) levers.push_back(chunks_lever(draft, run, part, ""));
  }
  constexpr int most_context = 64;
  for (int context = 1; splits_sequences(run) && context <= most_context; context *= 2) {
    if (context < now.context || context > 2 * now.context) levers.push_back(context_lever(context, ""));
  }
  for (int expert = 1; run.model.has_experts() && expert <= plan::facts_of(run.model).experts; expert *= 2) {
    if (is_far(expert, now.expert)) levers.push_back(expert_lever(expert, ""));
  }
  constexpr std::int64_t most_larger = 16;
  const std::int64_t sequences = std::max<std::int64_t>(1, training.global_batch_size / std::max(1, now.data));
  for (const int batch : plan::divisors(sequences)) {
    if (batch <= most_larger * training.micro_batch_size && is_far(batch, training.micro_batch_size)) {
      levers.push_back(micro_batch_lever(batch, ""));
    }
  }
  // Some layers keep everything: Megatron counts the recomputed ones, torch takes every K-th.
  const auto per_stage = static_cast<int>(layers / std::max(1, now.pipeline * now.virtual_pipeline));
  for (int count = 1; count < per_stage; count *= 2) {
    levers.push_back(recompute_lever(fmt::format("full:{}", count), {RecomputeMode::first_n, count, 0}, ""));
  }
  for (const int step : {2, 3, 4}) {
    levers.push_back(recompute_lever(fmt::format("every:{}", step), {RecomputeMode::every_k, step, 0}, ""));
  }
  if (training.attention != AttentionKernel::flash_v3 &&
      plan::runs_attention(run.cluster.gpu, AttentionKernel::flash_v3)) {
    levers.push_back(attention_lever(AttentionKernel::flash_v3, ""));
  }
  return levers;
}

PairedLevers paired_levers(const Draft& draft, const Run& run) {
  PairedLevers pairs;
  const Parallel& now = run.parallel;
  const Training& training = run.training;
  const bool shards = shards_over_something(run);
  if (training.recompute.mode != RecomputeMode::full) {
    pairs.first.push_back(recompute_lever("full", {RecomputeMode::full, 0, 0}, "a layer keeps its input"));
  }
  if (training.micro_batch_size > 1) pairs.first.push_back(micro_batch_lever(1, "smaller activations"));
  constexpr std::int64_t shortest = 512;
  if (training.seq_length >= 2 * shortest) {
    pairs.first.push_back({fmt::format("--seq {}", training.seq_length / 2), "half the sequence",
                           FieldSet(Field::seq_length),
                           [seq = training.seq_length / 2](Draft& d) { d.run.training.seq_length = seq; }});
  }
  for (int tensor = now.tensor * 2; tensor <= run.cluster.scale_up_domain; tensor *= 2) {
    pairs.second.push_back(tensor_lever(tensor, "a part of each layer"));
  }
  const bool equal_layers = !draft.given.has(Field::layers_per_stage);
  for (int pipeline = now.pipeline * 2;
       equal_layers && pipeline <= std::min<std::int64_t>(run.model.layers(), run.num_gpus); pipeline *= 2) {
    pairs.second.push_back(pipeline_lever(pipeline, "fewer layers a GPU"));
  }
  if (shards) {
    for (Lever& lever : strongest_sharding(draft, run)) pairs.second.push_back(std::move(lever));
  }
  if (training.offload.optimizer == OffloadDevice::none) pairs.second.push_back(offload_everything(draft, run));
  return pairs;
}

std::vector<std::vector<Lever>> lever_ladder(const Draft& draft, const Run& run) {
  std::vector<std::vector<Lever>> ladder = {{}};
  std::vector<Lever> recompute;
  if (run.training.recompute.mode != RecomputeMode::full) {
    recompute.push_back(recompute_lever("full", {RecomputeMode::full, 0, 0}, "a layer keeps its input"));
    ladder.push_back(recompute);
  }
  for (Lever& lever : strongest_sharding(draft, run)) {
    std::vector<Lever> both = recompute;
    ladder.push_back({lever});
    both.push_back(std::move(lever));
    ladder.push_back(std::move(both));
  }
  // A model that data parallelism alone does not hold: split in the node, then over stages, and what is left sharded.
  if (draft.given.has(Field::framework) && !facts_of(run.training.framework).model_parallel) return ladder;
  const int node = std::min(run.cluster.scale_up_domain, run.cluster.gpus_per_node);
  std::vector<Lever> split = recompute;
  if (run.parallel.tensor < node) split.push_back(tensor_lever(node, "a part of each layer"));
  if (run.model.has_experts()) split.push_back(strongest_expert(run));
  std::vector<Lever> sharded = split;
  if (run.parallel.fsdp == Fsdp::none) {
    if (run.parallel.zero_stage < 1) split.push_back(zero_lever(1, "sharded optimizer"));
    sharded.push_back(fsdp_lever(draft, Fsdp::full_shard, "states are sharded", implied_framework(false, true, false)));
  }
  ladder.push_back(split);
  for (int pipeline = 2 * run.parallel.pipeline; pipeline <= 16; pipeline *= 2) {
    std::vector<Lever> staged = split;
    staged.push_back(pipeline_lever(pipeline, "fewer layers a GPU"));
    ladder.push_back(std::move(staged));
  }
  ladder.push_back(std::move(sharded));
  return ladder;
}

}  // namespace shardplan::cli
