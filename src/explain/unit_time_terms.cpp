// Terms of time of layers and ends: every operator, every collective, what passes wait for, and their sums.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rate_terms.hpp"
#include "shardplan/physics/measured.hpp"
#include "shardplan/physics/timing_parts.hpp"
#include "shardplan/plan/step_rules.hpp"

namespace shardplan::explain {

using namespace timing_constants;
using namespace step_constants;

namespace {

constexpr std::string_view bytes_source = "include/shardplan/physics: element-wise HBM traffic of the operator";

struct OperatorTerms {
  Sym forward, input_gradient, weight_gradient;
};

class UnitTimes {
 public:
  UnitTimes(TermBuilder& builder, UnitTerms& unit) : b_(builder), rates_(builder), run_(builder.run), unit_(unit) {}

  void add_operators(double causal_share, bool layer_recomputed) {
    Reruns reruns(run_, unit_.numbers, layer_recomputed);
    const Operator<double>* number = unit_.numbers.operators.begin();
    for (const Operator<Sym>& op : unit_.operators.operators) {
      const OperatorTime exact = operator_seconds(run_, *number, causal_share);
      const OperatorTerms time = operator_terms(op, *number, causal_share, exact);
      const bool again = reruns.next(*number);
      const Sym both = time.input_gradient + time.weight_gradient;
      const Sym rerun = again ? time.forward : Sym();
      forward_ += time.forward;
      backward_ += both;
      rerun_ += rerun;
      if (op.kind == OperatorKind::gemm || op.kind == OperatorKind::grouped_gemm) gemm_ += time.forward + both + rerun;
      if (op.kind == OperatorKind::attention) attention_ += time.forward + both + rerun;
      ++number;
    }
  }

  void add_sums() {
    unit_.gemm = sum("gemm", "gemm_time", "matrix products, forward, backward and again", gemm_, unit_.unit->time.gemm_s);
    unit_.attention = sum("attention", "attention_time", "attention, forward, backward and again", attention_,
                          unit_.unit->time.attention_s);
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
    const Sym sent = sent_share_of<Sym>(op, b_.terms.input("t", "tensor parallel (parallel.tensor)", group.size,
                                                           sources::run_file)) *
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
        forward = at_least(forward, "forward", floor("host_forward", "host_forward_s", timing.host_forward_s) -
                                                   unit_.exposed_forward);
      }
      if (slow_backward) {
        backward = at_least(backward, "backward", floor("host_backward", "host_backward_s", timing.host_backward_s) -
                                                      unit_.exposed_backward);
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

  Sym sum(std::string_view symbol, std::string_view what, std::string_view meaning, Sym formula, double value) {
    if (value == 0) return Sym(0.0);
    return b_.derived(symbol, fmt::format("{}.{}", unit_.path, what), fmt::format("{}: {}", unit_.label, meaning), "s",
                      formula, value, sources::timing);
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

  std::string at(const Operator<Sym>& op, std::string_view field) const {
    return fmt::format("{}.{}.{}", unit_.path, op.name, field);
  }

  Sym named(const Operator<Sym>& op, std::string_view field, std::string_view meaning, Sym formula, double value,
            std::string_view source = sources::timing, std::string_view unit = "s") {
    if (value == 0) return Sym(0.0);
    return b_.derived(op.name, b_.unused(at(op, field)), fmt::format("{}: {}, {}", unit_.label, op.name, meaning), unit,
                      formula, value, source);
  }

  OperatorTerms operator_terms(const Operator<Sym>& op, const Operator<double>& number, double causal,
                               const OperatorTime& exact) {
    OperatorTerms time;
    switch (op.kind) {
      case OperatorKind::gemm:
      case OperatorKind::grouped_gemm: time = product_terms(op, number); break;
      case OperatorKind::attention: time = attention_terms(op, number, causal); break;
      default: time = element_terms(op);
    }
    OperatorTerms out;
    out.forward = named(op, "forward", "forward", time.forward, exact.forward_s);
    const bool both = exact.input_gradient_s > 0 && exact.weight_gradient_s > 0;
    out.input_gradient = named(op, both ? "input_gradient" : "backward", both ? "gradient of its input" : "backward",
                               time.input_gradient, exact.input_gradient_s);
    out.weight_gradient =
        named(op, both ? "weight_gradient" : "backward", both ? "gradient of its weights" : "backward",
              time.weight_gradient, exact.weight_gradient_s);
    if (both) {
      b_.add(op.name, b_.unused(at(op, "backward")), fmt::format("{}: {}, backward", unit_.label, op.name), "s",
             out.input_gradient + out.weight_gradient, sources::sum);
    }
    return out;
  }

  Sym elementwise_bytes(const Operator<Sym>& op, std::string_view field, Sym bytes) {
    if (bytes.value() <= 0) return Sym(0.0);
    const Sym moved = named(op, field, "bytes through HBM", bytes, bytes.value(), bytes_source, "B");
    const StackTiming& timing = run_.training.stack.timing;
    if (op.kind == OperatorKind::routing) {
      return rates_.stack("permutation", "on the bytes of dispatch and combine", timing.permutation_factor,
                          "permutation_factor") *
             moved;
    }
    Sym factor = rates_.stack("elementwise", "on the bytes of element-wise kernels", timing.elementwise_factor,
                              "elementwise_factor");
    if (!run_.training.compile) {
      factor = factor * rates_.stack("uncompiled", "the same without torch.compile", timing.uncompiled_factor,
                                     "uncompiled_factor");
    }
    return factor * moved;
  }

  OperatorTerms element_terms(const Operator<Sym>& op) {
    return {rates_.memory(elementwise_bytes(op, "forward_bytes", op.forward_bytes)),
            rates_.memory(elementwise_bytes(op, "backward_bytes", op.backward_bytes)), Sym()};
  }

  /// One of an operator's three products, in the precision that it runs in.
  Sym product(const Operator<Sym>& op, const ProductRate& rate, std::string_view field, Sym m, Sym n, Sym k) {
    const std::string path = at(op, field);
    const std::string label = fmt::format("{}: {}", unit_.label, op.name);
    Sym flop;
    if (const Term* const work = b_.terms.find(at(op, "forward_flop"))) {
      flop = b_.terms.expressions().symbol(
          {"FLOP", "of one of the operator's three products", "FLOP", work->address, work->source, work->value});
    }
    Sym seconds = rates_.product(path, label, rate.precision, m, n, k, op.batch, flop);
    if (rate.narrow.speed_up != 1 || rate.share != 1) {
      const Sym speed_up =
          rate.narrow.speed_up == 1
              ? Sym(1.0)
              : rates_.gpu("narrow", fmt::format("rate in {} over 16 bit", name(run_.training.precision)),
                           rate.narrow.speed_up, "peak_tflops; the stack's share");
      const Sym grouped = rates_.stack("grouped", "a grouped product's rate over one product's", rate.share,
                                       "grouped_product_share");
      seconds = seconds / (speed_up * grouped);
    }
    if (rate.narrow.cast_bytes <= 0) return seconds;
    const Sym bytes = rates_.rule("cast_bytes", "HBM traffic of casts per element", rate.narrow.cast_bytes, "B");
    const Sym share =
        rates_.rule("HBM_share", "of the HBM bandwidth, what element-wise kernels reach", elementwise_bandwidth_share);
    return seconds + bytes * op.batch * m * k / (share * rates_.hbm());
  }

  OperatorTerms product_terms(const Operator<Sym>& op, const Operator<double>& number) {
    const StackTiming& timing = run_.training.stack.timing;
    const ProductRate rate = product_rate(run_, number);
    Sym start;
    if (op.kind == OperatorKind::grouped_gemm) {
      start = op.batch *
              rates_.stack("expert_start", "per local expert, product and direction", timing.expert_start_s,
                           "expert_start_s", "s");
    }
    OperatorTerms time;
    time.forward = product(op, rate, "forward", op.m, op.n, op.k) + start;
    time.input_gradient = product(op, rate, "input_gradient", op.m, op.k, op.n) + start;
    if (number.trains && number.parameters > 0) {
      const Sym share = rates_.stack("weight_gradient", "rate of weight gradients over the forward rate",
                                     timing.weight_gradient_share, "weight_gradient_share");
      const Sym work = product(op, rate, "weight_gradient", op.n, op.k, op.m) / share;
      // fp32 accumulation: read and written beside the product.
      const Sym accumulate = rates_.memory(8.0 * op.n * op.k * op.batch);
      time.weight_gradient = (work < accumulate ? max(work, accumulate) : work) + start;
    }
    if (number.adapter_parameters > 0) {
      const Sym bytes = 2.0 * op.m * op.batch * (op.n + op.k);
      const Sym flop = 2.0 * op.m * op.batch * op.adapter_rank * (op.n + op.k);
      const Gpu& gpu = run_.cluster.gpu;
      const double peak = plain_peak(gpu, run_.training.precision);
      Sym seconds = rates_.memory(bytes);
      if (peak * gpu.gemm.peak_fraction * gpu.gemm.sustained > 0) {
        const Sym reached =
            rates_.gpu("peak_rate", "dense peak of the GPU in 16 bit", peak, "peak_tflops", "FLOP/s") *
            rates_.gpu("tile_rate", "of the peak, what large tiles reach", gpu.gemm.peak_fraction, "gemm.peak_fraction") *
            rates_.sustained();
        seconds = max(seconds, flop / reached);
      }
      const Sym adapters = named(op, "adapters_time", "its adapters, one direction", seconds, seconds.value());
      time.forward += adapters;
      time.input_gradient += adapters;
      time.weight_gradient += adapters;
    }
    return time;
  }

  OperatorTerms attention_terms(const Operator<Sym>& op, const Operator<double>& number, double causal) {
    const Training& training = run_.training;
    const StackTiming& timing = training.stack.timing;
    const Gpu& gpu = run_.cluster.gpu;
    const double peak_value = plain_peak(gpu, training.precision);
    if (peak_value <= 0) return {};
    const Sym peak = rates_.gpu("peak_rate", "dense peak of the GPU in 16 bit", peak_value, "peak_tflops", "FLOP/s");
    const auto flop_of = [&](std::string_view field, Sym flop) {
      const Term* const work = b_.terms.find(at(op, field));
      if (work == nullptr || work->value != flop.value()) return flop;
      return b_.terms.expressions().symbol(
          {"FLOP", "scores in full", "FLOP", work->address, work->source, work->value});
    };
    if (training.attention == AttentionKernel::eager) {
      Sym rate = peak * rates_.stack("batched", "unfused attention's products, of the peak",
                                     timing.batched_product_share, "batched_product_share");
      if (std::fmod(number.k, 8) != 0) {
        rate = rate / rates_.stack("misaligned", "heads whose size is no multiple of 8",
                                   timing.misaligned_head_slowdown, "misaligned_head_slowdown");
      }
      const auto moved = [&](std::string_view field, Sym bytes) {
        return bytes.value() <= 0 ? Sym(0.0) : named(op, field, "bytes through HBM", bytes, bytes.value(), bytes_source, "B");
      };
      return {flop_of("forward_flop", op.forward_flop) / rate + rates_.memory(moved("forward_bytes", op.forward_bytes)),
              flop_of("backward_flop", op.input_gradient_flop) / rate +
                  rates_.memory(moved("backward_bytes", op.backward_bytes)),
              Sym()};
    }
    const AttentionEfficiency& efficiency = flash_efficiency(gpu, training);
    const double length = static_cast<double>(training.seq_length);
    const bool windowed = number.n < length;
    const double c = run_.parallel.context;
    const bool ring = run_.parallel.context_comm == ContextComm::ring;
    const double steps = ring ? c : 1.0;
    const double s = (windowed ? length : number.n) / steps;
    const bool tabulated = has_attention_table(gpu.attention_table) && &efficiency != &gpu.attention_v1;
    const Sym rows = b_.terms.input("rows", "queries and keys that one kernel sees", s, sources::run_file);
    const std::string kernel = &efficiency == &gpu.attention      ? "attention.flash-v2"
                               : &efficiency == &gpu.attention_v3 ? "attention.flash-v3"
                                                                  : "attention.flash-v1";
    Sym shape;
    if (tabulated) {
      const double heads = number.batch * static_cast<double>(training.micro_batch_size) * steps / c;
      shape = named(op, "shape", fmt::format("rate of {} heads of {} over {} tokens against long sequences", number_text(heads),
                                             number_text(number.k), number_text(s)),
                    Sym(attention_shape_share(gpu, efficiency.s0, number.k, s, heads)),
                    attention_shape_share(gpu, efficiency.s0, number.k, s, heads),
                    fmt::format("configs/measured/attention-{}.csv, between measured sizes",
                                measured_gpu(gpu.attention_table)),
                    "fraction");
    } else {
      shape = rows / (rows + rates_.gpu("s_0", "sequence at which flash attention reaches half of its rate",
                                        efficiency.s0, kernel + ".s0"));
      if (number.k < 96) {
        shape = shape * rates_.stack("narrow_head", "rate at heads of 64 over 128", timing.narrow_head_share,
                                     "narrow_head_share");
      }
    }
    if (windowed) {
      const Sym tile = rates_.rule("window_tile", "keys of a flash kernel's tile", window_tile);
      shape = shape * (op.n / (op.n + tile));
    }
    Sym flop = flop_of("forward_flop", op.forward_flop) *
               (causal == 1 ? Sym(1.0)
                            : b_.terms.input("causal", "share of the scores that the causal mask leaves", causal,
                                             "mean keys a query sees over the keys it is scored against"));
    if (training.framework == Framework::fsdp && run_.parallel.context_comm != ContextComm::a2a && c > 1) {
      flop = flop * (2.0 - 1.0 / b_.terms.input("c", "context parallel (parallel.context)", c, sources::run_file));
    }
    const Sym launches = Sym(steps) * rates_.rule("launch", "start of a kernel", launch_s, "s");
    const Sym merged = steps > 1 ? rates_.memory(Sym(merged_bytes * (steps - 1)) * op.m * op.batch * op.k) : Sym();
    const Sym forward = rates_.gpu("e_forward", "flash attention's share of the peak at long sequences, forward",
                                   efficiency.forward, kernel + ".forward");
    const Sym backward = rates_.gpu("e_backward", "the same backward", efficiency.backward, kernel + ".backward");
    return {flop / (peak * forward * shape) + launches + merged,
            2.5 * flop / (peak * backward * shape) + launches + merged, Sym()};
  }

  static std::string number_text(double value) { return number(value); }

  /// One call of a collective, bytes first.
  Sym one_call(CollectiveName which, Collective op, const RankGroup& group, Sym sent, double exact, Sym times = Sym(1.0)) {
    const std::string_view word = name(which);
    const std::string path = b_.unused(fmt::format("{}.{}.call", unit_.path, word));
    const std::string label = fmt::format("{}: {}", unit_.label, word);
    const Sym bytes =
        b_.add("bytes", b_.unused(path + "_bytes"), fmt::format("{}, bytes that one GPU sends in a call", label), "B",
               sent, sources::ring);
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
        share = share * rates_.gpu("nic_share", "of the NIC's bandwidth, what collectives reach",
                                   run_.cluster.inter_node_efficiency(), "fabrics") /
                rates_.rule("node_aware", "of it, what a node-aware dispatcher reaches (DeepEP)", node_aware_efficiency);
      }
      if (run_.training.precision == Precision::fp8) {
        share = share * rates_.rule("fp8_dispatch", "bytes of fp8 dispatch and 16-bit combine over 16 bit",
                                    fp8_dispatch_share);
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
        return seconds * (1.0 - rates_.stack("tp_hidden", "share that overlap.tp hides", timing.tp_hidden, "tp_hidden"));
      case CollectiveName::cp_send: return max(Sym(0.0), seconds - behind);
      case CollectiveName::ep_all_to_all:
        if (!overlaps_expert_exchange(run_)) return seconds;
        return seconds - min(seconds, behind) * rates_.stack("expert_hidden", "share of an exchange that hides",
                                                             timing.expert_hidden, "expert_hidden");
      default: return seconds;
    }
  }

  TermBuilder& b_;
  Rates rates_;
  const Run& run_;
  UnitTerms& unit_;
  Sym forward_, backward_, rerun_, gemm_, attention_;
  Sym alone_forward_, alone_backward_;
  std::array<Rows, collective_count> rows_{};
};

}  // namespace

void TermBuilder::add_layer_times(UnitTerms& unit, const LayerKind& kind, bool layer_recomputed, double causal_share) {
  UnitTimes times(*this, unit);
  times.add_operators(causal_share, layer_recomputed);
  times.add_sums();
  times.add_collectives(kind, layer_recomputed);
  times.add_collective_sums();
  times.add_passes(true, layer_recomputed);
}

void TermBuilder::add_end_times(UnitTerms& unit, const Symbols<Sym>& v, const LossBytes& loss) {
  UnitTimes times(*this, unit);
  times.add_operators(0.5, false);
  times.add_sums();
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
    times.add_loss(add("logits", "head.logits", "logits of this rank, one microbatch", "", rows * v.V / v.t,
                       sources::config));
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
