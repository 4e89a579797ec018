// One rank's memory at every moment of a step in whole bytes, what its allocator reserves, and what is left of the
// card, as formulas over numbers or text (physics/trace.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "shardplan/plan/overheads.hpp"
#include "shardplan/plan/rank_formulas.hpp"

namespace shardplan {

/// A rank's memory: its peak's total and what of it is outside the allocator, and the reserve with its band. Bytes.
template <class N>
struct StageMemoryOf {
  RankMoments<N> moments;  ///< in whole bytes
  N total{}, framework{};  ///< at the peak
  N reserved{}, reserved_low{}, reserved_high{};
  N host{}, nvme{};
};

/// The parts of a moment in the order of the page, with their names.
template <class N>
struct MomentPart {
  StepName name;
  N MomentBytes<N>::*bytes;
  std::int64_t MemoryParts::*whole;
};
template <class N>
inline constexpr std::array<MomentPart<N>, 7> moment_parts = {
    {{{"parameters", "memory.parameters", "weights that live from step to step", "B", memory_names::sum},
      &MomentBytes<N>::parameters,
      &MemoryParts::parameters},
     {{"gradients", "memory.gradients", "gradients that live from step to step", "B", memory_names::sum},
      &MomentBytes<N>::gradients,
      &MemoryParts::gradients},
     {{"optimizer", "memory.optimizer", "master copy and moments", "B", memory_names::sum},
      &MomentBytes<N>::optimizer,
      &MemoryParts::optimizer},
     {{"activations", "memory.activations", "activations of all microbatches in flight", "B", memory_names::sum},
      &MomentBytes<N>::activations,
      &MemoryParts::activations},
     {{"transient", "memory.transient", "what a pass, the loss or the step holds for a while", "B", memory_names::sum},
      &MomentBytes<N>::transient,
      &MemoryParts::transient},
     {{"buffers", "memory.communication_buffers", "buckets, pools and receive buffers", "B", memory_names::sum},
      &MomentBytes<N>::communication_buffers,
      &MemoryParts::communication_buffers},
     {{"framework", "memory.framework", "CUDA context and NCCL, outside the allocator", "B", memory_names::sum},
      &MomentBytes<N>::framework,
      &MemoryParts::framework}}};

namespace stage_memory_parts {

constexpr std::size_t index_of(Moment moment) noexcept { return static_cast<std::size_t>(moment); }

/// Every part in whole bytes.
template <class Trace, class N = NumberOf<Trace>>
RankMoments<N> whole_moments(const Trace& trace, RankMoments<N> moments) {
  for (MomentBytes<N>& moment : moments) {
    if (!moment.exists) continue;
    for (const MomentPart<N>& part : moment_parts<N>) moment.*part.bytes = trace.whole(moment.*part.bytes);
  }
  return moments;
}

/// The moment at which most is held, and all that is held then. `here`: of the rank.
template <class Trace, class N = NumberOf<Trace>>
void name_moments(const Trace& here, StageMemoryOf<N>& memory, StageEstimate& out) {
  double most = -1;
  for (std::size_t i = 0; i < moment_count; ++i) {
    MomentBytes<N>& moment = memory.moments[i];
    out.has_moment[i] = moment.exists;
    if (!moment.exists) continue;
    const std::string_view when = name(static_cast<Moment>(i));
    N total = 0.0;
    for (const MomentPart<N>& part : moment_parts<N>) {
      N& bytes = moment.*part.bytes;
      const StepName& n = part.name;
      bytes = here.in(n.field).same_or_sum({n.symbol, when, n.meaning, n.unit, n.source}, bytes, ", ", when);
      out.moments[i].*part.whole = static_cast<std::int64_t>(value_of(bytes));
      total += bytes;
    }
    total =
        here.in("memory.total").step({"total", when, "all that is held", "B", memory_names::sum}, total, ", ", when);
    if (value_of(total) <= most) continue;
    most = value_of(total);
    memory.total = total;
    memory.framework = moment.framework;
    out.peak_moment = static_cast<Moment>(i);
  }
}

/// Losses that keep logits in fp32 leave holes of their size.
inline bool fragments_logits(const Run& run, bool has_head) noexcept {
  const LossKind loss = run.training.loss;
  const bool unfused = loss == LossKind::hf || loss == LossKind::hf_shift || loss == LossKind::hf_external ||
                       loss == LossKind::hf_native;
  return run.training.stack.memory.logits_fragmentation && unfused && has_head;
}

template <class Trace, class N = NumberOf<Trace>>
void fill_reserved(const Trace& here, const Run& run, N logits, bool has_head, StageMemoryOf<N>& memory,
                   StageEstimate& out) {
  using namespace memory_names;
  const N allocated = here.step(memory_names::allocated, memory.total - memory.framework);
  N all = here.whole(allocated), low = all, high = all;
  if (facts_of(run.training.framework).measures_overheads) {
    const bool fragments = fragments_logits(run, has_head);
    const N factor = here.stack(reserve_factor, run.training.stack.memory.reserved_factor);
    all = here.whole(factor * allocated + (fragments && out.peak_moment == Moment::loss ? 4.0 * logits : N(0.0)));
    const N most = here.whole(here.input(reserve_high, 1.09) * allocated + (fragments ? 8.0 * logits : N(0.0)));
    low = value_of(allocated) < value_of(all) ? allocated : all;
    high = larger(all, most);
    const MomentBytes<N>& start = memory.moments[index_of(Moment::initialisation)];
    if (start.exists) {
      N total = 0.0;
      for (const MomentPart<N>& part : moment_parts<N>) total += start.*part.bytes;
      all = larger(all, total - start.framework);
      high = larger(high, all);
    }
  }
  memory.reserved = here.step(reserved, all);
  memory.reserved_low = here.step(reserved_low, low);
  memory.reserved_high = here.step(reserved_high, high);
  out.reserved_bytes = static_cast<std::int64_t>(value_of(all));
  out.reserved_low_bytes = static_cast<std::int64_t>(value_of(low));
  out.reserved_high_bytes = static_cast<std::int64_t>(value_of(high));
}

}  // namespace stage_memory_parts

/// The moments of a rank in whole bytes, without names; fills what is no moment's.
template <class Trace, class N = NumberOf<Trace>>
StageMemoryOf<N> rank_moments_of(const Trace& trace, const Run& run, const Symbols<N>& v,
                                 const EstimateWorkspaceOf<N>& w, std::size_t rank,
                                 const MemoryOverheadsOf<N>& overheads, StageEstimate& out) {
  const Trace here = trace.at_stage(rank);
  const StageOf<N>& stage = w.stages[rank];
  const int per_rank = schedule::chunks_per_rank(w.spec.shape);
  out = StageEstimate{};
  out.stage = static_cast<int>(rank);
  out.layers = stage.layers;
  out.parameters = static_cast<std::int64_t>(NoTrace::whole(value_of(stage.weights.held())));
  out.in_flight_chunks = static_cast<std::int64_t>(NoTrace::whole(w.simulated.peak_inflight[rank]));
  out.in_flight_microbatches = w.spec.shape.kind == ScheduleKind::dualpipe
                                   ? out.in_flight_chunks
                                   : (out.in_flight_chunks + per_rank - 1) / per_rank;
  const RankMemoryOf<N> memory = rank_memory(trace, run, v, w, rank, overheads);
  StageMemoryOf<N> whole;
  whole.host =
      here.same_or_sum(memory_names::host, here.whole(memory.host_bytes) + here.whole(memory.offloaded_activations));
  whole.nvme = here.same_or_sum(memory_names::nvme, here.whole(memory.nvme_bytes));
  out.host_bytes = static_cast<std::int64_t>(value_of(whole.host));
  out.nvme_bytes = static_cast<std::int64_t>(value_of(whole.nvme));
  whole.moments = stage_memory_parts::whole_moments(here, rank_moments(memory.facts, memory.bytes));
  return whole;
}

/// estimate_stage_memory of workspace.hpp.
template <class Trace, class N = NumberOf<Trace>>
StageMemoryOf<N> stage_memory(const Trace& trace, const Run& run, const Symbols<N>& v, const EstimateWorkspaceOf<N>& w,
                              std::size_t rank, const MemoryOverheadsOf<N>& overheads, StageEstimate& out) {
  StageMemoryOf<N> memory = rank_moments_of(trace, run, v, w, rank, overheads, out);
  stage_memory_parts::name_moments(trace.at_stage(rank), memory, out);
  stage_memory_parts::fill_reserved(trace.at_stage(rank), run, w.ends.logits, w.stages[rank].has_head, memory, out);
  return memory;
}

/// One process drives all GPUs (torch.nn.DataParallel): GPU 0 gathers every replica's logits; the others hold a
/// replica, which lives for one forward and backward, and no optimizer. `zero`, `other`: the estimates of both.
template <class Trace, class N = NumberOf<Trace>>
std::array<StageMemoryOf<N>, 2> replica_memory(const Trace& trace, const Run& run, const Symbols<N>& v,
                                               const EstimateWorkspaceOf<N>& w, const MemoryOverheadsOf<N>& overheads,
                                               StageEstimate& zero, StageEstimate& other) {
  using namespace stage_memory_parts;
  std::array<StageMemoryOf<N>, 2> memory;
  memory[0] = rank_moments_of(trace, run, v, w, 0, overheads, zero);
  memory[1] = memory[0];
  other = zero;
  other.stage = 1;
  const std::array<Trace, 2> here = {trace.at_stage(0), trace.at_stage(1)};
  MomentBytes<N>& loss = memory[0].moments[index_of(Moment::loss)];
  if (loss.exists) {
    const double width = bytes_of(activation_dtype(run.training.precision));
    const N logits = here[0].step(memory_names::replica_logits,
                                  N(width) * w.ends.logits * here[0].run(memory_names::gpus, run.num_gpus));
    loss.transient += here[0].whole(logits);
  }
  for (std::size_t i = 0; i < moment_count; ++i) {
    MomentBytes<N>& parts = memory[1].moments[i];
    if (!parts.exists) continue;
    parts.transient += parts.parameters;
    parts.parameters = parts.optimizer = N(0.0);
    if (static_cast<Moment>(i) != Moment::optimizer_step) continue;
    const N framework = parts.framework;
    parts = MomentBytes<N>{};
    parts.exists = true;
    parts.framework = framework;
  }
  memory[1].host = here[1].same_or_sum(memory_names::host, memory[0].host);
  memory[1].nvme = here[1].same_or_sum(memory_names::nvme, memory[0].nvme);
  const std::array<StageEstimate*, 2> out = {&zero, &other};
  for (std::size_t i = 0; i < 2; ++i) {
    name_moments(here[i], memory[i], *out[i]);
    fill_reserved(here[i], run, w.ends.logits, w.stages[0].has_head, memory[i], *out[i]);
  }
  return memory;
}

/// What is left of a card.
template <class N>
N headroom_of(N capacity, N reserved, N framework) {
  return capacity - reserved - framework;
}

/// A node's share: the mean rank's bytes times the GPUs of a node.
template <class N>
N node_share(N sum, N ranks, N gpus) {
  return sum / ranks * gpus;
}

}  // namespace shardplan
