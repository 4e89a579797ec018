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

class TermBuilder {
 public:
  TermBuilder(const Run& in, EstimateWorkspace& workspace, const Estimate& result, Terms& out)
      : run(in), w(workspace), estimate(result), terms(out) {}

  const Run& run;
  EstimateWorkspace& w;
  const Estimate& estimate;
  Terms& terms;

  EstimateWorkspaceOf<Sym> text;  ///< the workspace, written down

  // One family each, in this order: later ones use the symbols of earlier ones.
  void add_run();
  void named_degree(std::string_view symbol, GroupKind group, int value);
  void add_layers();
  void add_stages();
  void add_memory();
  void add_time();
  void add_pipeline();
  void add_throughput();
  void add_model();

  Sym stage_count();
  /// Data-parallel ranks: GPUs over the other degrees.
  Sym data_degree();
  /// Ranks of a group, or of a shard set or its replicas: derived degrees have formulas.
  Sym ranks_of(GroupKind group, int size);

  /// Symbols of the papers with the run's values; degrees of 1 are plain numbers.
  Symbols<Sym> symbols(const Symbols<double>& v, std::string_view config);

  Sym add(std::string_view symbol, std::string address, std::string_view meaning, std::string_view unit, Sym formula,
          std::string_view source, std::vector<std::string> parts = {});
  /// A number that no formula gives.
  Sym leaf(TermKind kind, std::string_view symbol, std::string address, std::string_view meaning, std::string_view unit,
           double value, std::string_view source);
  /// The symbol of a term that is there, also where it is 0 and has to be seen.
  Sym kept(std::string_view symbol, std::string_view address);
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
