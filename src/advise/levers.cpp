#include <algorithm>
#include <utility>

#include "lever_parts.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/plan/legality.hpp"

namespace shardplan::advise {

using plan::Draft;
using plan::Field;

bool splits_sequences(const Run& run) noexcept { return run.training.attention != AttentionKernel::eager; }

bool shards_over_something(const Run& run) noexcept { return run.parallel.dense_replicas() > 1; }

Framework fsdp_framework(const Run& run) noexcept {
  const Framework framework = run.training.framework;
  return facts_of(framework).fsdp != FsdpKind::none ? framework : implied_framework(true, false, false);
}

bool has_plain_order(const Run& run) noexcept {
  const ScheduleKind schedule = run.parallel.schedule;
  return schedule == ScheduleKind::one_f_one_b || schedule == ScheduleKind::interleaved;
}

Lever chunks_lever(const Draft& draft, const Run& run, int chunks, std::string_view reason) {
  Lever chunked = lever(Field::virtual_pipeline, chunks, reason);
  const bool restate = draft.given.has(Field::schedule) && run.parallel.schedule != ScheduleKind::interleaved;
  if (restate) chunked.change.set(Field::schedule, ScheduleKind::interleaved);
  return chunked;
}

Lever fsdp_lever(const Draft& draft, Fsdp mode, std::string_view reason, Framework keep) {
  Lever sharded = lever(Field::fsdp, mode, reason);
  if (!facts_of(keep).shards_by_fsdp() && !draft.given.has(Field::framework))
    sharded.change.set(Field::framework, keep);
  return sharded;
}

Lever recompute_lever(Recompute recompute, std::string_view reason) {
  return lever(Field::recompute, plan::recompute_words(recompute), reason);
}

Lever more_gpus(int num_gpus) { return lever(Field::num_gpus, num_gpus, ""); }
namespace {

/// Levers that change one run.
class Levers {
 public:
  Levers(const Draft& draft, const Run& run, bool fits) : draft_(draft), run_(run), fits_(fits) {}

  bool fits() const noexcept { return fits_; }
  const Draft& draft() const noexcept { return draft_; }
  const Run& run() const noexcept { return run_; }
  std::vector<Lever> take() { return std::move(all_); }

  void add(Lever lever) { all_.push_back(std::move(lever)); }
  /// A change that only frees memory: of no use to a run that fits.
  void add_saving(Lever lever) {
    if (!fits_) add(std::move(lever));
  }

 private:
  const Draft& draft_;
  const Run& run_;
  bool fits_;
  std::vector<Lever> all_;
};

void change_degrees(Levers& levers) {
  const Run& run = levers.run();
  const Draft& draft = levers.draft();
  const Parallel& now = run.parallel;
  for (const int tensor : {now.tensor / 2, now.tensor * 2}) {
    if (tensor < 1 || tensor > run.cluster.scale_up_domain) continue;
    levers.add(lever(Field::tensor, tensor,
                     tensor < now.tensor ? "less TP exchange"
                     : levers.fits()     ? ""
                                         : "half of each layer"));
  }
  const bool equal_layers = !draft.given.has(Field::layers_per_stage);
  for (const int pipeline : {now.pipeline / 2, now.pipeline * 2}) {
    if (pipeline < 1 || !equal_layers) continue;
    levers.add(lever(Field::pipeline, pipeline,
                     pipeline < now.pipeline ? "less bubble"
                     : levers.fits()         ? ""
                                             : "fewer layers a GPU"));
  }
  const bool one_order = has_plain_order(run);
  for (const int chunks : {now.virtual_pipeline * 2, now.virtual_pipeline / 2}) {
    if (now.pipeline == 1 || chunks < 2 || !one_order || !equal_layers) continue;
    levers.add(chunks_lever(draft, run, chunks,
                            chunks > now.virtual_pipeline ? "less bubble"
                            : levers.fits()               ? ""
                                                          : "fewer chunks in flight"));
  }
  if (!levers.fits() && splits_sequences(run))
    levers.add(lever(Field::context, now.context * 2, "half the sequence a rank"));
  if (!run.model.has_experts()) return;
  for (const int expert : {now.expert * 2, now.expert / 2}) {
    if (expert < 1) continue;
    levers.add(lever(Field::expert, expert, expert > now.expert ? "fewer experts a GPU" : "less exchange of tokens"));
  }
}

void change_sharding(Levers& levers) {
  const Run& run = levers.run();
  const Parallel& now = run.parallel;
  if (now.tensor > 1 && !now.sequence_parallel) {
    levers.add(lever(Field::sequence_parallel, true, "norms are split too"));
  }
  if (!shards_over_something(run)) return;
  if (now.fsdp == Fsdp::none) {
    for (int stage = 1; stage <= 3; ++stage) {
      if (stage == now.zero_stage) continue;
      // Stage 1 also shortens the optimizer's step; beyond it traffic grows.
      const bool saving = stage > std::max(now.zero_stage, 1);
      if (saving && levers.fits()) continue;
      levers.add(lever(Field::zero_stage, stage,
                       saving ? "more of the states is sharded" : "sharded optimizer, less traffic"));
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
    levers.add(lever(Field::micro_batch_size, batch,
                     batch > now.micro_batch_size ? "larger products" : "half the activations"));
  }
  const bool has_flash = plan::runs_attention(run.cluster.gpu, AttentionKernel::flash);
  if (now.attention == AttentionKernel::eager && has_flash) {
    levers.add(lever(Field::attention, AttentionKernel::flash, "no s x s scores"));
  }
  const auto recompute = [&](RecomputeMode mode, std::string_view reason) {
    if (now.recompute.mode != mode) levers.add(recompute_lever({mode, 0, 0}, reason));
  };
  recompute(RecomputeMode::none, "nothing twice");
  recompute(RecomputeMode::selective, "only the attention core twice");
  recompute(RecomputeMode::full, "a layer keeps its input");
  for (const LossKind loss : {LossKind::te, LossKind::liger}) {
    if (now.loss == loss || (loss == LossKind::te) != facts_of(now.framework).transformer_engine) continue;
    levers.add(lever(Field::loss, loss, "fewer copies of the logits"));
  }
  if (facts_of(now.framework).tensor_overlap && run.parallel.tensor > 1 && !now.overlap.tp) {
    levers.add(lever(Field::overlap_tp, true, "it hides behind gemms"));
  }
}

void change_offload(Levers& levers) {
  const Offload& now = levers.run().training.offload;
  if (now.optimizer == OffloadDevice::none) {
    levers.add_saving(lever(Field::offload_optimizer, OffloadDevice::cpu, "its states live in host memory"));
    return;
  }
  Lever home;
  home.change.leave_out(Field::offload_optimizer).leave_out(Field::offload_parameters);
  home.reason = "the host holds no states";
  levers.add_saving(std::move(home));
  if (now.optimizer == OffloadDevice::cpu) {
    levers.add_saving(lever(Field::offload_optimizer, OffloadDevice::nvme, "its states live on NVMe"));
  }
}

}  // namespace

std::vector<Lever> single_levers(const Draft& draft, const Run& run, bool fits) {
  Levers levers(draft, run, fits);
  change_degrees(levers);
  change_sharding(levers);
  change_training(levers);
  change_offload(levers);
  return levers.take();
}

}  // namespace shardplan::advise
