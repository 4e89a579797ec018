// Every collective of a step: who, how often, how much, how long, and what of it the step waits for.
#include "shardplan/plan/communication_formulas.hpp"

namespace shardplan {

double boundary_sends(const schedule::Shape& shape, int rank) noexcept {
  if (shape.p <= 1) return 0;
  const int last = shape.virtual_stages() - 1;
  const schedule::Placement place = schedule::placement(shape.kind);
  double sends = 0;
  for (int c = 0; c < schedule::chunks_per_rank(shape); ++c) {
    const int stage = schedule::stage_of(shape, rank, c);
    // The turn of a vee stays on its rank.
    const bool turn_after = place == schedule::Placement::vee && stage == shape.p - 1;
    const bool turn_before = place == schedule::Placement::vee && stage == shape.p;
    const double share = place == schedule::Placement::bidirectional ? 0.5 : 1.0;
    if (stage < last && !turn_after) sends += share;
    if (stage > 0 && !turn_before) sends += share;
  }
  return sends;
}

GroupKind group_of(CollectiveName name) noexcept {
  switch (name) {
    case CollectiveName::tp_all_reduce:
    case CollectiveName::tp_all_gather:
    case CollectiveName::tp_reduce_scatter:
    case CollectiveName::tp_regather: return GroupKind::tensor;
    case CollectiveName::cp_send:
    case CollectiveName::cp_all_gather:
    case CollectiveName::cp_reduce_scatter:
    case CollectiveName::cp_all_to_all: return GroupKind::context;
    case CollectiveName::ep_all_to_all: return GroupKind::expert;
    default: return GroupKind::expert_tensor;
  }
}

Collective op_of(CollectiveName name) noexcept {
  switch (name) {
    case CollectiveName::tp_all_reduce: return Collective::all_reduce;
    case CollectiveName::tp_all_gather:
    case CollectiveName::tp_regather:
    case CollectiveName::cp_all_gather:
    case CollectiveName::etp_all_gather: return Collective::all_gather;
    case CollectiveName::tp_reduce_scatter:
    case CollectiveName::cp_reduce_scatter:
    case CollectiveName::etp_reduce_scatter: return Collective::reduce_scatter;
    case CollectiveName::cp_send: return Collective::send;
    default: return Collective::all_to_all;
  }
}

std::string_view volume_source(GroupKind group) noexcept {
  switch (group) {
    case GroupKind::tensor: return "arXiv:1909.08053 section 3; arXiv:2205.05198 section 4.2.2; ring volumes";
    case GroupKind::pipeline: return "arXiv:2104.04473 section 3.2; DualPipe: deepseek-ai/DualPipe";
    case GroupKind::context: return "arXiv:2310.01889 (ring), arXiv:2309.14509 (a2a)";
    case GroupKind::expert:
    case GroupKind::expert_tensor: return "arXiv:2006.16668 section 2.2; deepseek-ai/DeepEP";
    default: return "arXiv:1910.02054 section 7; PyTorch FSDP and DDP; ring volumes";
  }
}

/// When one rank may start to reduce a chunk's gradients. Megatron-LM launches a chunk's reduction on every rank in the
/// same slot (align_grad_reduce, megatron/training/arguments.py): rank r waits r backward slots of the next chunk.
double gradient_reduce_start(const Run& run, const schedule::Shape& shape, const schedule::PipelineResult& simulated,
                             std::size_t rank, int chunk) noexcept {
  const std::size_t at =
      rank * static_cast<std::size_t>(schedule::chunks_per_rank(shape)) + static_cast<std::size_t>(chunk);
  const double ready = simulated.grad_ready[at];
  if (!aligns_reduction(run) || chunk == 0) return ready;
  const double slots = std::max(1, shape.group);
  const double next = simulated.grad_ready[at - 1];
  return ready + std::min(static_cast<double>(rank), slots) / slots * (next - ready);
}

void estimate_communication(const Run& run, EstimateWorkspace& w, Estimate& out) noexcept {
  fold_communication(NoTrace{}, run, w, out);
}

void cost_calls(const Run& run, const EstimateWorkspace& w, std::size_t rank, DataCalls& calls) noexcept {
  cost_calls(NoTrace{}, run, w, rank, calls);
}

}  // namespace shardplan
