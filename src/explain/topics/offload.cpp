// Cards of offloading: states in host memory and on NVMe.
#include <algorithm>

#include "shardplan/plan/data_volumes.hpp"
#include "shardplan/plan/step_rules.hpp"
#include "topics.hpp"

namespace shardplan::explain {
namespace {

using step_constants::cpu_adam_bytes;
using step_constants::host_memory_bandwidth;

/// CPU Adam, the new weights go up in 16 bit.
Sym offload_update(Sym P, Sym host, Sym pcie) { return cpu_adam_bytes * P / host + 2.0 * P / pcie; }

struct StatesOnGpu {
  double with = 0, without = 0;
};

/// Weights, gradients and states of stage 0 on the card, with and without the optimizer on the host.
StatesOnGpu states_on_gpu(const Run& run) {
  const auto states = [&run](OffloadDevice device) {
    Run variant = run;
    variant.training.offload.optimizer = device;
    Estimate e;
    estimate(variant, e);
    const MemoryParts& parts = e.stages.front().moments[static_cast<std::size_t>(Moment::backward)];
    return static_cast<double>(parts.parameters + parts.gradients + parts.optimizer);
  };
  return {states(OffloadDevice::cpu), states(OffloadDevice::none)};
}

/// The card of a run: its own step, with the optimizer on the host.
void offload_of_run(Card& c) {
  Run variant = c.run();
  variant.training.offload.optimizer = OffloadDevice::cpu;
  if (c.run().training.offload.optimizer == OffloadDevice::none) variant.training.offload.optimizer_fraction = 1;
  Estimate e;
  estimate(variant, e);
  const Host& of_node = variant.cluster.host;
  const double gpus = std::min(variant.num_gpus, variant.cluster.gpus_per_node);
  const double of_gpu = variant.cluster.gpu.pcie_bandwidth > 0 ? variant.cluster.gpu.pcie_bandwidth : 25e9;
  const double memory =
      (of_node.memory_bandwidth > 0 ? of_node.memory_bandwidth : step_constants::host_memory_bandwidth) / gpus;
  const double link = of_node.pcie_bandwidth > 0 ? of_node.pcie_bandwidth : of_gpu;
  const double width = bytes_of(activation_dtype(variant.training.precision));
  const Sym P = c.symbol("P", "parameters that a GPU's share of the host steps",
                         e.offload.step_s / (step_constants::cpu_adam_bytes / memory + width / link));
  const Sym T = c.count("T", "tokens of a step",
                        static_cast<double>(variant.training.global_batch_size * variant.training.seq_length));
  const Sym rate =
      c.symbol("rate", "tokens/s but for the wait",
               T.value() > 0 ? static_cast<double>(variant.training.global_batch_size * variant.training.seq_length) /
                                   (e.time.step_s - e.offload.step_s)
                             : 1,
               {}, Domain::positive);
  const Sym host = c.symbol("host", "host memory, a GPU's share", memory, "B/s", Domain::positive);
  const Sym pcie = c.symbol("pcie", "PCIe", link, "B/s", Domain::positive);
  const Sym update = cpu_adam_bytes * P / host + Sym(width) * P / pcie;
  const Sym slower = update / (T / rate + update);
  c.result(slower, "fraction", percent(slower.value(), 1) + " of the step",
           fmt::format("{:.2f} / ({:.2f} + {:.2f}) s at {} tokens/step", update.value(), T.value() / rate.value(),
                       update.value(), count(T.value())));
  c.remark(
      "each step",
      fmt::format("gradients down ({:.2f} s, hidden behind backward), CPU Adam 28P ({:.2f} s), weights up ({:.2f} s)",
                  c.workspace().rule.gradient_bytes * P.value() / pcie.value(),
                  cpu_adam_bytes * P.value() / host.value(), width * P.value() / pcie.value()));
  const StatesOnGpu states = states_on_gpu(c.run());
  c.remark("memory", fmt::format("the GPU holds {} of weights, gradients and states instead of {}", gb(states.with),
                                 gb(states.without)));
  if (c.run().training.offload.optimizer == OffloadDevice::none) {
    c.remark("this run", "keeps its optimizer on the GPU: the numbers are those with it on the host");
  } else if (c.run().training.offload.optimizer == OffloadDevice::nvme) {
    c.remark("this run", "has its optimizer on NVMe (explain infinity): the numbers are those of host memory");
  }
  const auto at = [&](double tokens) { return percent(update.value() / (tokens / rate.value() + update.value()), 0); };
  c.beware(fmt::format("2,048 tokens: {}, 1,048,576: {}. \"30-50%\" is one place: the cost is once a step", at(2048),
                       at(1048576)));
}

}  // namespace

void offload(Card& c) {
  c.title("optimizer states in host memory: Adam runs on the CPU, once a step");
  c.source("Ren et al. 2021 (2101.06840) section 4");
  c.next("shardplan estimate configs/runs/opt-13b-zero-offload-1xv100.json");
  if (c.stated()) {
    offload_of_run(c);
    return;
  }
  c.numbers("13B on one A100");
  const Sym P = c.symbol("P", "parameters", 13e9);
  const Sym T = c.count("T", "tokens of a step", 8192);
  const Sym peak = c.symbol("peak", "A100", 312e12, "FLOP/s", Domain::positive);
  const Sym share = c.symbol("u", "MFU", 0.45, {}, Domain::fraction);
  const Sym host = c.symbol("host", "host memory", host_memory_bandwidth, "B/s", Domain::positive);
  const Sym pcie = c.symbol("pcie", "PCIe", 25e9, "B/s", Domain::positive);
  const Sym compute = 6.0 * P * T / (peak * share), update = offload_update(P, host, pcie);
  const Sym slower = update / (compute + update);
  c.result(slower, "fraction", percent(slower.value(), 0) + " of the step",
           fmt::format("{:.2f} / ({:.2f} + {:.2f}) s at {} tokens/step", update.value(), compute.value(),
                       update.value(), count(T.value())));
  c.remark("each step",
           fmt::format("gradients down 2P ({:.2f} s, hidden), CPU Adam 28P ({:.2f} s), weights up 2P ({:.2f} s)",
                       2 * P.value() / pcie.value(), cpu_adam_bytes * P.value() / host.value(),
                       2 * P.value() / pcie.value()));
  c.remark("memory", fmt::format("the GPU holds {} instead of {}", gb(2 * P.value()), gb(16 * P.value())));
  const auto at = [&](double tokens) {
    const double of_step = 6 * P.value() * tokens / (peak.value() * share.value());
    return percent(update.value() / (of_step + update.value()), 0);
  };
  c.beware(fmt::format("2,048 tokens: {}, 65,536: {}. \"30-50%\" is one place: the cost is once a step", at(2048),
                       at(65536)));
}

void infinity(Card& c) {
  const bool own = c.stated();
  const Run& run = c.run();
  const double nodes = std::max(1.0, static_cast<double>(run.num_gpus) / run.cluster.gpus_per_node);
  if (!own) c.numbers("10^12 parameters on one node");
  const Sym P = c.symbol("P", own ? "parameters that train, a node's share" : "parameters",
                         own ? static_cast<double>(c.estimate().model.trainable_parameters) / nodes : 1e12);
  // All weights are read, frozen ones too; each node's GPUs read what their own ranks hold.
  double read = 0;
  for (const Stage& stage : c.workspace().stages) {
    const auto gathered = [&](const Weights& weights) {
      return data_volumes<double>(c.workspace().rule, run.training, weights).gathered;
    };
    read += gathered(stage.weights.dense) * run.parallel.tensor +
            gathered(stage.weights.expert) * run.parallel.expert * run.parallel.expert_tensor;
  }
  const double weights = own ? read / copies_of_stages(run) / nodes : 2 * P.value();
  const double of_node = run.cluster.host.nvme_bandwidth;
  const Sym nvme = c.symbol("nvme", own && of_node == 0 ? "NVMe of a node (not stated: 25 GB/s)" : "NVMe of a node",
                            own && of_node > 0 ? of_node : 25e9, "B/s", Domain::positive);
  const StateRule& rule = c.workspace().rule;
  const double own_state = run.training.peft.active() ? rule.adapter_master_bytes + rule.adapter_moment_bytes
                                                      : rule.master_bytes + rule.moment_bytes;
  const Sym state = c.symbol("o", "master copy and moments", own ? own_state : 12, "B");
  const Sym seconds = 2.0 * state * P / nvme;
  c.title("ZeRO-Infinity: states on NVMe are read and written once a step");
  c.result(seconds, "s", fmt::format("{:.3g} s a step", seconds.value()), "2 o P / NVMe bandwidth");
  c.remark("space",
           fmt::format("{:.4g} TB for 16 B a parameter; weights are read twice a microbatch as well: {:.3g} s each",
                       16 * P.value() / 1e12, weights / nvme.value()));
  if (own && run.training.offload.optimizer != OffloadDevice::nvme) {
    c.remark("this run", "keeps its states off NVMe: the numbers are those with them there");
  }
  c.remark("hides", "behind compute only with a batch of many tokens: about 6PT FLOP must last as long");
  c.beware(
      "\"trains a trillion parameters on one node\" says that it fits: the time of a step is set by NVMe, and grows "
      "with P");
  c.source("Rajbhandari et al. 2021 (2104.07857) sections 5, 6");
  c.next("shardplan estimate configs/runs/gpt-1t-zero-infinity-1xdgx2.json");
}

}  // namespace shardplan::explain
