// Terms of the optimizer's step and of what offloading takes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rate_terms.hpp"
#include "recorder.hpp"
#include "shardplan/plan/memory_names.hpp"
#include "shardplan/plan/optimizer_formulas.hpp"

namespace shardplan::explain {

using namespace step_constants;

namespace {

constexpr std::string_view offload_source =
    "arXiv:2101.06840 section 4; arXiv:2104.07857; PCIe, host and NVMe bandwidths of the cluster";

using OffloadWork = OffloadWorkOf<double>;
OffloadWork work_of(const Run& run, const EstimateWorkspace& w, std::size_t rank) {
  return offload_work(NoTrace{}, run, w, rank, 0.0);
}

class StageStep {
 public:
  StageStep(TermBuilder& builder, std::size_t rank)
      : b_(builder), rates_(builder), rank_(rank), stage_(static_cast<int>(rank)) {}

  void add() {
    const Stage& stage = b_.w.stages[rank_];
    stepped_ = elements();
    const double seconds = optimizer_seconds(b_.run, b_.w, stage);
    const Sym formula = seconds > 0 ? step_of() : Sym();
    b_.derived("optimizer", at("time.optimizer"), label("the optimizer's step: bytes that it moves over bandwidth"),
               "s", formula, seconds, sources::timing);
  }

  double add_offload() {
    OffloadWork work = work_of(b_.run, b_.w, rank_);
    const StageEstimate& memory = b_.estimate.stages[rank_];
    const double paged = paged_out(b_.run, b_.w.stages[rank_], memory, static_cast<double>(b_.estimate.capacity_bytes));
    work.step += 2 * paged / pcie_bandwidth(b_.run.cluster);
    const StageTerms& stage = b_.stages[rank_];
    const UnitTime& unit = b_.w.stages[rank_].total.time;
    const double through = schedule::microbatches_per_chunk(b_.w.spec.shape);
    const double chunks = schedule::chunks_per_rank(b_.w.spec.shape);
    const double host = b_.run.training.stack.timing.host_per_microbatch_s;
    const double compute_s = through * (unit.forward_s + unit.backward_s + chunks * host) + through * unit.recompute_s;
    const double waits = offload_time(NoTrace{}, work, compute_s);
    Sym formula;
    if (work.gradients + work.step + work.passes > 0) {
      const Sym once = step_bytes(paged, work);
      const Sym passes = pass_bytes(work);
      const Sym compute = stage.compute + stage.recompute;
      if (gradients_.value() > 0) formula += max(Sym(0.0), gradients_ - compute / 2.0);
      formula += once;
      if (passes.value() > 0) {
        formula += max(Sym(0.0), passes - rates_.rule("offload_hidden", "of the compute, what transfers hide behind",
                                                      offload_hidden) *
                                              compute);
      }
    }
    b_.derived("offload", at("time.offload"), label("offloading that nothing hides"), "s", formula, waits,
               offload_source);
    return waits;
  }

 private:
  std::string at(std::string_view address) const { return at_stage(address, stage_); }
  std::string label(std::string_view what) const { return fmt::format("stage {}: {}", stage_, what); }

  Sym shards(bool experts) {
    const double ranks = experts ? b_.w.rule.expert_optimizer_shards : b_.w.rule.optimizer_shards;
    return b_.ranks_of(experts ? GroupKind::expert_data : GroupKind::data, static_cast<int>(ranks));
  }

  Sym elements() {
    const Stage& stage = b_.w.stages[rank_];
    const double value = stepped(b_.w, stage);
    const UnitWeightsOf<Sym>& text = b_.text.stages[rank_].weights;
    Sym formula;
    if (b_.w.optimizer->form == StateForm::block_coordinate && stage.weights.dense.adapters <= 0) {
      const Sym layer = Recorder(b_.terms, b_.run)
                            .at_stage(rank_)
                            .step(memory_names::stage_largest_layer, b_.text.stages[rank_].largest_layer);
      formula = layer / shards(false);
    } else {
      formula = (text.dense.trained + text.dense.adapters) / shards(false) +
                (text.expert.trained + text.expert.adapters) / shards(true);
    }
    if (value == 0) return Sym(0.0);
    return b_.derived("stepped", at("states.stepped"), label("parameters that this rank's optimizer steps over"), "",
                      formula, value, sources::zero);
  }

  /// Bytes per parameter over AdamW's; 1 leaves no trace.
  Sym moved() {
    SteppedWidths each = stepped_widths(b_.run, b_.w.rule, *b_.w.optimizer);
    const Stage& numbers = b_.w.stages[rank_];
    if (b_.w.optimizer->per_tensor() && stepped(b_.w, numbers) > 0) {
      each.moments = numbers.states.moments / stepped(b_.w, numbers);
    }
    if (moved_share(NoTrace{}, b_.run, b_.w, numbers, stepped(b_.w, numbers)) == 1) return Sym(1.0);
    const auto width = [&](std::string_view symbol, std::string_view meaning, double value) {
      return value == 0 ? Sym(0.0)
                        : b_.terms.input(symbol, meaning, value, "shardplan list optimizers; docs/run.md, states", "B");
    };
    const Sym gradient = width("w_gradient", "bytes of a gradient", each.gradient);
    const Sym all = gradient + 2.0 * width("w_master", "bytes of a master copy", each.master) +
                    width("w_weight", "bytes of a weight, read where no fp32 copy is", each.weight) +
                    2.0 * width("w_moments", "bytes of a parameter's moments", each.moments);
    const Sym adamw = gradient + Sym(2 * each.adamw_master) +
                      width("w_adamw", "the weight's bytes under AdamW", each.adamw_weight) + Sym(2 * fp32_moments);
    return b_.add("moved", at("time.optimizer.moved"),
                  label("bytes moved for a parameter over those of AdamW with fp32 moments"), "", all / adamw,
                  "what a step reads and writes: gradient, master copy, weight, moments");
  }

  Sym step_of() {
    const Run& run = b_.run;
    const StackTiming& timing = run.training.stack.timing;
    Sym fraction(1.0);
    if (run.training.offload.optimizer != OffloadDevice::none) {
      const double offloaded = run.training.offload.optimizer_fraction;
      if (offloaded > 1)
        return rates_.stack("step_fixed", "start of the step", timing.optimizer_fixed_s, "optimizer_fixed_s", "s");
      fraction = 1.0 - offloaded_fraction();
      if (fraction.value() == 0) fraction = Sym(0.0);
    }
    const Sym bytes = rates_.stack("step_bytes", "bytes that AdamW moves for a parameter",
                                   timing.optimizer_bytes_per_parameter, "optimizer_bytes_per_parameter", "B") *
                      moved() * stepped_ * fraction;
    return rates_.memory(bytes) + fraction * products() +
           rates_.stack("step_fixed", "start of the step", timing.optimizer_fixed_s, "optimizer_fixed_s", "s");
  }

  /// Products of the update, dealt out among the ranks that share the states; a matrix is on one of them.
  Sym products() {
    const MatrixStepTime& time = b_.w.stages[rank_].total.matrix_step;
    if (time.dense_s + time.expert_s <= 0) return Sym(0.0);
    constexpr std::string_view source =
        "Newton-Schulz: 5 steps of three products (Muon); GaLore, Fira: projections (list optimizers); gemm tables";
    const auto part = [&](std::string_view symbol, std::string_view meaning, double value) {
      return value == 0
                 ? Sym(0.0)
                 : b_.leaf(symbol, at(fmt::format("time.optimizer.{}", symbol)), label(meaning), "s", value, source);
    };
    const Sym shared =
        part("dense_products", "products of the update of all its matrices", time.dense_s) / shards(false) +
        part("expert_products", "of its experts' matrices", time.expert_s) / shards(true);
    return max(shared, part("largest_product", "of its largest matrix, which one rank has", time.largest_s));
  }

  Sym offloaded_fraction() {
    return b_.terms.input("offloaded", "share of the optimizer that is offloaded",
                          b_.run.training.offload.optimizer_fraction, "the run file, training.offload");
  }

  Sym pcie() {
    return rates_.cluster("pcie", "bandwidth to the host, one GPU and direction", pcie_bandwidth(b_.run.cluster),
                          "host.pcie_bandwidth, else the GPU's", "B/s");
  }
  Sym node_gpus() {
    return b_.terms.input("node_gpus", "GPUs that share a node's host",
                          std::min(b_.run.cluster.gpus_per_node, b_.run.num_gpus), "the cluster file, gpus_per_node");
  }
  Sym nvme() {
    return rates_.cluster("nvme", "NVMe bandwidth of a node", nvme_bandwidth(b_.run.cluster.host),
                          "host.nvme_bandwidth", "B/s");
  }

  /// Once a step: gradients down, the CPU's step, new weights up, states across NVMe, pages out and back.
  Sym step_bytes(double paged, const OffloadWork& work) {
    const Run& run = b_.run;
    const Offload& offload = run.training.offload;
    Sym seconds;
    if (offload.optimizer != OffloadDevice::none) {
      const double share = std::clamp(offload.optimizer_fraction, 0.0, 1.0);
      const Sym elements = stepped_ * (share == 1 ? Sym(1.0) : share == 0 ? Sym(0.0) : offloaded_fraction());
      const Sym down = Sym(b_.w.rule.gradient_bytes) * elements;
      const Sym up = Sym(bytes_of(activation_dtype(run.training.precision))) * elements;
      if (down.value() > 0) {
        gradients_ = b_.derived("gradients", at("time.offload.gradients"),
                                label("gradients to the host, beside half of the compute"), "s", down / pcie(),
                                work.gradients, offload_source);
      }
      const Sym memory = rates_.cluster(
          "host_bandwidth", "host memory bandwidth of a node",
          run.cluster.host.memory_bandwidth > 0 ? run.cluster.host.memory_bandwidth : host_memory_bandwidth,
          "host.memory_bandwidth", "B/s");
      seconds += rates_.rule("adam_bytes", "bytes that the CPU moves for a parameter", cpu_adam_bytes, "B") * elements *
                     node_gpus() / memory +
                 up / pcie();
      if (offload.optimizer == OffloadDevice::nvme) {
        const Sym state = Sym(b_.w.rule.master_bytes + b_.w.rule.moment_bytes) * elements;
        seconds += 2.0 * state * node_gpus() / nvme();
      }
    }
    if (paged > 0) {
      const Sym pages = b_.leaf("pages", at("states.paged_out"), label("pages that leave the card at the peak"), "B",
                                paged, "arXiv:2305.14314 section 3; states that the card has no room for");
      seconds += 2.0 * pages / pcie();
    }
    if (work.step <= 0) return Sym(0.0);
    return b_.derived("once", at("time.offload.step"),
                      label("once a step: the optimizer on the host, new weights, NVMe, pages"), "s", seconds,
                      work.step, offload_source);
  }

  /// Of all passes: weights for both passes of every microbatch, activations out and back.
  Sym pass_bytes(const OffloadWork& work) {
    const Run& run = b_.run;
    const Offload& offload = run.training.offload;
    const Stage& stage = b_.w.stages[rank_];
    Sym seconds;
    if (offload.parameters != OffloadDevice::none) {
      const Sym m =
          b_.terms.input("m", "microbatches of a step", static_cast<double>(run.microbatches()), sources::run_file);
      const Sym weights = b_.leaf("weights", at("states.offloaded_weights"), label("weights that live elsewhere"), "B",
                                  stage.states.parameters, sources::zero);
      const Sym bytes = 2.0 * m * weights;
      Sym transfer = bytes / pcie();
      if (offload.parameters == OffloadDevice::nvme) transfer = max(transfer, bytes * node_gpus() / nvme());
      seconds += transfer;
    }
    if (offload.activations != OffloadDevice::none && stage.layers > 0) {
      const int chosen =
          offload.activation_layers < 0 ? stage.layers : std::min(offload.activation_layers, stage.layers);
      Sym kept;
      const std::size_t chunks = static_cast<std::size_t>(schedule::chunks_per_rank(b_.w.spec.shape));
      for (std::size_t c = 0; c < chunks; ++c) kept += b_.text.chunks[rank_ * chunks + c].kept;
      Sym bytes = b_.microbatches() * kept;
      if (chosen != stage.layers)
        bytes = bytes * Sym(static_cast<double>(chosen)) / Sym(static_cast<double>(stage.layers));
      seconds += 2.0 * bytes / pcie();
    }
    if (work.passes <= 0) return Sym(0.0);
    return b_.derived("passes", at("time.offload.passes"), label("weights and activations of all passes"), "s", seconds,
                      work.passes, offload_source);
  }

  TermBuilder& b_;
  Rates rates_;
  std::size_t rank_;
  int stage_;
  Sym stepped_, gradients_;
};

}  // namespace

void TermBuilder::add_optimizer_and_offload() {
  std::size_t slowest = 0, waits_longest = 0;
  double most = -1, longest = -1;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    StageStep step(*this, i);
    step.add();
    const double seconds = optimizer_seconds(run, w, w.stages[i]);
    if (seconds > most) {
      most = seconds;
      slowest = i;
    }
    const double waits = step.add_offload();
    if (waits > longest) {
      longest = waits;
      waits_longest = i;
    }
  }
  const auto of_stage = [&](std::string_view symbol, std::string_view address, std::size_t stage,
                            std::string_view meaning, double value) {
    derived(symbol, std::string(address),
            stages.size() > 1 ? fmt::format("{}: that of stage {}, the longest", meaning, stage) : std::string(meaning),
            "s", of(symbol, at_stage(address, static_cast<int>(stage))), value, sources::timing);
  };
  of_stage("optimizer", "time.optimizer", slowest, "the optimizer's step", estimate.time.optimizer_s);
  of_stage("offload", "time.offload", waits_longest, "offloading that nothing hides", estimate.time.offload_s);
}

}  // namespace shardplan::explain
