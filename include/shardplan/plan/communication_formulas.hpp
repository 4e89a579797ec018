// Every collective of a step on one rank: layers', sends between stages, data-parallel ones; and the rows of the stage
// that sends most. Formulas over numbers or text (physics/trace.hpp).
#pragma once

#include <algorithm>

#include "shardplan/plan/call_cost_formulas.hpp"
#include "shardplan/plan/data_volumes.hpp"

namespace shardplan {

/// boundary_bytes of workspace.hpp.
template <class Trace, class N = NumberOf<Trace>>
N boundary_message(const Trace& trace, const Run& run) {
  const Symbols<N> v = trace.symbols(symbols_for(run, run.model.kinds.front()));
  return boundary_volume<N>(bytes_of(activation_dtype(run.training.precision)), v.s * v.b / v.c, v.h, v.t_sp);
}

/// Seconds of one message to the next stage.
template <class Trace, class N = NumberOf<Trace>>
N send_time(const Trace& trace, const Run& run, const Topology& topology) {
  const Trace here = trace.in("communication.pp_send", "pp_send");
  N bytes = here.step(step_names::message_bytes, boundary_message(trace, run));
  // A tensor rank sends its share, which is gathered on arrival.
  const bool scatters = facts_of(run.training.framework).pipeline.scatters_sends && !run.parallel.sequence_parallel;
  if (scatters) bytes = bytes / trace.degree(step_names::tensor, run.parallel.tensor);
  return here.step(step_names::send_call, collective_time(here.in("call"), run.cluster, Collective::send,
                                                          topology.group(GroupKind::pipeline), bytes));
}

/// Time and exposed time of one kind of collective of a stage; returns the exposed time.
template <class Trace, class N = NumberOf<Trace>>
N name_call(const Trace& stage, std::string_view word, N time, N exposed) {
  const Trace here = stage.in("communication").in(word, word);
  const N all = here.step({"time", "time", "time in a step, hidden or not", "s", step_names::timing}, time);
  const N waits = here.figure({word, "exposed", "time that the step waits for", "s", step_names::timing}, exposed);
  if constexpr (Trace::records) {
    const bool hides = value_of(all) >= value_of(waits);  // else running beside compute slows both
    if (hides) {
      here.step({"hidden", "hidden", "time beside compute or another rank's wait", "s", step_names::sum}, all - waits);
    }
  }
  return waits;
}

/// Collectives of a stage's layers and ends, a step's.
template <class Trace, class N = NumberOf<Trace>>
void expose_layer_calls(const Trace& stage, const EstimateWorkspaceOf<N>& w, StageOf<N>& out) {
  const N through = stage.run(step_names::microbatches, schedule::microbatches_per_chunk(w.spec.shape));
  for (std::size_t k = 0; k < collective_count; ++k) {
    const CollectiveSumOf<N>& sum = out.total.collectives[k];
    const CollectiveName which = static_cast<CollectiveName>(k);
    N exposed = through * sum.exposed_s;
    if (Trace::records && value_of(sum.calls) > 0)
      exposed = name_call(stage, name(which), through * sum.time_s, exposed);
    out.exposed_by_group_s[static_cast<std::size_t>(group_of(which))] += exposed;
  }
}

/// What the data-parallel calls of a stage add.
template <class Trace, class N = NumberOf<Trace>>
void expose_data_calls(const Trace& stage, const DataCallsOf<N>& calls, StageOf<N>& out) {
  out.data_s = out.data_exposed_s = N(0.0);
  for (const DataCallOf<N>& call : calls) {
    const N exposed = name_call(stage, call.name, call.seconds, call.exposed);
    out.data_s += call.seconds;
    out.data_exposed_s += exposed;
    out.exposed_by_group_s[static_cast<std::size_t>(call.group)] += exposed;
  }
  out.data_exposed_s = stage.step(step_names::data_exposed, out.data_exposed_s);
}

/// The rows of a layer's and of data-parallel collectives, and of sends.
template <class Trace, class N = NumberOf<Trace>>
class CallRows {
 public:
  CallRows(const Trace& stage, const Run& run, const EstimateWorkspaceOf<N>& w, std::size_t rank, Estimate& out)
      : trace_(stage), run_(run), w_(w), rank_(rank), out_(out) {}

  void add_layers() {
    const N through = trace_.run(step_names::microbatches, schedule::microbatches_per_chunk(w_.spec.shape));
    for (std::size_t i = 0; i < collective_count; ++i) {
      const CollectiveSumOf<N>& sum = w_.stages[rank_].total.collectives[i];
      if (value_of(sum.calls) <= 0) continue;
      const CollectiveName which = static_cast<CollectiveName>(i);
      CommunicationCall row;
      row.name = name(which);
      row.op = op_of(which);
      row.group = group_of(which);
      row.group_size = w_.topology.group(row.group).size;
      row.scope = w_.topology.group(row.group).scope;
      row.time_s = value_of(through * sum.time_s);
      row.exposed_s = value_of(through * sum.exposed_s);
      add(row, through * sum.calls, sum.message, through * sum.sent);
    }
  }

  void add_sends(double sends) {
    if (sends <= 0) return;
    const double m = static_cast<double>(run_.microbatches());
    CommunicationCall row;
    row.name = "pp_send";
    row.op = Collective::send;
    row.group = GroupKind::pipeline;
    row.group_size = run_.parallel.pipeline;
    row.scope = w_.topology.group(GroupKind::pipeline).scope;
    row.time_s = m * sends * w_.spec.p2p;
    row.exposed_s = w_.simulated.exposed_p2p[rank_];
    constexpr std::string_view path = "communication.pp_send";
    const N all = N(sends) * trace_.run(step_names::microbatches, m);
    const N calls = round(trace_.in(path).known(step_names::send_count, all));
    const Trace whole = trace_.of_run();
    const N message = round(whole.in(path).known(step_names::message_bytes, boundary_message(whole, run_)));
    add(row, calls, message, calls * message);
  }

  void add_data(const DataCallsOf<N>& calls) {
    for (const DataCallOf<N>& call : calls) {
      CommunicationCall row;
      row.name = call.name;
      row.op = call.op;
      row.group = call.group;
      row.group_size = call.ranks.size;
      row.scope = call.ranks.scope;
      row.time_s = value_of(call.seconds);
      row.exposed_s = value_of(call.exposed);
      const N passes = trace_.degree(step_names::microbatches, call.passes);
      const N units = trace_.degree(step_names::units, call.units);
      const N share = sent_share_of<N>(call.op, trace_.ranks(call.group, call.ranks.size));
      add(row, passes * units, call.bytes / units, passes * share * call.bytes);
    }
  }

  /// Sums by group.
  void add_groups() {
    const Trace here = trace_.of_run().in("communication.sent_bytes_per_step");
    N total = 0.0;
    for (std::size_t i = 0; i < group_words.size(); ++i) {
      const StepName group = {group_words[i], group_words[i], "bytes that one GPU sends in its ", "B", step_names::sum};
      total += here.figure(group, groups_[i], group_words[i], " groups, a step");
    }
    here.figure({"total", "total", "bytes that one GPU sends in a step", "B", step_names::sum}, total);
  }

 private:
  static constexpr std::array<std::string_view, 5> group_words = {"tensor", "pipeline", "data", "context", "expert"};

  void add(CommunicationCall row, N calls, N message, N sent) {
    const Trace here = trace_.of_run().in("communication").in(row.name, row.name);
    const std::string_view source = volume_source(row.group);
    const N bytes =
        here.step({row.name, "sent_bytes_per_step", "bytes sent by one GPU in a step", "B", source}, round(sent));
    const N tensor = here.step({"message", "message", "the whole tensor over its group", "B", source}, round(message));
    row.calls_per_step = std::llround(value_of(calls));
    row.message_bytes = std::llround(value_of(tensor));
    row.sent_bytes_per_step = std::llround(value_of(bytes));
    switch (row.group) {
      case GroupKind::tensor: add_to(0, bytes, row, out_.sent.tensor); break;
      case GroupKind::pipeline: add_to(1, bytes, row, out_.sent.pipeline); break;
      case GroupKind::context: add_to(3, bytes, row, out_.sent.context); break;
      case GroupKind::expert:
      case GroupKind::expert_tensor: add_to(4, bytes, row, out_.sent.expert); break;
      default: add_to(2, bytes, row, out_.sent.data); break;
    }
    out_.communication.add(row);
  }

  void add_to(std::size_t group, N bytes, const CommunicationCall& row, std::int64_t& sum) {
    groups_[group] += bytes;
    sum += row.sent_bytes_per_step;
  }

  const Trace& trace_;
  const Run& run_;
  const EstimateWorkspaceOf<N>& w_;
  std::size_t rank_;
  Estimate& out_;
  std::array<N, 5> groups_{};
};

/// Bytes that one GPU of a stage sends in a step.
template <class N>
double stage_sent(const EstimateWorkspaceOf<N>& w, const StageOf<N>& stage, const DataCallsOf<N>& calls, double sends,
                  double m, double message) {
  double sent = m * sends * message;
  const double through = schedule::microbatches_per_chunk(w.spec.shape);  // dualpipe: half of them each way
  for (const CollectiveSumOf<N>& sum : stage.total.collectives) sent += through * value_of(sum.sent);
  for (const DataCallOf<N>& call : calls) {
    sent += call.passes * sent_share(call.op, call.ranks.size) * value_of(call.bytes);
  }
  return sent;
}

/// A stage's sends to its neighbours, for those who read formulas.
template <class Trace, class N = NumberOf<Trace>>
void name_sends(const Trace& stage, const Run& run, const EstimateWorkspaceOf<N>& w, std::size_t rank, N call) {
  if constexpr (Trace::records) {
    const double each = boundary_sends(w.spec.shape, static_cast<int>(rank));
    const N blocked = stage.simulated(step_names::sends_exposed, w.simulated.exposed_p2p[rank]);
    if (each <= 0) return;
    const N m = stage.run(step_names::microbatches, static_cast<double>(run.microbatches()));
    const N messages = stage.in("communication.pp_send", "pp_send").step(step_names::send_count, N(each) * m);
    name_call(stage, "pp_send", messages * call, blocked);
  }
}

/// estimate_communication of workspace.hpp.
template <class Trace, class N = NumberOf<Trace>>
void fold_communication(const Trace& trace, const Run& run, EstimateWorkspaceOf<N>& w, Estimate& out) {
  const double m = static_cast<double>(run.microbatches());
  const double message = value_of(boundary_message(trace, run));
  const N send = Trace::records && run.parallel.pipeline > 1 ? send_time(trace, run, w.topology) : N(0.0);
  double most = -1;
  std::size_t busiest = 0;
  DataCallsOf<N> busiest_calls;
  for (std::size_t i = 0; i < w.stages.size(); ++i) {
    const Trace here = trace.at_stage(i);
    StageOf<N>& stage = w.stages[i];
    stage.exposed_by_group_s.fill(N(0.0));
    DataCallsOf<N> calls;
    list_calls(here, run, w, stage, calls);
    expose_layer_calls(here, w, stage);
    cost_calls(here, run, w, i, calls);
    expose_data_calls(here, calls, stage);
    name_sends(here, run, w, i, send);
    const double sent = stage_sent(w, stage, calls, boundary_sends(w.spec.shape, static_cast<int>(i)), m, message);
    if (sent > most) {
      most = sent;
      busiest = i;
      busiest_calls = calls;
    }
  }
  out.communication_stage = static_cast<int>(busiest);
  out.communication.count = 0;
  out.sent = SentBytes{};
  const Trace here = trace.at_stage(busiest);
  CallRows<Trace> rows(here, run, w, busiest, out);
  rows.add_layers();
  rows.add_sends(boundary_sends(w.spec.shape, static_cast<int>(busiest)));
  rows.add_data(busiest_calls);
  rows.add_groups();
}

}  // namespace shardplan
