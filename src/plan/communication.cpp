// Every collective of a step: who, how often, how much, how long, and what of it the step waits for.
#include <algorithm>
#include <cmath>

#include "shardplan/physics/layer_inputs.hpp"
#include "shardplan/plan/step_rules.hpp"

namespace shardplan {

using namespace step_constants;

namespace {

std::int64_t whole(double value) noexcept { return std::llround(value); }

double seconds_of(const Run& run, const DataCall& call) noexcept {
  const double per_call = call.bytes / call.units;
  const double sent = sent_share(call.op, call.ranks.size) * per_call;
  return call.passes * call.units * collective_seconds(run.cluster, call.op, call.ranks, sent);
}

/// What a reduction that is made once a step sticks out behind the rank's last backward. Each chunk's part starts in
/// its last backward, bucket by bucket, and the parts follow one another.
double reduce_tail(const Run& run, const EstimateWorkspace& w, std::size_t rank, const DataCall& call,
                   double seconds) noexcept {
  const int chunks = schedule::chunks_per_rank(w.spec.shape);
  const double end = w.simulated.last_end[rank];
  const std::size_t first = rank * static_cast<std::size_t>(chunks);
  double elements = 0;
  for (int c = 0; c < chunks; ++c) elements += w.chunks[first + static_cast<std::size_t>(c)].elements;
  double done = 0;
  // The chunk that is done first is the last one of the model.
  for (int c = chunks - 1; c >= 0; --c) {
    const Chunk& chunk = w.chunks[first + static_cast<std::size_t>(c)];
    const double share = elements > 0 ? chunk.elements / elements : 1.0 / chunks;
    const double during = hidden_behind_pass * (chunk.forward_s + chunk.backward_s);
    done = std::max(done, gradient_reduce_start(run, w, rank, c) - during) + share * seconds;
  }
  return std::max(seconds * (1 - call.hidden), done - end);
}

/// What the step waits for. The flush and the warm-up of the pipeline hide more: cost_calls.
double exposed_seconds(const Run& run, const EstimateWorkspace& w, std::size_t rank, const DataCall& call,
                       double seconds) noexcept {
  if (!call.overlaps) return seconds;
  const Stage& stage = w.stages[rank];
  switch (call.hides) {
    case Hides::behind_last_backward: return reduce_tail(run, w, rank, call, seconds);
    case Hides::behind_first_forward:
      return std::max(seconds * (1 - call.hidden), seconds - hidden_behind_pass * (stage.forward_s + stage.backward_s));
    default: return seconds;  // cost_calls: such calls share a pass
  }
  return seconds;
}

}  // namespace

bool in_each_pass(const DataCall& call) noexcept {
  return call.hides == Hides::behind_each_forward || call.hides == Hides::behind_each_backward;
}

namespace {

/// Per-layer traffic of all microbatches' forward or backward passes: it shares the links, so it hides as one. What
/// runs beside compute takes multiprocessors and HBM from it.
void hide_in_passes(const Run& run, double compute_s, Hides pass, DataCalls& calls) noexcept {
  double total = 0, hidden_part = 0;
  for (const DataCall& call : calls) {
    if (call.hides != pass || !call.overlaps) continue;
    total += call.seconds;
    hidden_part += call.hidden * call.seconds;
  }
  if (total <= 0) return;
  const double beside = std::min(total, compute_s);
  const double waits = total - beside + (1 - hidden_part / total + run.training.stack.timing.fsdp_contention) * beside;
  for (DataCall& call : calls) {
    if (call.hides == pass && call.overlaps) call.exposed = std::min(1.0, waits / total) * call.seconds;
  }
}

}  // namespace

void cost_calls(const Run& run, const EstimateWorkspace& w, std::size_t rank, DataCalls& calls) noexcept {
  double reduce = 0, gather = 0;
  for (DataCall& call : calls) {
    call.seconds = seconds_of(run, call);
    call.exposed = exposed_seconds(run, w, rank, call, call.seconds);
    if (in_each_pass(call)) continue;
    (call.hides == Hides::behind_first_forward ? gather : reduce) += call.exposed;
  }
  const double m = static_cast<double>(run.microbatches());
  hide_in_passes(run, m * w.stages[rank].forward_s, Hides::behind_each_forward, calls);
  hide_in_passes(run, m * w.stages[rank].backward_s, Hides::behind_each_backward, calls);
  const auto visible = [](double exposed, double gap) {
    return exposed > 0 ? std::max(0.0, exposed - gap) / exposed : 1.0;
  };
  const double of_reduce = visible(reduce, w.simulated.makespan - w.simulated.last_end[rank]);
  const double of_gather = visible(gather, w.simulated.first_start[rank]);
  for (DataCall& call : calls) {
    if (call.hides == Hides::behind_last_backward) call.exposed *= of_reduce;
    if (call.hides == Hides::behind_first_forward) call.exposed *= of_gather;
  }
}

double boundary_sends(const EstimateWorkspace& w, int rank) noexcept {
  const schedule::Shape& shape = w.spec.shape;
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

namespace {

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

double stage_sent(const EstimateWorkspace& w, const Stage& stage, const DataCalls& calls, double sends, double m,
                  double message) noexcept {
  double sent = m * sends * message;
  const double through = schedule::microbatches_per_chunk(w.spec.shape);
  for (const CollectiveSum& sum : stage.total.collectives) sent += through * sum.sent;
  for (const DataCall& call : calls) sent += call.passes * sent_share(call.op, call.ranks.size) * call.bytes;
  return sent;
}

void write_rows(const Run& run, const EstimateWorkspace& w, std::size_t rank, const DataCalls& calls, double sends,
                Estimate& out) noexcept {
  const Stage& stage = w.stages[rank];
  const double m = static_cast<double>(run.microbatches());
  const double through = schedule::microbatches_per_chunk(w.spec.shape);
  out.communication.count = 0;
  out.sent = SentBytes{};
  const auto add = [&out](CommunicationCall& row) {
    switch (row.group) {
      case GroupKind::tensor: out.sent.tensor += row.sent_bytes_per_step; break;
      case GroupKind::pipeline: out.sent.pipeline += row.sent_bytes_per_step; break;
      case GroupKind::context: out.sent.context += row.sent_bytes_per_step; break;
      case GroupKind::expert:
      case GroupKind::expert_tensor: out.sent.expert += row.sent_bytes_per_step; break;
      default: out.sent.data += row.sent_bytes_per_step; break;
    }
    out.communication.add(row);
  };
  for (std::size_t i = 0; i < collective_count; ++i) {
    const CollectiveSum& sum = stage.total.collectives[i];
    if (sum.calls <= 0) continue;
    const CollectiveName which = static_cast<CollectiveName>(i);
    CommunicationCall row;
    row.name = name(which);
    row.op = op_of(which);
    row.group = group_of(which);
    row.group_size = w.topology.group(row.group).size;
    row.scope = w.topology.group(row.group).scope;
    row.calls_per_step = whole(through * sum.calls);
    row.message_bytes = whole(sum.message);
    row.sent_bytes_per_step = whole(through * sum.sent);
    row.time_s = through * sum.time_s;
    row.exposed_s = through * sum.exposed_s;
    add(row);
  }
  if (sends > 0) {
    CommunicationCall row;
    row.name = "pp_send";
    row.op = Collective::send;
    row.group = GroupKind::pipeline;
    row.group_size = run.parallel.pipeline;
    row.scope = w.topology.group(GroupKind::pipeline).scope;
    row.calls_per_step = whole(m * sends);
    row.message_bytes = whole(boundary_bytes(run));
    row.sent_bytes_per_step = row.calls_per_step * row.message_bytes;
    row.time_s = m * sends * w.spec.p2p;
    row.exposed_s = w.simulated.exposed_p2p[rank];
    add(row);
  }
  for (const DataCall& call : calls) {
    CommunicationCall row;
    row.name = call.name;
    row.op = call.op;
    row.group = call.group;
    row.group_size = call.ranks.size;
    row.scope = call.ranks.scope;
    row.calls_per_step = whole(call.passes * call.units);
    row.message_bytes = whole(call.bytes / call.units);
    row.sent_bytes_per_step = whole(call.passes * sent_share(call.op, call.ranks.size) * call.bytes);
    row.time_s = call.seconds;
    row.exposed_s = call.exposed;
    add(row);
  }
}

}  // namespace

/// When one rank may start to reduce a chunk's gradients (schedules.md section 5). Megatron-LM launches a chunk's
/// reduction on every rank in the same slot (align_grad_reduce): rank r waits r backward slots of the next chunk.
double gradient_reduce_start(const Run& run, const EstimateWorkspace& w, std::size_t rank, int chunk) noexcept {
  const schedule::Shape& shape = w.spec.shape;
  const std::size_t at =
      rank * static_cast<std::size_t>(schedule::chunks_per_rank(shape)) + static_cast<std::size_t>(chunk);
  const double ready = w.simulated.grad_ready[at];
  if (!aligns_reduction(run) || chunk == 0) return ready;
  const double slots = std::max(1, shape.group);
  const double next = w.simulated.grad_ready[at - 1];
  return ready + std::min(static_cast<double>(rank), slots) / slots * (next - ready);
}

void estimate_communication(const Run& run, EstimateWorkspace& w, Estimate& out) noexcept {
  const double m = static_cast<double>(run.microbatches());
  const double through = schedule::microbatches_per_chunk(w.spec.shape);  // dualpipe: half of them each way
  const double message = boundary_bytes(run);
  double most = -1;
  int busiest = 0;
  DataCalls busiest_calls;
  for (std::size_t i = 0; i < w.stages.size(); ++i) {
    Stage& stage = w.stages[i];
    DataCalls calls;
    stage_calls(run, w, stage, calls);
    stage.data_s = stage.data_exposed_s = 0;
    stage.exposed_by_group_s.fill(0);
    for (std::size_t k = 0; k < collective_count; ++k) {
      const std::size_t group = static_cast<std::size_t>(group_of(static_cast<CollectiveName>(k)));
      stage.exposed_by_group_s[group] += through * stage.total.collectives[k].exposed_s;
    }
    cost_calls(run, w, i, calls);
    for (const DataCall& call : calls) {
      stage.data_s += call.seconds;
      stage.data_exposed_s += call.exposed;
      stage.exposed_by_group_s[static_cast<std::size_t>(call.group)] += call.exposed;
    }
    const double sent = stage_sent(w, stage, calls, boundary_sends(w, static_cast<int>(i)), m, message);
    if (sent > most) {
      most = sent;
      busiest = static_cast<int>(i);
      busiest_calls = calls;
    }
  }
  out.communication_stage = busiest;
  write_rows(run, w, static_cast<std::size_t>(busiest), busiest_calls, boundary_sends(w, busiest), out);
}

}  // namespace shardplan
