// Terms of memory: states, activations, what a pass holds, buffers, and their sums at every moment of each stage.
#include <fmt/format.h>

#include <cmath>

#include "memory_facts.hpp"
#include "shardplan/plan/overheads.hpp"
#include "shardplan/plan/rank_memory.hpp"
#include "term_builder.hpp"

namespace shardplan::explain {
namespace {

struct PartField {
  std::string_view name, symbol, meaning;
  std::int64_t MemoryParts::*bytes;
  Sym MomentBytes<Sym>::*formula;
};

constexpr std::array<PartField, 7> part_fields = {{
    {"parameters", "parameters", "weights that live from step to step", &MemoryParts::parameters,
     &MomentBytes<Sym>::parameters},
    {"gradients", "gradients", "gradients that live from step to step", &MemoryParts::gradients,
     &MomentBytes<Sym>::gradients},
    {"optimizer", "optimizer", "master copy and moments", &MemoryParts::optimizer, &MomentBytes<Sym>::optimizer},
    {"activations", "activations", "activations of all microbatches in flight", &MemoryParts::activations,
     &MomentBytes<Sym>::activations},
    {"transient", "transient", "what a pass, the loss or the step holds for a while", &MemoryParts::transient,
     &MomentBytes<Sym>::transient},
    {"communication_buffers", "buffers", "buckets, pools and receive buffers", &MemoryParts::communication_buffers,
     &MomentBytes<Sym>::communication_buffers},
    {"framework", "framework", "CUDA context and NCCL, outside the allocator", &MemoryParts::framework,
     &MomentBytes<Sym>::framework},
}};

class StageMemory {
 public:
  StageMemory(TermBuilder& builder, int stage)
      : b_(builder),
        stage_(stage),
        memory_(rank_memory(builder.run, builder.w, stage, memory_overheads(builder.run, builder.w.topology))) {}

  void add() {
    const std::size_t index = static_cast<std::size_t>(stage_);
    add_states();
    add_activations();
    const RankBytes<Sym> bytes = rank_bytes();
    const RankMoments<Sym> moments = rank_moments(memory_.facts, bytes);
    const StageEstimate& e = b_.estimate.stages[index];
    for (std::size_t i = 0; i < moment_count; ++i) {
      if (moments[i].exists) add_moment(static_cast<Moment>(i), moments[i], e);
    }
    const std::string_view peak = name(e.peak_moment);
    for (const PartField& part : part_fields) {
      b_.terms.alias(at(fmt::format("memory.{}", part.name)), at(fmt::format("memory.{}.{}", part.name, peak)));
    }
    b_.terms.alias(at("memory.total"), at(fmt::format("memory.total.{}", peak)));
    add_stage_facts(e);
    // What the weights of this rank are divided by, whatever formula stands in between.
    std::vector<std::string> divisors;
    for (const char* const degree : {"t", "p", "e", "x", "N", "N_e", "S"}) {
      if (b_.terms.has(degree) && b_.terms.find(degree)->value > 1) divisors.emplace_back(degree);
    }
    for (const std::string_view part : {"parameters", "gradients", "optimizer"}) {
      b_.terms.relate(at(fmt::format("memory.{}.{}", part, peak)), divisors);
      b_.terms.relate(at(fmt::format("states.{}", part)), divisors);
    }
    b_.terms.relate(at("states.trained"), divisors);
    b_.terms.relate(at("states.trained_experts"), divisors);
  }

 private:
  std::string at(std::string_view address) const { return at_stage(address, stage_); }

  Sym number(std::string_view symbol, std::string_view address, std::string_view meaning, double value,
             std::string_view source) {
    return value == 0 ? Sym(0.0) : b_.leaf(symbol, at(address), meaning, "B", value, source);
  }

  /// Bytes of each state: over the whole stage, or unit by unit where each unit's shards are rounded.
  void add_states() {
    const StateRule& rule = b_.w.rule;
    const auto shards = [&](double ranks, bool experts) {
      return b_.ranks_of(experts ? GroupKind::expert_data : GroupKind::data, static_cast<int>(ranks));
    };
    const StateShards<Sym> dense{shards(rule.parameter_shards, false), shards(rule.gradient_shards, false),
                                 shards(rule.optimizer_shards, false), shards(rule.dense_replicas, false)};
    const StateShards<Sym> expert{shards(rule.expert_parameter_shards, true), shards(rule.expert_gradient_shards, true),
                                  shards(rule.expert_optimizer_shards, true), shards(rule.expert_replicas, true)};
    const auto sums = [&](const StateElements<Sym>& of_dense, const StateElements<Sym>& of_expert) {
      StateSums<Sym> bytes;
      add_states_of(of_dense, dense, bytes);
      add_states_of(of_expert, expert, bytes);
      return bytes;
    };
    StateSums<Sym> total;
    const StageTerms& stage = b_.stages[static_cast<std::size_t>(stage_)];
    if (!rounds_per_unit(b_.run.training.framework)) {
      StateElements<Sym> d = stage.dense, e = stage.expert;
      d.trained = named("P", "states.trained", "parameters that train on this rank", d.trained);
      e.trained = named("P_experts", "states.trained_experts", "parameters of experts on this rank", e.trained);
      total = sums(d, e);
    } else {
      for (const ChunkTerms& chunk : stage.chunks) {
        for (const Group& group : chunk.groups) {
          const StateSums<Sym> unit = sums(group.unit->dense, group.unit->expert);
          const auto add = [&](std::string_view what, Sym bytes) {
            const std::string address = fmt::format("{}.{}", group.unit->path, what);
            if (const Term* const known = b_.terms.find(address)) {
              return b_.terms.expressions().symbol(
                  {std::string(what), known->meaning, "B", address, known->source, known->value});
            }
            return b_.add(what, address, fmt::format("{}: bytes of {} on this rank", group.unit->label, what), "B",
                          b_.whole_bytes(bytes), sources::zero);
          };
          const Sym count(static_cast<double>(group.count));
          total.parameters += count * add("parameters", unit.parameters);
          total.gradients += count * add("gradients", unit.gradients);
          total.optimizer += count * add("optimizer", unit.optimizer);
        }
      }
    }
    const StateBytes& states = memory_.states;
    parameters_ = state("parameters", total.parameters, states.parameters, memory_.bytes.parameters);
    gradients_ = state("gradients", total.gradients, states.gradients, memory_.bytes.gradients);
    optimizer_ = state("optimizer", total.optimizer, states.optimizer, memory_.bytes.optimizer);
  }

  Sym named(std::string_view symbol, std::string_view address, std::string_view meaning, Sym formula) {
    if (formula.node() == nullptr || formula.node()->operation == Operation::symbol) return formula;
    return b_.add(symbol, at(address), meaning, "", formula, sources::operators_list);
  }

  void add_states_of(const StateElements<Sym>& elements, const StateShards<Sym>& shards, StateSums<Sym>& bytes) const {
    shardplan::add_states(b_.w.rule, *b_.w.optimizer, elements, shards, bytes);
  }

  /// What is left of a state on the card when its offloaded share has moved.
  Sym state(std::string_view what, Sym formula, double before, double left) {
    const std::string address = fmt::format("states.{}", what);
    const std::string_view source =
        what == "optimizer" ? "shardplan list optimizers; arXiv:1910.02054 section 5" : sources::zero;
    const bool moves = before != left;
    const Sym all =
        b_.add_checked(what, at(moves ? address + ".before_offload" : address),
                       fmt::format("bytes of {} on this rank", what), "B", b_.whole_bytes(formula), before, source);
    if (!moves) return all;
    const Sym moved =
        number(fmt::format("{}_offloaded", what), address + ".offloaded", fmt::format("{} that live elsewhere", what),
               before - left, "arXiv:2101.06840; the run file, training.offload; paged states");
    return b_.add(what, at(address), fmt::format("bytes of {} that stay on the card", what), "B", all - moved, source);
  }

  void add_activations() {
    const StageTerms& stage = b_.stages[static_cast<std::size_t>(stage_)];
    Sym held;
    for (const ChunkTerms& chunk : stage.chunks) held += chunk.live * chunk.kept;
    const double peak = b_.w.simulated.peak_bytes[static_cast<std::size_t>(stage_)];
    Sym in_flight = held;
    if (std::fabs(held.value() - peak) > 1e-12 * peak) {
      in_flight = number("chunks", "memory.activations.chunks", "most that the chunks' microbatches hold at once", peak,
                         sources::simulated);
    }
    const Sym losses =
        number("waiting_losses", "memory.activations.waiting_losses",
               "final norm, head and loss of microbatches that wait", memory_.other_losses, sources::simulated);
    const Sym offloaded = number("offloaded", "memory.activations.offloaded", "activations in host memory",
                                 memory_.offloaded_activations, "the run file, training.offload.activations");
    in_flight_ = b_.add("in_flight", at("memory.activations.in_flight"), "activations of all microbatches in flight",
                        "B", in_flight + losses - offloaded, sources::korthikanti);
  }

  RankBytes<Sym> rank_bytes() {
    const RankBytes<double>& n = memory_.bytes;
    RankBytes<Sym> r;
    r.parameters = parameters_;
    r.gradients = gradients_;
    r.optimizer = optimizer_;
    r.framework = framework();
    r.workspaces = number("workspaces", "memory.transient.workspaces", "cuBLAS workspaces of two streams", n.workspaces,
                          "PyTorch CUDABlas.cpp");
    r.in_flight = in_flight_;
    r.current = largest_chunk(n.current);
    r.first_layer = number("first_layer", "memory.activations.first_layer", "of it, the first layer's", n.first_layer,
                           sources::korthikanti);
    r.retained = number("retained", "memory.activations.retained", "gradients of retained inputs", n.retained,
                        "PyTorch FSDP1, post-backward hook");
    constexpr std::string_view measured = "PyTorch autograd, measured (docs/validation.md)";
    const auto of_unit = [&](std::string_view path, std::string_view symbol, std::string_view meaning, double value) {
      const Term* const term = b_.terms.find(path);
      if (value == 0) return Sym(0.0);
      if (term != nullptr && term->value == value) {
        return b_.terms.expressions().symbol(
            {std::string(symbol), term->meaning, "B", std::string(path), term->source, value});
      }
      return number(symbol, fmt::format("memory.activations.{}", symbol), meaning, value, measured);
    };
    r.final_norm = of_unit("final_norm.saved", "final_norm", "what the final norm keeps", n.final_norm);
    r.head_input = number("head_input", "memory.activations.head_input", "the final norm's output, kept by the head",
                          n.head_input, measured);
    r.head_saved = of_unit("head.saved", "head_saved", "what head and loss keep", n.head_saved);
    r.recomputed = number("recomputed", "memory.transient.recomputed", "activations made again for one segment",
                          n.recomputed, "arXiv:1604.06174; measured");
    r.layer = number("layer", "memory.transient.layer", "the most that one layer's backward holds", n.layer, measured);
    r.layer_output = number("layer_output", "memory.transient.layer_output", "a reentrant checkpoint's output",
                            n.layer_output, "torch.utils.checkpoint, use_reentrant=True");
    add_head(r);
    r.root_gradient = number("root_gradient", "memory.transient.root_gradient", "unsharded gradient of the head",
                             n.root_gradient, "PyTorch FSDP, root unit");
    r.gradients_apart =
        number("half_gradients", "memory.transient.gradients_apart", "gradients in the weights' type, of a microbatch",
               n.gradients_apart, "nanotron optim/gradient_accumulator.py: added to fp32 once backward has ended");
    r.placeholders = number("placeholders", "memory.transient.placeholders", "cached placeholder gradients",
                            n.placeholders, "Transformer Engine, get_dummy_wgrad");
    r.kept_logits = number("kept_logits", "memory.transient.kept_logits", "logits that the loop holds", n.kept_logits,
                           "the run file, training.keep_logits");
    r.step = number("step", "memory.transient.step", "temporaries of the optimizer's step", n.step,
                    "torch.optim foreach; DeepSpeed's fp32 gradient copy; measured");
    r.whole_model = number("whole_model", "memory.transient.whole_model", "the whole model at initialisation",
                           n.whole_model, "the run file, training.initialisation");
    const std::string_view buffers = "PyTorch FSDP units, DeepSpeed buckets, p2p messages (docs/run.md, stacks)";
    r.gathered =
        number("gathered", "memory.transient.gathered", "gathered copies of sharded weights", n.gathered, buffers);
    r.gathered_at_loss = n.gathered_at_loss == n.gathered
                             ? r.gathered
                             : number("gathered_at_loss", "memory.transient.gathered_at_loss",
                                      "gathered copies at the loss", n.gathered_at_loss, buffers);
    r.cached = number("cached", "memory.transient.cached", "narrow copies of weights", n.cached,
                      "Transformer Engine, cached fp8 weights");
    r.collectives =
        number("collectives", "memory.buffers.collectives", "buckets, pools and messages", n.collectives, buffers);
    r.collectives_at_loss =
        number("collectives_at_loss", "memory.buffers.at_loss", "buffers at the loss", n.collectives_at_loss, buffers);
    r.lasting = number("lasting", "memory.buffers.lasting", "buckets that live as long as the model", n.lasting,
                       "PyTorch DistributedDataParallel, gradient_as_bucket_view");
    return r;
  }

  /// Of the rank's chunks, the one that keeps most of one microbatch.
  Sym largest_chunk(double value) {
    Sym most;
    for (const ChunkTerms& chunk : b_.stages[static_cast<std::size_t>(stage_)].chunks) {
      if (chunk.kept > most) most = chunk.kept;
    }
    if (value == 0) return Sym(0.0);
    return b_.derived("current", at("memory.activations.current"), "what the microbatch in its backward keeps", "B",
                      most, value, sources::korthikanti);
  }

  /// The loss and the head's product: the formulas of head_peaks over text.
  void add_head(RankBytes<Sym>& r) {
    const RankBytes<double>& n = memory_.bytes;
    if (!memory_.facts.has_head) return;
    const Run& run = b_.run;
    const LayerKind& last = run.model.layer(run.model.layers() - 1);
    LayerOptions o = options_for(run, last, false);
    o.autocast_copies = autocast_over_fp32(run);
    const Symbols<Sym> v = b_.symbols(symbols_for(run, last), sources::config);
    const HeadPeaks<Sym> peaks = head_peaks(v, o, loss_bytes_for(run), v.h, !run.training.peft.active());
    const std::string_view source = "bytes per logit of each loss: docs/run.md, loss; PyTorch autograd, measured";
    r.loss = b_.add_checked("loss", at("memory.transient.logits_and_loss"), "logits and what the loss makes of them",
                            "B", peaks.loss, n.loss, source);
    r.head_product = b_.add_checked("head_product", at("memory.transient.head_product"),
                                    "backward of the head's product", "B", peaks.product, n.head_product, source);
    if (n.head_weight > 0) {
      r.head_weight = b_.add_checked("head_weight", at("memory.transient.head_weight"),
                                     "the head's weight gradient, or its placeholder", "B", peaks.weight_gradient,
                                     n.head_weight, source);
    }
    r.head_gradient = number("head_gradient", "memory.transient.head_gradient", "the head's gradient in 16 bit",
                             n.head_gradient, source);
  }

  Sym framework() {
    const double bytes = memory_.bytes.framework;
    if (bytes <= 0) return Sym(0.0);
    const Sym context =
        b_.terms.input("context", "CUDA context, modules loaded lazily", cuda_context_bytes,
                       "0.47 GiB was measured on an A100 (ml-engineering); 0.5 GiB is taken for every card", "B");
    const double nccl = bytes - cuda_context_bytes;
    if (nccl <= 0) return b_.add("framework", at("memory.outside"), "outside the allocator", "B", context, about);
    const Sym more =
        b_.terms.input("nccl", "NCCL: 0.4 GiB a communicator in a node, 0.6 across, at most 2", nccl, about, "B");
    return b_.add("framework", at("memory.outside"), "outside the allocator", "B", context + more, about);
  }

  void add_moment(Moment moment, const MomentBytes<Sym>& formulas, const StageEstimate& e) {
    const MemoryParts& numbers = e.moments[static_cast<std::size_t>(moment)];
    const std::string_view when = name(moment);
    Sym total;
    for (const PartField& part : part_fields) {
      Sym formula = b_.whole_bytes(formulas.*part.formula);
      std::vector<std::string> parts;
      std::string_view source = sources::sum;
      // A sum of one is that one.
      if (formula.node() != nullptr && formula.node()->operation == Operation::symbol) {
        if (const Term* const only = b_.terms.find(formula.node()->symbol->address)) {
          if (only->formula.node() != nullptr && only->value == formula.value()) formula = only->formula;
          parts = only->parts;
          source = only->source;
        }
      }
      const double bytes = static_cast<double>(numbers.*part.bytes);
      const std::string address = at(fmt::format("memory.{}.{}", part.name, when));
      const std::string meaning = fmt::format("{}, stage {}, {}", part.meaning, stage_, when);
      if (std::fabs(formula.value() - bytes) > 0.5) {
        total += b_.leaf(part.symbol, address, meaning, "B", bytes, "torch.nn.DataParallel, GPU 0 and the others");
      } else {
        total += b_.add(part.symbol, address, meaning, "B", Sym(bytes, formula.node()), std::string(source), parts);
      }
    }
    b_.add("total", at(fmt::format("memory.total.{}", when)), fmt::format("all of stage {}, {}", stage_, when), "B",
           total, sources::sum);
  }

  void add_stage_facts(const StageEstimate& e) {
    const auto plain = [&](std::string_view address, std::string_view meaning, double value, std::string_view unit,
                           std::string_view source) {
      b_.leaf(address.substr(address.rfind('.') + 1), at(address), meaning, unit, value, source);
    };
    plain("memory.layers", "decoder layers of the stage", e.layers, "", sources::run_file);
    plain("memory.in_flight_microbatches", "microbatches in flight, in full stages",
          static_cast<double>(e.in_flight_microbatches), "", sources::simulated);
    add_memory_facts(b_, memory_, e);
  }

  static constexpr double cuda_context_bytes = 0.5 * 1024 * 1024 * 1024;
  static constexpr std::string_view about = "about: ml-engineering, GPU memory; measured 1 to 2 GiB for NCCL";

  TermBuilder& b_;
  int stage_;
  RankMemory memory_;
  Sym parameters_, gradients_, optimizer_, in_flight_;
};

}  // namespace

void TermBuilder::add_memory() {
  for (std::size_t i = 0; i < w.stages.size(); ++i) StageMemory(*this, static_cast<int>(i)).add();
  // torch.nn.DataParallel: the other GPUs, like GPU 0 but for what it alone holds.
  for (std::size_t i = w.stages.size(); i < estimate.stages.size(); ++i) {
    const StageEstimate& e = estimate.stages[i];
    Sym total;
    for (const PartField& part : part_fields) {
      total += leaf(part.symbol, at_stage(fmt::format("memory.{}", part.name), e.stage), part.meaning, "B",
                    static_cast<double>(e.peak().*part.bytes), "torch.nn.DataParallel, a replica");
    }
    add("total", at_stage("memory.total", e.stage), "all of a replica", "B", total, sources::sum);
    const auto plain = [&](std::string_view what, std::string_view meaning, double value, std::string_view unit) {
      leaf(what, at_stage(fmt::format("memory.{}", what), e.stage), meaning, unit, value,
           "torch.nn.DataParallel, a replica");
    };
    plain("layers", "decoder layers", e.layers, "");
    plain("in_flight_microbatches", "microbatches in flight", static_cast<double>(e.in_flight_microbatches), "");
    plain("host", "bytes in host memory", static_cast<double>(e.host_bytes), "B");
    plain("nvme", "bytes on NVMe", static_cast<double>(e.nvme_bytes), "B");
    leaf("reserved", at_stage("memory.reserved", e.stage), "torch.cuda.max_memory_reserved", "B",
         static_cast<double>(e.reserved_bytes), sources::sum);
    leaf("low", at_stage("memory.reserved_low", e.stage), "low end of the reserve's band", "B",
         static_cast<double>(e.reserved_low_bytes), sources::sum);
    leaf("high", at_stage("memory.reserved_high", e.stage), "high end of the reserve's band", "B",
         static_cast<double>(e.reserved_high_bytes), sources::sum);
    leaf("framework", at_stage("memory.outside", e.stage), "outside the allocator", "B",
         static_cast<double>(e.peak().framework), sources::sum);
  }
  const auto with = [&](std::string_view symbol, const std::string& address) {
    const Term* const term = terms.find(address);
    return terms.expressions().symbol({std::string(symbol), term->meaning, term->unit, address, "", term->value});
  };
  const int peak = estimate.peak_stage, binding = estimate.binding_stage;
  add("peak", "memory.peak", "the largest stage's peak", "B", with("total", at_stage("memory.total", peak)),
      sources::sum);
  const Sym capacity = leaf("capacity", "memory.capacity", "what cudaMemGetInfo reports", "B",
                            static_cast<double>(estimate.capacity_bytes), "shardplan list gpus");
  add("headroom", "memory.headroom", "free where least is", "B",
      capacity - with("reserved", at_stage("memory.reserved", binding)) -
          with("framework", at_stage("memory.framework", binding)),
      sources::sum);
  // A node's share: the mean rank's bytes times the GPUs of a node.
  const auto per_node = [&](std::string_view what, std::string_view meaning, double value, std::string_view source) {
    Sym sum;
    for (std::size_t i = 0; i < w.stages.size(); ++i) {
      sum += of(what, at_stage(fmt::format("memory.{}", what), static_cast<int>(i)));
    }
    const Sym gpus = terms.input("node_gpus", "GPUs that share a node's host",
                                 std::min(run.cluster.gpus_per_node, run.num_gpus), "the cluster file, gpus_per_node");
    derived(what, fmt::format("memory.{}_bytes_per_node", what), meaning, "B", whole_bytes(sum / stage_count() * gpus),
            value, source);
  };
  per_node("host", "host memory of a node", static_cast<double>(estimate.host_bytes_per_node), "arXiv:2101.06840");
  per_node("nvme", "NVMe of a node", static_cast<double>(estimate.nvme_bytes_per_node), "arXiv:2104.07857");
  for (const PartField& part : part_fields) {
    terms.alias(fmt::format("memory.{}", part.name), at_stage(fmt::format("memory.{}", part.name), peak));
  }
  for (const std::string_view each :
       {"total", "layers", "in_flight_microbatches", "allocated", "host", "nvme", "activations.in_flight",
        "activations.kept", "activations.live", "states", "bytes_per_parameter", "bytes_per_parameter.parameters",
        "bytes_per_parameter.gradients", "bytes_per_parameter.optimizer"}) {
    terms.alias(fmt::format("memory.{}", each), at_stage(fmt::format("memory.{}", each), peak));
  }
  for (const std::string_view each : {"reserved", "reserved_low", "reserved_high"}) {
    terms.alias(fmt::format("memory.{}", each), at_stage(fmt::format("memory.{}", each), binding));
  }
  for (std::size_t i = 0; i < moment_count; ++i) {
    const std::string when(name(static_cast<Moment>(i)));
    terms.alias("memory.total." + when, at_stage("memory.total." + when, peak));
    for (const PartField& part : part_fields) {
      const std::string address = fmt::format("memory.{}.{}", part.name, when);
      terms.alias(address, at_stage(address, peak));
    }
  }
}

}  // namespace shardplan::explain
