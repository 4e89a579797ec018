// Terms of the time of one operator: its products, its attention, the bytes that it moves.
#include <fmt/format.h>

#include <cmath>

#include "rate_terms.hpp"
#include "shardplan/physics/measured.hpp"
#include "shardplan/physics/timing_parts.hpp"

namespace shardplan::explain {

using namespace timing_constants;

namespace {

constexpr std::string_view bytes_source = "include/shardplan/physics: element-wise HBM traffic of the operator";

class OperatorTerms {
 public:
  OperatorTerms(TermBuilder& builder, const UnitTerms& unit)
      : b_(builder), rates_(builder), run_(builder.run), unit_(unit) {}

  OperatorTimes of(const Operator<Sym>& op, const Operator<double>& number, double causal) {
    const OperatorTime exact = operator_seconds(run_, number, causal);
    OperatorTimes time;
    switch (op.kind) {
      case OperatorKind::gemm:
      case OperatorKind::grouped_gemm: time = product_terms(op, number); break;
      case OperatorKind::attention: time = attention_terms(op, number, causal); break;
      default: time = element_terms(op);
    }
    OperatorTimes out;
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

 private:
  std::string at(const Operator<Sym>& op, std::string_view field) const {
    return fmt::format("{}.{}.{}", unit_.path, op.name, field);
  }

  Sym named(const Operator<Sym>& op, std::string_view field, std::string_view meaning, Sym formula, double value,
            std::string_view source = sources::timing, std::string_view unit = "s") {
    if (value == 0) return Sym(0.0);
    return b_.derived(op.name, b_.unused(at(op, field)), fmt::format("{}: {}, {}", unit_.label, op.name, meaning), unit,
                      formula, value, source);
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

  OperatorTimes element_terms(const Operator<Sym>& op) {
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
      const Sym grouped =
          rates_.stack("grouped", "a grouped product's rate over one product's", rate.share, "grouped_product_share");
      seconds = seconds / (speed_up * grouped);
    }
    if (rate.narrow.cast_bytes <= 0) return seconds;
    const Sym bytes = rates_.rule("cast_bytes", "HBM traffic of casts per element", rate.narrow.cast_bytes, "B");
    const Sym share =
        rates_.rule("HBM_share", "of the HBM bandwidth, what element-wise kernels reach", elementwise_bandwidth_share);
    return seconds + bytes * op.batch * m * k / (share * rates_.hbm());
  }

  OperatorTimes product_terms(const Operator<Sym>& op, const Operator<double>& number) {
    const StackTiming& timing = run_.training.stack.timing;
    const ProductRate rate = product_rate(run_, number);
    Sym start;
    if (op.kind == OperatorKind::grouped_gemm) {
      start = op.batch * rates_.stack("expert_start", "per local expert, product and direction", timing.expert_start_s,
                                      "expert_start_s", "s");
    }
    OperatorTimes time;
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
        const Sym reached = rates_.gpu("peak_rate", "dense peak of the GPU in 16 bit", peak, "peak_tflops", "FLOP/s") *
                            rates_.gpu("tile_rate", "of the peak, what large tiles reach", gpu.gemm.peak_fraction,
                                       "gemm.peak_fraction") *
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

  OperatorTimes attention_terms(const Operator<Sym>& op, const Operator<double>& number, double causal) {
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
        return bytes.value() <= 0 ? Sym(0.0)
                                  : named(op, field, "bytes through HBM", bytes, bytes.value(), bytes_source, "B");
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
      shape = named(
          op, "shape",
          fmt::format("rate of {} heads of {} over {} tokens against long sequences", number_text(heads),
                      number_text(number.k), number_text(s)),
          Sym(attention_shape_share(gpu, efficiency.s0, number.k, s, heads)),
          attention_shape_share(gpu, efficiency.s0, number.k, s, heads),
          fmt::format("configs/measured/attention-{}.csv, between measured sizes", measured_gpu(gpu.attention_table)),
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

  TermBuilder& b_;
  Rates rates_;
  const Run& run_;
  const UnitTerms& unit_;
};

}  // namespace

OperatorTimes operator_times(TermBuilder& builder, const UnitTerms& unit, const Operator<Sym>& op,
                             const Operator<double>& number, double causal_share) {
  return OperatorTerms(builder, unit).of(op, number, causal_share);
}

}  // namespace shardplan::explain
