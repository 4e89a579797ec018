// What the families of terms share: the run, its symbols, and the units that stages are made of.
#pragma once

#include <array>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "shardplan/explain/terms.hpp"
#include "shardplan/physics/layer_inputs.hpp"
#include "shardplan/physics/state_formula.hpp"
#include "shardplan/plan/data_volumes.hpp"

namespace shardplan::explain {

/// A layer of a kind, or an end of the model, with its operators as text.
struct UnitTerms {
  std::string path;   ///< of its addresses: "layers.dense", "embedding"
  std::string label;  ///< for people: "a dense layer"
  const Unit* unit = nullptr;
  const UnitOf<Sym>* text = nullptr;  ///< the same, written down
  OperatorList<Sym> operators;  ///< of a layer
  Sym forward, backward, recompute;  ///< seconds, communication apart
  Sym gemm, attention;               ///< of them, all three
  Sym exposed_forward, exposed_backward;
  struct CollectiveTimes {
    Sym time, exposed;
  };
  std::array<CollectiveTimes, collective_count> collectives{};
};

/// Layers in a row of one chunk that share everything.
struct Group {
  const UnitTerms* unit = nullptr;
  int count = 1;
};

/// A model chunk of a rank.
struct ChunkTerms {
  std::vector<Group> groups;  ///< layers, then what stands at the ends
  Sym forward, backward;  ///< of one microbatch, with what the passes wait for
};

struct StageTerms {
  std::vector<ChunkTerms> chunks;
  Sym forward, backward;  ///< of one microbatch through all chunks
  Sym data_exposed;
  Sym compute, recompute, gemm, attention, exposed, bubble;        ///< of a step
  std::array<Sym, names_of<GroupKind>.size()> exposed_by_group{};  ///< of a step
};

class TermBuilder {
 public:
  TermBuilder(const Run& in, EstimateWorkspace& workspace, const Estimate& result, Terms& out)
      : run(in), w(workspace), estimate(result), terms(out) {}

  const Run& run;
  EstimateWorkspace& w;
  const Estimate& estimate;
  Terms& terms;

  EstimateWorkspaceOf<Sym> text;  ///< the workspace, written down
  std::deque<UnitTerms> units;
  std::vector<StageTerms> stages;

  // One family each, in this order: later ones use the symbols of earlier ones.
  void add_run();
  void named_degree(std::string_view symbol, GroupKind group, int value);
  void add_layers();
  void add_stages();
  void add_memory();
  void add_communication();
  void add_pipeline_and_time();
  void add_stage_times();
  void add_exposed_by_group();
  void add_bubble_fractions(Sym bubble, Sym step);
  void add_pass_times();
  void add_layer_collectives();
  void add_data_times();
  void add_sends();
  void add_optimizer_and_offload();
  void add_throughput();
  void add_model();
  struct TokenTerms {
    Sym total, score, causal, more;
  };
  TokenTerms token_terms(Sym s);

  UnitTerms& note_unit(std::string path, std::string label, const Unit& unit, const UnitOf<Sym>& written);

  /// Time and exposed time of one kind of collective of a stage; returns the exposed time.
  Sym add_collective(std::string_view word, GroupKind group, int stage, Sym time, Sym exposed, double time_s,
                     double exposed_s);

  /// Microbatches that pass each chunk of a rank; what the host needs for one.
  Sym microbatches();
  Sym host_work();
  Sym stage_count();
  /// Data-parallel ranks: GPUs over the other degrees.
  Sym data_degree();
  Sym mean_of(std::string_view symbol, std::string_view address, std::string_view meaning, Sym StageTerms::*part,
              double value, std::string_view source, Sym more = Sym());
  /// Ranks of a group, or of a shard set or its replicas: derived degrees have formulas.
  Sym ranks_of(GroupKind group, int size);
  /// What a data-parallel call of a stage carries.
  Sym data_bytes(const Payload& payload, std::size_t rank);

  /// Symbols of the papers with the run's values; degrees of 1 are plain numbers.
  Symbols<Sym> symbols(const Symbols<double>& v, std::string_view config);

  Sym add(std::string_view symbol, std::string address, std::string_view meaning, std::string_view unit, Sym formula,
          std::string_view source, std::vector<std::string> parts = {});
  /// A number that no formula gives: simulated, or looked up.
  Sym leaf(std::string_view symbol, std::string address, std::string_view meaning, std::string_view unit, double value,
           std::string_view source);
  /// The formula where it gives the value, else the value with what is looked up.
  Sym add_checked(std::string_view symbol, std::string address, std::string_view meaning, std::string_view unit,
                  Sym formula, double value, std::string_view source);
  /// A formula that follows the code: it gives the value to rounding. What does not is noted in Terms::unexplained.
  Sym derived(std::string_view symbol, std::string address, std::string_view meaning, std::string_view unit,
              Sym formula, double value, std::string_view source, std::vector<std::string> parts = {});
  /// The address, with a number behind it where it is taken.
  std::string unused(std::string address) const;
  /// The symbol of a term that is there.
  Sym of(std::string_view symbol, std::string_view address);
  /// The same where its value may be 0 and has to be seen.
  Sym kept(std::string_view symbol, std::string_view address);
  /// Terms whose formulas give these bytes rounded up, as the estimate does.
  Sym whole_bytes(Sym x);
  /// To the nearest.
  Sym rounded(Sym x);
};

/// "memory.total", 3 as "memory.total@3".
std::string at_stage(std::string_view address, int stage);

namespace sources {
inline constexpr std::string_view run_file = "the run file";
inline constexpr std::string_view config = "config.json of the model";
inline constexpr std::string_view grid = "the layout: GPUs over the other degrees (docs/run.md, parallel)";
inline constexpr std::string_view simulated = "the simulated schedule (docs/schedules.md)";
inline constexpr std::string_view korthikanti =
    "arXiv:2205.05198 section 4; PyTorch autograd, measured (docs/validation.md)";
inline constexpr std::string_view zero = "arXiv:1910.02054 section 5; docs/run.md, states of each framework";
inline constexpr std::string_view ring = "Patarasuk, Yuan 2009, doi:10.1016/j.jpdc.2008.09.002";
inline constexpr std::string_view palm = "arXiv:2204.02311 appendix B";
inline constexpr std::string_view operators_list = "sum over the operators of include/shardplan/physics";
inline constexpr std::string_view timing =
    "src/physics/timing.cpp, src/plan; each rate and constant below it names its table or file";
inline constexpr std::string_view sum = "sum of its parts";
}  // namespace sources

}  // namespace shardplan::explain
