#include "memory_facts.hpp"

#include <fmt/format.h>

#include "shardplan/physics/frameworks/facts.hpp"

namespace shardplan::explain {
namespace {

class Facts {
 public:
  Facts(TermBuilder& builder, const RankMemory& memory, int stage) : b_(builder), memory_(memory), stage_(stage) {}

  /// What lives in host memory and on NVMe.
  void add_elsewhere(const StageEstimate& e) {
    const Run& run = b_.run;
    const Offload& offload = run.training.offload;
    Sym host, nvme;
    const auto put = [&](OffloadDevice device, std::string_view state) {
      const std::string address = at(fmt::format("states.{}.offloaded", state));
      if (!b_.terms.has(address)) return;
      (device == OffloadDevice::nvme ? nvme : host) += b_.of(state, address);
    };
    put(offload.parameters, "parameters");
    put(offload.optimizer, "gradients");
    put(offload.optimizer, "optimizer");
    const double pinned = memory_.host_bytes - host.value();
    if (pinned > 0.5) {
      host += b_.leaf("pinned", at("memory.host.pinned"), "buffers pinned to swap with NVMe", "B", pinned,
                      "DeepSpeed runtime/zero/offload_config.py: buffer_count x buffer_size, sub_group_size");
    }
    if (memory_.offloaded_activations > 0) {
      host += b_.whole_bytes(b_.of("activations", at("memory.activations.offloaded")));
    }
    b_.derived("host", at("memory.host"), "bytes in host memory, one GPU's share", "B", b_.whole_bytes(host),
               static_cast<double>(e.host_bytes), "arXiv:2101.06840; DeepSpeed offload_config.py");
    b_.derived("nvme", at("memory.nvme"), "bytes on NVMe, one GPU's share", "B", b_.whole_bytes(nvme),
               static_cast<double>(e.nvme_bytes), "arXiv:2104.07857; DeepSpeed offload_config.py");
  }

  /// What the allocator reserves, and the ends of its band.
  void add_reserved(const StageEstimate& e) {
    const std::string peak(name(e.peak_moment));
    const Run& run = b_.run;
    b_.derived("allocated", at("memory.allocated"), "torch.cuda.max_memory_allocated", "B",
               b_.of("total", at("memory.total." + peak)) - b_.of("framework", at("memory.framework." + peak)),
               static_cast<double>(e.peak().allocated()), "all but what is outside the allocator");
    const Sym allocated = b_.of("allocated", at("memory.allocated"));
    const StackMemory& memory = run.training.stack.memory;
    constexpr std::string_view source =
        "allocated x the stack's reserved_factor; fragments of unfused losses (docs/catalog.md)";
    Sym reserved = allocated, high = allocated;
    if (facts_of(run.training.framework).measures_overheads) {
      const LossKind loss = run.training.loss;
      const bool unfused = loss == LossKind::hf || loss == LossKind::hf_shift || loss == LossKind::hf_external ||
                           loss == LossKind::hf_native;
      const bool fragments = unfused && memory.logits_fragmentation && memory_.facts.has_head;
      const Sym logits = fragments ? b_.of("logits", "head.logits") : Sym();
      const Sym factor = b_.terms.input("reserve", "reserved over allocated", memory.reserved_factor,
                                        "the stack's memory.reserved_factor (docs/catalog.md)");
      reserved = factor * allocated + (e.peak_moment == Moment::loss ? 4.0 * logits : Sym());
      high =
          b_.terms.input("reserve_high", "reserved over allocated, high end of the band", 1.09,
                         "above what measured runs reserved (docs/validation.md, verdicts and bands of peak memory)") *
              allocated +
          8.0 * logits;
    }
    reserved = b_.whole_bytes(reserved);
    high = b_.whole_bytes(high);
    if (e.has_moment[static_cast<std::size_t>(Moment::initialisation)] &&
        facts_of(run.training.framework).measures_overheads) {
      const MemoryParts& start = e.moments[static_cast<std::size_t>(Moment::initialisation)];
      if (static_cast<double>(start.allocated()) > reserved.value()) {
        reserved = b_.of("total", at("memory.total.initialisation")) -
                   b_.of("framework", at("memory.framework.initialisation"));
      }
    }
    const Sym all = b_.derived("reserved", at("memory.reserved"), "torch.cuda.max_memory_reserved", "B", reserved,
                               static_cast<double>(e.reserved_bytes), source);
    b_.derived("low", at("memory.reserved_low"), "low end of the reserve's band: what is allocated", "B",
               all < allocated ? all : allocated, static_cast<double>(e.reserved_low_bytes), source);
    b_.derived("high", at("memory.reserved_high"), "high end of the reserve's band", "B", high < all ? all : high,
               static_cast<double>(e.reserved_high_bytes), source);
  }

  /// States over the weights that the rank works with, as the page prints them.
  void add_bytes_per_parameter(const StageEstimate& e) {
    const std::string peak(name(e.peak_moment));
    const auto of = [&](std::string_view part) { return b_.kept(part, at(fmt::format("memory.{}.{}", part, peak))); };
    const Sym states =
        b_.add("states", at("memory.states"), fmt::format("states of stage {}: weights, gradients, optimizer", stage_),
               "B", of("parameters") + of("gradients") + of("optimizer"), sources::zero);
    if (e.parameters <= 0) return;
    const StageTerms& stage = b_.stages[static_cast<std::size_t>(stage_)];
    Sym held;
    for (const StateElements<Sym>* const each : {&stage.dense, &stage.expert}) {
      held += each->trained + each->frozen + each->quantized + each->adapters;
    }
    const Sym count = b_.add_checked("P_rank", at("states.held"), "weights that this rank works with", "", held,
                                     static_cast<double>(e.parameters), sources::operators_list);
    for (const std::string_view part : {"parameters", "gradients", "optimizer"}) {
      b_.add(part, at(fmt::format("memory.bytes_per_parameter.{}", part)),
             fmt::format("bytes of {} for one weight of stage {}", part, stage_), "B", of(part) / count, sources::zero);
    }
    b_.add("bytes", at("memory.bytes_per_parameter"), fmt::format("bytes of states for one weight of stage {}", stage_),
           "B", states / count, sources::zero);
  }

 private:
  std::string at(std::string_view address) const { return at_stage(address, stage_); }

  TermBuilder& b_;
  const RankMemory& memory_;
  int stage_;
};

}  // namespace

void add_memory_facts(TermBuilder& builder, const RankMemory& memory, const StageEstimate& stage) {
  Facts facts(builder, memory, stage.stage);
  facts.add_elsewhere(stage);
  facts.add_reserved(stage);
  facts.add_bytes_per_parameter(stage);
}

}  // namespace shardplan::explain
