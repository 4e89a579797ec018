// Terms of one microbatch's way through a stage, of the simulated pipeline, and of the collectives of each stage.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rate_terms.hpp"
#include "shardplan/physics/frameworks/facts.hpp"
#include "shardplan/plan/data_calls.hpp"
#include "shardplan/plan/step_rules.hpp"
#include "term_builder.hpp"

namespace shardplan::explain {

using namespace step_constants;

Sym TermBuilder::microbatches() {
  return terms.input("m", "microbatches of a step", schedule::microbatches_per_chunk(w.spec.shape), sources::run_file);
}

Sym TermBuilder::host_work() {
  const double seconds = run.training.stack.timing.host_per_microbatch_s;
  if (seconds <= 0) return Sym(0.0);
  return Rates(*this).stack("host", "host work of a microbatch", seconds, "host_per_microbatch_s", "s");
}

void TermBuilder::add_pass_times() {
  leaf("makespan", "time.makespan", "the pipeline of this step, simulated: first op to last", "s", w.simulated.makespan,
       sources::simulated);
  const std::size_t per_rank = w.chunks.size() / w.stages.size();
  for (std::size_t rank = 0; rank < stages.size(); ++rank) {
    const int stage = static_cast<int>(rank);
    StageTerms& out = stages[rank];
    for (std::size_t c = 0; c < per_rank; ++c) {
      ChunkTerms& chunk = out.chunks[c];
      const Chunk& exact = w.chunks[rank * per_rank + c];
      const std::string which = per_rank > 1 ? fmt::format(".chunk{}", c) : std::string();
      const std::string label =
          per_rank > 1 ? fmt::format("stage {}, chunk {}", stage, c) : fmt::format("stage {}", stage);
      Sym forward, backward;
      for (const Group& group : chunk.groups) {
        const Sym count(static_cast<double>(group.count));
        forward += count * (group.unit->forward + group.unit->exposed_forward);
        backward += count * (group.unit->backward + group.unit->recompute + group.unit->exposed_backward);
      }
      const Sym host = host_work() / 2.0;
      chunk.forward = derived("forward", at_stage("time.pass.forward" + which, stage),
                              label + ": forward of one microbatch with what it waits for", "s", forward + host,
                              exact.forward_s, sources::timing);
      chunk.backward = derived("backward", at_stage("time.pass.backward" + which, stage),
                               label + ": backward and recomputation of one microbatch with what it waits for", "s",
                               backward + host, exact.backward_s, sources::timing);
      out.forward += chunk.forward;
      out.backward += chunk.backward;
    }
    if (per_rank > 1) {
      out.forward = derived("forward", at_stage("time.pass.forward", stage),
                            fmt::format("stage {}: forward of one microbatch, all chunks", stage), "s", out.forward,
                            w.stages[rank].forward_s, sources::sum);
      out.backward = derived("backward", at_stage("time.pass.backward", stage),
                             fmt::format("stage {}: backward of one microbatch, all chunks", stage), "s", out.backward,
                             w.stages[rank].backward_s, sources::sum);
    }
    leaf("ends", at_stage("time.simulated.ends", stage), fmt::format("stage {}: end of its last op", stage), "s",
         w.simulated.last_end[rank], sources::simulated);
    leaf("starts", at_stage("time.simulated.starts", stage), fmt::format("stage {}: start of its first op", stage), "s",
         w.simulated.first_start[rank], sources::simulated);
  }
}

void TermBuilder::add_sends() {
  const double count = static_cast<double>(run.microbatches());
  const std::string path = "communication.pp_send";
  Sym call;
  if (run.parallel.pipeline > 1) {
    const Symbols<Sym> v = symbols(symbols_for(run, run.model.kinds.front()), sources::config);
    constexpr std::string_view source = "arXiv:2104.04473 section 3.2: b s h; DualPipe: deepseek-ai/DualPipe";
    Sym bytes =
        derived("message", path + ".message_bytes", "pp_send: one microbatch's hidden state, a rank's share", "B",
                boundary_volume<Sym>(bytes_of(activation_dtype(run.training.precision)), v.s * v.b / v.c, v.h, v.t_sp),
                boundary_bytes(run), source);
    if (facts_of(run.training.framework).pipeline.scatters_sends && !run.parallel.sequence_parallel) {
      // Each tensor rank sends 1/t, gathered inside the node.
      bytes = bytes / v.t;
    }
    const Sym seconds =
        Rates(*this).collective(path, "pp_send", Collective::send, w.topology.group(GroupKind::pipeline), bytes);
    call = derived("call", path + ".call", "pp_send: one message", "s", seconds, w.spec.p2p, sources::timing);
  }
  for (std::size_t rank = 0; rank < stages.size(); ++rank) {
    const int stage = static_cast<int>(rank);
    const double each = boundary_sends(w.spec.shape, stage);
    const double blocked = w.simulated.exposed_p2p[rank];
    const std::string address = at_stage("time.communication_exposed.sends", stage);
    if (each <= 0) {
      leaf("sends", address, fmt::format("stage {}: time blocked sending to neighbours", stage), "s", blocked,
           sources::simulated);
      continue;
    }
    const Sym messages = derived("calls", at_stage(path + ".calls", stage),
                                 fmt::format("stage {}: messages to its neighbours in a step", stage), "",
                                 Sym(each) * terms.input("m", "microbatches of a step", count, sources::run_file),
                                 each * count, "boundaries of the stage x microbatches");
    const Sym all = messages * call;
    const bool waits_for_all = std::fabs(all.value() - blocked) <= 1e-9 * blocked;
    add("sends", address, fmt::format("stage {}: time blocked sending to neighbours", stage), "s",
        waits_for_all ? Sym(blocked, all.node()) : Sym(blocked), sources::simulated);
    add_collective("pp_send", GroupKind::pipeline, stage, all, kept("sends", address), each * count * w.spec.p2p,
                   blocked);
  }
}

void TermBuilder::add_layer_collectives() {
  const double through = schedule::microbatches_per_chunk(w.spec.shape);
  for (std::size_t rank = 0; rank < stages.size(); ++rank) {
    const int stage = static_cast<int>(rank);
    Sym waits;
    for (std::size_t k = 0; k < collective_count; ++k) {
      const CollectiveSum& exact = w.stages[rank].total.collectives[k];
      if (exact.calls <= 0) continue;
      const CollectiveName which = static_cast<CollectiveName>(k);
      Sym time, exposed;
      for (const ChunkTerms& chunk : stages[rank].chunks) {
        for (const Group& group : chunk.groups) {
          const Sym count(static_cast<double>(group.count));
          time += count * group.unit->collectives[k].time;
          exposed += count * group.unit->collectives[k].exposed;
        }
      }
      waits += add_collective(name(which), group_of(which), stage, microbatches() * time, microbatches() * exposed,
                              through * exact.time_s, through * exact.exposed_s);
    }
    const Stage& numbers = w.stages[rank];
    derived("in_layers", at_stage("time.communication_exposed.layers", stage),
            fmt::format("stage {}: collectives of layers that passes wait for", stage), "s", waits,
            through * (numbers.total.forward_exposed_s + numbers.total.backward_exposed_s), sources::timing);
  }
}

Sym TermBuilder::add_collective(std::string_view word, GroupKind group, int stage, Sym time, Sym exposed, double time_s,
                                double exposed_s) {
  const std::string path = fmt::format("communication.{}", word);
  const Sym t = derived("time", at_stage(path + ".time", stage),
                        fmt::format("stage {}: {}, time in a step, hidden or not", stage, word), "s", time, time_s,
                        sources::timing);
  const Sym x = derived("exposed", at_stage(path + ".exposed", stage),
                        fmt::format("stage {}: {}, time that the step waits for", stage, word), "s", exposed, exposed_s,
                        sources::timing);
  if (time_s >= exposed_s) {  // else running beside compute slows both
    derived("hidden", at_stage(path + ".hidden", stage),
            fmt::format("stage {}: {}, time beside compute or another rank's wait", stage, word), "s", t - x,
            time_s - exposed_s, sources::sum);
  }
  const Sym named = kept(word, at_stage(path + ".exposed", stage));
  stages[static_cast<std::size_t>(stage)].exposed_by_group[static_cast<std::size_t>(group)] += named;
  return named;
}

namespace {

/// Times of one stage's data-parallel traffic.
class DataTimes {
 public:
  DataTimes(TermBuilder& builder, std::size_t rank)
      : b_(builder), rates_(builder), rank_(rank), stage_(static_cast<int>(rank)) {}

  Sym add() {
    DataCalls calls;
    stage_calls(b_.run, b_.w, b_.w.stages[rank_], calls);
    cost_calls(b_.run, b_.w, rank_, calls);
    Sym reduce, gather;
    for (const DataCall& call : calls) {
      Row row{&call, time_of(call), Sym()};
      row.exposed = exposed_of(row);
      if (!in_each_pass(call.hides)) (call.hides == Hides::behind_first_forward ? gather : reduce) += row.exposed;
      rows_.push_back(row);
    }
    hide_in_passes(Hides::behind_each_forward, "forward", b_.stages[rank_].forward);
    hide_in_passes(Hides::behind_each_backward, "backward", b_.stages[rank_].backward);
    const Sym ends = b_.of("ends", at("time.simulated.ends"));
    const Sym seen_reduce = visible("reduce", "reductions stick out behind its backward", reduce,
                                    b_.of("makespan", "time.makespan") - ends);
    const Sym seen_gather =
        visible("gather", "gathers stick out before its forward", gather, b_.of("starts", at("time.simulated.starts")));
    Sym all;
    for (Row& row : rows_) {
      const DataCall& call = *row.call;
      if (call.hides == Hides::behind_last_backward) row.exposed = row.exposed * seen_reduce;
      if (call.hides == Hides::behind_first_forward) row.exposed = row.exposed * seen_gather;
      all += b_.add_collective(call.name, call.group, stage_, row.time, row.exposed, call.seconds, call.exposed);
    }
    return b_.derived("data", at("time.communication_exposed.data"),
                      fmt::format("stage {}: data-parallel traffic that it would wait for", stage_), "s", all,
                      b_.w.stages[rank_].data_exposed_s, sources::sum);
  }

 private:
  struct Row {
    const DataCall* call = nullptr;
    Sym time, exposed;
  };

  std::string at(std::string_view address) const { return at_stage(address, stage_); }

  Sym hidden_share(const DataCall& call) {
    const bool each = in_each_pass(call.hides) || call.hidden != b_.run.training.stack.timing.grad_reduce_hidden;
    return rates_.stack(each ? "fsdp_hidden" : "reduce_hidden", "share of the traffic that overlap hides at most",
                        call.hidden, each ? "fsdp_hidden" : "grad_reduce_hidden");
  }

  Sym time_of(const DataCall& call) {
    const std::string path = fmt::format("communication.{}", call.name);
    const std::string label = fmt::format("stage {}: {}", stage_, call.name);
    const Sym bytes = b_.add_checked("bytes", at(path + ".bytes"), label + ", bytes of one pass over all of it", "B",
                                     b_.data_bytes(call.payload, rank_), call.bytes, sources::zero);
    const Sym units = call.units == 1 ? Sym(1.0)
                                      : b_.terms.input("units", "calls of a pass: layers, and what is outside them",
                                                       call.units, sources::run_file);
    const Sym sent = sent_share_of<Sym>(call.op, b_.ranks_of(call.group, call.ranks.size)) * bytes / units;
    const double per_call = sent_share(call.op, call.ranks.size) * (call.bytes / call.units);
    const Sym named = b_.derived("sent", at(path + ".call_bytes"), label + ", bytes that one GPU sends in a call", "B",
                                 sent, per_call, sources::ring);
    const double exact = collective_seconds(b_.run.cluster, call.op, call.ranks, per_call);
    const Sym seconds = rates_.collective(fmt::format("{}.call", path), label, call.op, call.ranks, named);
    const Sym one = b_.derived("call", at(path + ".call"), label + ", one call", "s", seconds, exact, sources::timing);
    const Sym passes =
        call.passes == 1 ? Sym(1.0) : b_.terms.input("m", "microbatches of a step", call.passes, sources::run_file);
    return passes * units * one;
  }

  /// What the step would wait for, the pipeline's flush and warm-up apart.
  Sym exposed_of(const Row& row) {
    const DataCall& call = *row.call;
    if (!call.overlaps) return row.time;
    if (call.hides == Hides::behind_last_backward) return tail(row);
    if (call.hides != Hides::behind_first_forward) return row.time;
    const StageTerms& stage = b_.stages[rank_];
    return max(row.time * (1.0 - hidden_share(call)), row.time - pass_share() * (stage.forward + stage.backward));
  }

  Sym pass_share() {
    return rates_.rule("pass_share", "of a microbatch's pass, what once-a-step traffic hides behind",
                       hidden_behind_pass);
  }

  /// What a reduction that is made once a step sticks out behind the rank's last backward.
  Sym tail(const Row& row) {
    const EstimateWorkspace& w = b_.w;
    const int chunks = schedule::chunks_per_rank(w.spec.shape);
    const std::size_t first = rank_ * static_cast<std::size_t>(chunks);
    double elements = 0;
    for (int c = 0; c < chunks; ++c) elements += w.chunks[first + static_cast<std::size_t>(c)].elements;
    Sym done;
    for (int c = chunks - 1; c >= 0; --c) {
      const std::size_t index = static_cast<std::size_t>(c);
      const double share = elements > 0 ? w.chunks[first + index].elements / elements : 1.0 / chunks;
      const ChunkTerms& chunk = b_.stages[rank_].chunks[index];
      const Sym from = start_of(c) - pass_share() * (chunk.forward + chunk.backward);
      const Sym portion = chunks == 1 ? Sym(1.0) : part_of(c, share);
      done = (done.is(0) && from.value() >= 0 ? from : max(done, from)) + portion * row.time;
    }
    return max(row.time * (1.0 - hidden_share(*row.call)), done - b_.of("ends", at("time.simulated.ends")));
  }

  Sym part_of(int chunk, double share) {
    const std::string address = at(fmt::format("communication.chunk_share.chunk{}", chunk));
    if (b_.terms.has(address)) return b_.of("part", address);
    return b_.leaf("part", address, fmt::format("stage {}, chunk {}: its share of the stage's weights", stage_, chunk),
                   "fraction", share, sources::operators_list);
  }

  /// When a chunk's gradients may be reduced.
  Sym start_of(int chunk) {
    const double value = gradient_reduce_start(b_.run, b_.w.spec.shape, b_.w.simulated, rank_, chunk);
    const std::string address = at(fmt::format("time.simulated.reduces_from.chunk{}", chunk));
    if (b_.terms.has(address)) return b_.of("ready", address);
    return b_.leaf(
        "ready", address,
        fmt::format("stage {}, chunk {}: its gradients are there and its reduction may start", stage_, chunk), "s",
        value, sources::simulated);
  }

  /// Traffic of all passes shares the links, so it hides as one; beside compute it slows both.
  void hide_in_passes(Hides pass, std::string_view word, Sym of_stage) {
    Sym total, hidden;
    for (const Row& row : rows_) {
      if (row.call->hides != pass || !row.call->overlaps) continue;
      total += row.time;
      hidden += hidden_share(*row.call) * row.time;
    }
    if (total.value() <= 0) return;
    const Sym m =
        b_.terms.input("m", "microbatches of a step", static_cast<double>(b_.run.microbatches()), sources::run_file);
    const std::string meaning = fmt::format("stage {}: traffic of all {} passes", stage_, word);
    const Sym all = b_.add("traffic", at(fmt::format("communication.in_{}", word)), meaning, "s", total, sources::sum);
    const Sym beside = min(all, m * of_stage);
    const Sym contention = rates_.stack("contention", "slow-down of compute and traffic beside each other",
                                        b_.run.training.stack.timing.fsdp_contention, "fsdp_contention");
    const Sym waits =
        b_.add("waits", at(fmt::format("communication.in_{}.exposed", word)), meaning + ", what they wait for", "s",
               all - beside + (1.0 - hidden / all + contention) * beside, sources::timing);
    for (Row& row : rows_) {
      if (row.call->hides == pass && row.call->overlaps) row.exposed = min(Sym(1.0), waits / all) * row.time;
    }
  }

  /// The share of what sticks out that the pipeline's flush or warm-up does not cover.
  Sym visible(std::string_view word, std::string_view what, Sym sticks_out, Sym gap) {
    if (sticks_out.value() <= 0 || gap.value() == 0) return Sym(1.0);
    const Sym all = b_.add(fmt::format("{}_tail", word), at(fmt::format("communication.{}_tail", word)),
                           fmt::format("stage {}: what {}", stage_, what), "s", sticks_out, sources::timing);
    const std::string address = at(fmt::format("communication.{}_seen", word));
    b_.add("seen", address, fmt::format("stage {}: share of it that other stages' work does not cover", stage_),
           "fraction", max(Sym(0.0), all - gap) / all, sources::simulated);
    return b_.kept(fmt::format("{}_seen", word), address);
  }

  TermBuilder& b_;
  Rates rates_;
  std::size_t rank_;
  int stage_;
  std::vector<Row> rows_;
};

}  // namespace

void TermBuilder::add_data_times() {
  for (std::size_t rank = 0; rank < stages.size(); ++rank) stages[rank].data_exposed = DataTimes(*this, rank).add();
  const int slowest = estimate.time.data_exposed_stage;
  double exposed = 0;
  for (const Stage& stage : w.stages) exposed = std::max(exposed, stage.data_exposed_s);
  derived("data", "time.communication_exposed.data",
          fmt::format("data-parallel traffic that all wait for: that of stage {}, which waits longest", slowest), "s",
          stages[static_cast<std::size_t>(slowest)].data_exposed, exposed, sources::timing);
}

}  // namespace shardplan::explain
