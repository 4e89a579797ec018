// Terms of memory: the estimate's own functions run with symbols, and the other addresses of what they name.
#include <fmt/format.h>

#include <algorithm>

#include "recorder.hpp"
#include "shardplan/plan/stage_memory.hpp"
#include "term_builder.hpp"

namespace shardplan::explain {
namespace {

/// One rank's other addresses: its peak, what divides its weights, bytes of one parameter.
class StageAddresses {
 public:
  StageAddresses(TermBuilder& builder, const StageEstimate& e) : b_(builder), e_(e), peak_(name(e.peak_moment)) {}

  void add() {
    for (const MomentPart<Sym>& part : moment_parts<Sym>) {
      b_.terms.alias(at(part.name.field), at(fmt::format("{}.{}", part.name.field, peak_)));
    }
    b_.terms.alias(at("memory.total"), at(fmt::format("memory.total.{}", peak_)));
    b_.leaf(TermKind::input, "layers", at("memory.layers"), "decoder layers of the stage", "", e_.layers,
            sources::run_file);
    b_.leaf(TermKind::simulated, "in_flight_microbatches", at("memory.in_flight_microbatches"),
            "microbatches in flight, in full stages", "", static_cast<double>(e_.in_flight_microbatches),
            sources::simulated);
    add_bytes_per_parameter();
    relate_divisors();
  }

 private:
  std::string at(std::string_view address) const { return at_stage(address, e_.stage); }

  /// What the weights of this rank are divided by, whatever formula stands in between.
  void relate_divisors() {
    std::vector<std::string> divisors;
    for (const char* const degree : {"t", "p", "e", "x", "N", "N_e", "S"}) {
      if (b_.terms.has(degree) && b_.terms.find(degree)->value > 1) divisors.emplace_back(degree);
    }
    for (const std::string_view part : {"parameters", "gradients", "optimizer"}) {
      b_.terms.relate(at(fmt::format("memory.{}.{}", part, peak_)), divisors);
      b_.terms.relate(at(fmt::format("states.{}", part)), divisors);
    }
    b_.terms.relate(at("states.trained"), divisors);
    b_.terms.relate(at("states.trained_experts"), divisors);
  }

  /// States over the weights that the rank works with, as the page prints them.
  void add_bytes_per_parameter() {
    const auto of = [&](std::string_view part) { return b_.kept(part, at(fmt::format("memory.{}.{}", part, peak_))); };
    const Sym states = b_.add("states", at("memory.states"),
                              fmt::format("states of stage {}: weights, gradients, optimizer", e_.stage), "B",
                              of("parameters") + of("gradients") + of("optimizer"), sources::zero);
    if (e_.parameters <= 0 || static_cast<std::size_t>(e_.stage) >= b_.text.stages.size()) return;
    const Sym count =
        Recorder(b_.terms, b_.run)
            .at_stage(static_cast<std::size_t>(e_.stage))
            .step(memory_names::stage_held, b_.text.stages[static_cast<std::size_t>(e_.stage)].weights.held());
    for (const std::string_view part : {"parameters", "gradients", "optimizer"}) {
      b_.add(part, at(fmt::format("memory.bytes_per_parameter.{}", part)),
             fmt::format("bytes of {} for one weight of stage {}", part, e_.stage), "B", of(part) / count,
             sources::zero);
    }
    b_.add("bytes", at("memory.bytes_per_parameter"),
           fmt::format("bytes of states for one weight of stage {}", e_.stage), "B", states / count, sources::zero);
  }

  TermBuilder& b_;
  const StageEstimate& e_;
  std::string_view peak_;
};

/// Addresses without a stage: those of the stage that the estimate names.
void alias_to(Terms& terms, const std::string& address, int stage) { terms.alias(address, at_stage(address, stage)); }

void add_aliases(Terms& terms, int peak, int binding) {
  for (const std::string_view each :
       {"total", "layers", "in_flight_microbatches", "allocated", "host", "nvme", "activations.in_flight",
        "activations.kept", "activations.live", "states", "bytes_per_parameter", "bytes_per_parameter.parameters",
        "bytes_per_parameter.gradients", "bytes_per_parameter.optimizer"}) {
    alias_to(terms, fmt::format("memory.{}", each), peak);
  }
  for (const std::string_view each : {"reserved", "reserved_low", "reserved_high"}) {
    alias_to(terms, fmt::format("memory.{}", each), binding);
  }
  for (const MomentPart<Sym>& part : moment_parts<Sym>) {
    alias_to(terms, std::string(part.name.field), peak);
    for (std::size_t i = 0; i < moment_count; ++i) {
      alias_to(terms, fmt::format("{}.{}", part.name.field, name(static_cast<Moment>(i))), peak);
    }
  }
  for (std::size_t i = 0; i < moment_count; ++i) {
    alias_to(terms, fmt::format("memory.total.{}", name(static_cast<Moment>(i))), peak);
  }
}

}  // namespace

void TermBuilder::add_memory() {
  const Recorder trace(terms, run);
  const Symbols<Sym> v = symbols(symbols_for(run, run.model.kinds.front()), sources::config);
  const MemoryOverheadsOf<Sym> overheads = memory_overheads(trace, run, w.topology);
  std::vector<StageMemoryOf<Sym>> memory;
  std::vector<StageEstimate> numbers(estimate.stages.size());
  if (numbers.size() > text.stages.size()) {
    for (StageMemoryOf<Sym>& each : replica_memory(trace, run, v, text, overheads, numbers[0], numbers[1])) {
      memory.push_back(each);
    }
  } else {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      memory.push_back(stage_memory(trace, run, v, text, i, overheads, numbers[i]));
    }
  }
  Sym host, nvme;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    StageAddresses(*this, numbers[i]).add();
    if (i >= text.stages.size()) continue;
    host += memory[i].host;
    nvme += memory[i].nvme;
  }
  const int peak = estimate.peak_stage, binding = estimate.binding_stage;
  const StageMemoryOf<Sym>& tightest = memory[static_cast<std::size_t>(binding)];
  add("peak", "memory.peak", "the largest stage's peak", "B", memory[static_cast<std::size_t>(peak)].total,
      sources::sum);
  const Sym capacity = leaf(TermKind::input, "capacity", "memory.capacity", "what cudaMemGetInfo reports", "B",
                            static_cast<double>(estimate.capacity_bytes), "shardplan list gpus");
  trace.step(memory_names::headroom, headroom_of(capacity, tightest.reserved, tightest.framework));
  const Sym gpus = trace.cluster(memory_names::node_gpus, std::min(run.cluster.gpus_per_node, run.num_gpus));
  add("host", "memory.host_bytes_per_node", "host memory of a node", "B",
      trace.whole(node_share(host, stage_count(), gpus)), memory_names::host_per_node.source);
  add("nvme", "memory.nvme_bytes_per_node", "NVMe of a node", "B", trace.whole(node_share(nvme, stage_count(), gpus)),
      memory_names::nvme_per_node.source);
  add_aliases(terms, peak, binding);
}

}  // namespace shardplan::explain
