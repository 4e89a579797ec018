// Terms of time of layers and ends: every operator, every collective, what passes wait for, and their sums.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rate_terms.hpp"
#include "recorder.hpp"
#include "shardplan/physics/operator_time.hpp"
#include "shardplan/physics/timing_parts.hpp"
#include "shardplan/plan/step_rules.hpp"

namespace shardplan::explain {

using namespace step_constants;

namespace {

class UnitTimes {
 public:
  UnitTimes(TermBuilder& builder, UnitTerms& unit) : b_(builder), rates_(builder), run_(builder.run), unit_(unit) {}

  void add_operators(double causal_share, bool layer_recomputed) {
    const Recorder trace(b_.terms, run_, unit_.path, unit_.label);
    constexpr InputName mask = {
        "causal", "of the scores, what the causal mask leaves: mean keys a query sees over those it is scored against"};
    const Sym causal = causal_share == 0.5 ? Sym(0.5) : trace.run(mask, causal_share);
    const UnitTimeOf<Sym> time = unit_time(trace, run_, unit_.operators, causal, layer_recomputed);
    forward_ = time.forward_s;
    backward_ = time.backward_s;
    rerun_ = time.recompute_s;
    unit_.gemm = time.gemm_s;
    unit_.attention = time.attention_s;
  }

  /// What the head adds to its operators: the loss reads and writes the logits.
  void add_loss(Sym logits) {
    const Sym bytes = rates_.stack("loss_bytes", "HBM traffic per logit and direction",
                                   run_.training.stack.timing.loss_bytes_per_logit, "loss_bytes_per_logit", "B");
    const Sym loss = b_.add("loss", unit_.path + ".loss.time", unit_.label + ": the loss, one direction", "s",
                            rates_.memory(bytes * logits), sources::timing);
    forward_ += loss;
    backward_ += loss;
  }

  /// A layer's collectives, as its list has them.
  void add_collectives(const LayerKind& kind, bool layer_recomputed) {
    const LayerCollective<double>* number = unit_.numbers.collectives.begin();
    for (const LayerCollective<Sym>& call : unit_.operators.collectives) {
      const bool again = layer_recomputed || covered_by_modules(run_.training.recompute, call.covered);
      const double exact = layer_call_seconds(run_, b_.w.topology, *number++, static_cast<double>(kind.mlp.top_k));
      const Sym seconds = layer_call(call, kind, exact);
      const bool ring = call.name == CollectiveName::cp_send;
      const bool experts = call.name == CollectiveName::ep_all_to_all;
      const auto behind = [&](bool backward) {
        if (!hides_behind_compute(call.name)) return Sym();
        if (ring) return backward ? unit_.attention / 1.4 : unit_.attention / 3.5;
        if (experts) return alone(backward);
        return alone(false) / 2.0;
      };
      const double forward = call.forward_calls;
      const double backward = call.backward_calls + (again ? forward : 0.0);
      Rows& row = rows_[static_cast<std::size_t>(call.name)];
      row.forward += Sym(forward) * seconds;
      row.backward += Sym(backward) * seconds;
      if (forward > 0) row.waits_forward += waits(call.name, Sym(forward) * seconds, behind(false), false);
      if (backward > 0) row.waits_backward += waits(call.name, Sym(backward) * seconds, behind(true), true);
    }
  }

  /// A call of an end of the model.
  void add_end_call(CollectiveName which, Collective op, Sym message, double forward, double backward) {
    const RankGroup& group = b_.w.topology.group(GroupKind::tensor);
    if (group.size <= 1) return;
    const Sym sent = sent_share_of<Sym>(
                         op, b_.terms.input("t", "tensor parallel (parallel.tensor)", group.size, sources::run_file)) *
                     message;
    const Sym seconds = one_call(which, op, group, sent, -1);
    Rows& row = rows_[static_cast<std::size_t>(which)];
    row.forward += Sym(forward) * seconds;
    row.backward += Sym(backward) * seconds;
    row.waits_forward += Sym(forward) * seconds;
    row.waits_backward += Sym(backward) * seconds;
  }

  void add_collective_sums() {
    Sym forward, backward;
    for (std::size_t i = 0; i < collective_count; ++i) {
      const Rows& row = rows_[i];
      if ((row.forward + row.backward).value() <= 0) continue;
      const std::string_view word = name(static_cast<CollectiveName>(i));
      const CollectiveSum& exact = unit_.unit->collectives[i];
      const auto add = [&](std::string_view what, std::string_view meaning, Sym formula) {
        if (formula.node() == nullptr) return Sym(0.0);
        const std::string address = fmt::format("{}.{}.{}", unit_.path, word, what);
        b_.add(word, address, fmt::format("{}: {}, {}", unit_.label, word, meaning), "s", formula, sources::timing);
        return b_.kept(word, address);
      };
      const Sym f = add("forward", "calls of the forward pass", row.forward);
      const Sym g = add("backward", "calls of the backward pass with its recomputation", row.backward);
      const Sym wait_f = add("exposed_forward", "what the forward pass waits for", row.waits_forward);
      const Sym wait_g = add("exposed_backward", "what the backward pass waits for", row.waits_backward);
      forward += wait_f;
      backward += wait_g;
      unit_.collectives[i].time = derived(fmt::format("{}.time", word), "calls of one microbatch", f + g, exact.time_s);
      unit_.collectives[i].exposed =
          derived(fmt::format("{}.exposed", word), "what passes wait for", wait_f + wait_g, exact.exposed_s);
    }
    unit_.exposed_forward =
        derived("exposed_forward", "what the forward pass waits for", forward, unit_.unit->forward_exposed_s);
    unit_.exposed_backward =
        derived("exposed_backward", "what the backward pass waits for", backward, unit_.unit->backward_exposed_s);
  }

  void add_passes(bool is_layer, bool layer_recomputed) {
    const StackTiming& timing = run_.training.stack.timing;
    const UnitTime& exact = unit_.unit->time;
    Sym forward = forward_, backward = backward_, again = rerun_;
    if (is_layer) {
      const auto floor = [&](std::string_view symbol, std::string_view field, double value) {
        Sym host = rates_.stack(symbol, "the host's launches of a layer", value, field, "s");
        if (run_.parallel.tensor > 1 && timing.host_tensor_parallel_s > 0) {
          host += rates_.stack("host_tensor", "more of them under tensor parallelism", timing.host_tensor_parallel_s,
                               "host_tensor_parallel_s", "s");
        }
        return host;
      };
      const double more = run_.parallel.tensor > 1 ? timing.host_tensor_parallel_s : 0.0;
      const bool slow_forward = timing.host_forward_s + more - unit_.exposed_forward.value() > forward.value();
      const bool slow_backward = timing.host_backward_s + more - unit_.exposed_backward.value() > backward.value();
      if (slow_forward) {
        forward = at_least(forward, "forward",
                           floor("host_forward", "host_forward_s", timing.host_forward_s) - unit_.exposed_forward);
      }
      if (slow_backward) {
        backward = at_least(backward, "backward",
                            floor("host_backward", "host_backward_s", timing.host_backward_s) - unit_.exposed_backward);
      }
      unit_.forward = derived("forward", "forward pass", forward, exact.forward_s);
      unit_.backward = derived("backward", "backward pass", backward, exact.backward_s);
      const double both = timing.host_forward_s + timing.host_backward_s + 2 * more - unit_.exposed_backward.value();
      if (layer_recomputed && both - unit_.backward.value() > again.value()) {
        again = at_least(again, "recompute",
                         floor("host_forward", "host_forward_s", timing.host_forward_s) +
                             floor("host_backward", "host_backward_s", timing.host_backward_s) -
                             unit_.exposed_backward - unit_.backward);
      }
    } else {
      unit_.forward = derived("forward", "forward pass", forward, exact.forward_s);
      unit_.backward = derived("backward", "backward pass", backward, exact.backward_s);
    }
    if (exact.recompute_s > 0) unit_.recompute = derived("recompute", "forward again", again, exact.recompute_s);
  }

 private:
  struct Rows {
    Sym forward, backward, waits_forward, waits_backward;
  };

  Sym derived(std::string_view what, std::string_view meaning, Sym formula, double value) {
    if (value == 0 && formula.node() == nullptr) return Sym(0.0);
    const std::string_view symbol = what.substr(0, what.find('.'));
    const std::string address = fmt::format("{}.{}", unit_.path, what);
    b_.derived(symbol, address, fmt::format("{}: {}", unit_.label, meaning), "s", formula, value, sources::timing);
    return formula.node() == nullptr ? Sym(value) : b_.kept(symbol, address);
  }

  /// A pass is never shorter than the host needs to launch it.
  Sym at_least(Sym operators, std::string_view what, Sym host) {
    if (what == "recompute") return max(operators, host);
    return max(alone(what == "backward"), host);
  }

  static bool hides_behind_compute(CollectiveName which) {
    return which == CollectiveName::tp_regather || which == CollectiveName::cp_send ||
           which == CollectiveName::ep_all_to_all;
  }

  /// The operators of a pass, without the floor that the host's launches are.
  Sym alone(bool backward) {
    Sym& known = backward ? alone_backward_ : alone_forward_;
    if (known.node() != nullptr) return known;
    const std::string_view what = backward ? "backward" : "forward";
    known = b_.add("operators", fmt::format("{}.operators.{}", unit_.path, what),
                   fmt::format("{}: its operators alone, {}", unit_.label, what), "s", backward ? backward_ : forward_,
                   sources::timing);
    return known;
  }

  /// One call of a collective, bytes first.
  Sym one_call(CollectiveName which, Collective op, const RankGroup& group, Sym sent, double exact,
               Sym times = Sym(1.0)) {
    const std::string_view word = name(which);
    const std::string path = b_.unused(fmt::format("{}.{}.call", unit_.path, word));
    const std::string label = fmt::format("{}: {}", unit_.label, word);
    const Sym bytes = b_.add("bytes", b_.unused(path + "_bytes"),
                             fmt::format("{}, bytes that one GPU sends in a call", label), "B", sent, sources::ring);
    const Sym seconds = times * rates_.collective(path, label, op, group, bytes);
    if (exact < 0) exact = collective_seconds(run_.cluster, op, group, sent.value());
    if (exact == 0) return Sym(0.0);
    return b_.derived("call", path, label + ", one call", "s", seconds, exact, sources::timing);
  }

  Sym layer_call(const LayerCollective<Sym>& call, const LayerKind& kind, double exact) {
    const RankGroup& group = b_.w.topology.group(call.group);
    Sym share(1.0);
    const StackTiming& timing = run_.training.stack.timing;
    if (call.name == CollectiveName::ep_all_to_all && timing.expert_hidden > 0) {
      const double top_k = static_cast<double>(kind.mlp.top_k);
      const bool across = group.scope == Scope::inter_node;
      if (across && top_k > 1) {
        const Sym nodes = b_.terms.input("nodes", "nodes that the expert group spans",
                                         std::ceil(static_cast<double>(group.size) / group.per_domain),
                                         "the layout (docs/run.md, parallel.order)");
        const Sym k = b_.terms.input("k_top", "experts that a token goes to", top_k, sources::config);
        share = min(Sym(1.0), (1.0 - pow(1.0 - 1.0 / nodes, k)) * nodes / k);
      }
      if (across) {
        share =
            share *
            rates_.gpu("nic_share", "of the NIC's bandwidth, what collectives reach",
                       run_.cluster.inter_node_efficiency(), "fabrics") /
            rates_.rule("node_aware", "of it, what a node-aware dispatcher reaches (DeepEP)", node_aware_efficiency);
      }
      if (run_.training.precision == Precision::fp8) {
        share = share *
                rates_.rule("fp8_dispatch", "bytes of fp8 dispatch and 16-bit combine over 16 bit", fp8_dispatch_share);
      }
    }
    Sym times(1.0);
    if (call.op == Collective::all_to_all && group.scope == Scope::intra_node && group.size > 8) {
      times = rates_.stack("spread", "all-to-all over more than 8 ranks of a domain", timing.all_to_all_spread,
                           "all_to_all_spread") *
              pow(Sym(group.size / 8.0), Sym(1.0 / 3));
    }
    return one_call(call.name, call.op, group, share * call.sent, exact, times);
  }

  /// What of a call's time the pass waits for.
  Sym waits(CollectiveName which, Sym seconds, Sym behind, bool backward) {
    const StackTiming& timing = run_.training.stack.timing;
    switch (which) {
      case CollectiveName::tp_regather: return backward ? max(Sym(0.0), seconds - behind) : seconds;
      case CollectiveName::tp_all_reduce:
      case CollectiveName::tp_all_gather:
      case CollectiveName::tp_reduce_scatter:
        if (!run_.training.overlap.tp) return seconds;
        return seconds *
               (1.0 - rates_.stack("tp_hidden", "share that overlap.tp hides", timing.tp_hidden, "tp_hidden"));
      case CollectiveName::cp_send: return max(Sym(0.0), seconds - behind);
      case CollectiveName::ep_all_to_all:
        if (!overlaps_expert_exchange(run_.parallel.schedule)) return seconds;
        return seconds - min(seconds, behind) * rates_.stack("expert_hidden", "share of an exchange that hides",
                                                             timing.expert_hidden, "expert_hidden");
      default: return seconds;
    }
  }

  TermBuilder& b_;
  Rates rates_;
  const Run& run_;
  UnitTerms& unit_;
  Sym forward_, backward_, rerun_;
  Sym alone_forward_, alone_backward_;
  std::array<Rows, collective_count> rows_{};
};

}  // namespace

void TermBuilder::add_layer_times(UnitTerms& unit, const LayerKind& kind, bool layer_recomputed, double causal_share) {
  UnitTimes times(*this, unit);
  times.add_operators(causal_share, layer_recomputed);
  times.add_collectives(kind, layer_recomputed);
  times.add_collective_sums();
  times.add_passes(true, layer_recomputed);
}

void TermBuilder::add_end_times(UnitTerms& unit, const Symbols<Sym>& v, const LossBytes& loss) {
  UnitTimes times(*this, unit);
  times.add_operators(0.5, false);
  const Sym tokens = v.s * v.b / v.c;
  const Sym hidden = v.w * tokens * v.h;
  const bool sharded = run.parallel.sequence_parallel;
  using enum CollectiveName;
  if (unit.unit == &w.ends.embedding) {
    if (sharded) {
      times.add_end_call(tp_reduce_scatter, Collective::reduce_scatter, hidden, 1, 0);
      times.add_end_call(tp_all_gather, Collective::all_gather, hidden, 0, 1);
    } else {
      times.add_end_call(tp_all_reduce, Collective::all_reduce, hidden, 1, 0);
    }
  }
  if (unit.unit == &w.ends.head) {
    const Sym rows = loss.shifted ? v.b * (v.s / v.c - 1.0) : tokens;
    times.add_loss(
        add("logits", "head.logits", "logits of this rank, one microbatch", "", rows * v.V / v.t, sources::config));
    if (sharded) {
      times.add_end_call(tp_all_gather, Collective::all_gather, hidden, 1, 0);
      times.add_end_call(tp_reduce_scatter, Collective::reduce_scatter, hidden, 0, 1);
      const bool trains = !run.training.peft.active();
      if (trains && run.training.kernels.sp_input == SequenceParallelInput::regather) {
        times.add_end_call(tp_regather, Collective::all_gather, hidden, 0, 1);
      }
    } else {
      times.add_end_call(tp_all_reduce, Collective::all_reduce, hidden, 0, 1);
    }
  }
  times.add_collective_sums();
  times.add_passes(false, false);
}

}  // namespace shardplan::explain
